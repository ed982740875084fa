"""The report: every selected session is examined, and the tallies are summed up."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from agtrace_schema.analysis import Report, ReportedSession
from agtrace_schema.lessons import Lesson
from msgspec.structs import replace

from agtrace.health.detectors.registry import DETECTORS
from agtrace.report import tables
from agtrace.report.comparison import ENOUGH, changes, comparable, periods
from agtrace.report.figures import Tally, figures
from agtrace.report.lessons import Case, learned
from agtrace.report.selection import Family, families, in_period
from agtrace.report.survey import Asked, Note, Seen, examine_all
from agtrace.times import iso

ENOUGH_TO_RANK = 10
"""The scored sessions from which on each has a percentile."""

LESSONS = 10
"""The most lessons that a report has."""


def report(connection: sqlite3.Connection, asked: Asked, note: Note | None = None) -> Report:
    """Examine the selected sessions and those of the period before, and sum them up; `note` as in `examine_all`."""
    selection = asked.selection
    every = families(connection, selection)
    chosen = in_period(every, selection.since, selection.until)
    seen = examine_all(connection, asked, chosen, *([note] if note else []))
    tallies = [one.tally for one in seen]
    return Report(
        selection=selection.sentence(len(chosen)),
        figures=figures(tallies, selection.since, selection.until),
        **_comparison(connection, asked, every, tallies),
        scores=tables.histogram(tallies),
        days=tables.days(tallies),
        tools=tables.tools(connection, chosen),
        models=tables.models(tallies),
        detectors=tables.detectors(one.found for one in seen),
        deeds=tables.deeds(connection, chosen),
        lessons=_lessons(connection, chosen, seen),
        undated=sum(not family.started_at for family in every),
        sub_agents=sum(len(family.members) - 1 for family in chosen),
        sessions=sorted(_with_percentiles([one.shown for one in seen]), key=_worst_first),
        versions={detector.name: detector.version for detector in DETECTORS},
        made_at=iso(int(asked.now * 1000)),
        behind=asked.behind,
    )


def _with_percentiles(sessions: Sequence[ReportedSession]) -> Iterator[ReportedSession]:
    """Yield sessions with their place among all that are scored, if these are enough to have places."""
    scores = sorted(session.score for session in sessions if session.score is not None)
    for session in sessions:
        if session.score is None or len(scores) < ENOUGH_TO_RANK:
            yield session
        else:
            below = bisect_left(scores, session.score)
            yield replace(session, percentile=max(100 * below // len(scores), min(below, 1)))  # 0 is the lowest alone


def _lessons(connection: sqlite3.Connection, chosen: Sequence[Family], seen: Sequence[Seen]) -> list[Lesson]:
    cases = (Case(family.row, told) for family, one in zip(chosen, seen, strict=True) for told in one.experiences)
    found, _ = learned(connection, cases)
    return found[:LESSONS]


def _worst_first(session: ReportedSession) -> tuple[bool, int, int, str]:
    return session.score is None, session.score or 0, -session.failed_calls, session.session_id


def _comparison(
    connection: sqlite3.Connection, asked: Asked, every: Sequence[Family], tallies: Sequence[Tally]
) -> dict[str, Any]:
    """Return the fields of the report about changes; only an empty list of changes if there is no time to divide."""
    found = periods(asked.selection, (tally.started_at for tally in tallies), int(asked.now * 1000))
    if found is None:
        return {"changes": []}
    if found.halves:
        before, now = (
            [tally for tally in tallies if first <= tally.started_at <= last]
            for first, last in (found.before, found.now)
        )
    else:
        earlier = examine_all(connection, asked.without_timelines, in_period(every, *found.before))
        before, now = [one.tally for one in earlier], list(tallies)
    few = "" if comparable(before, now) else f"; no verdicts, as a side has fewer than {ENOUGH} scored sessions"
    return {
        "before": figures(before, *found.before),
        "later": figures(now, *found.now) if found.halves else None,
        "compared": found.sentence() + few,
        "changes": changes(before, now),
    }
