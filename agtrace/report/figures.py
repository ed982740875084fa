"""The figures of many sessions, computed from a tally of each."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median_low

from agtrace_indexer.index.queries import landmarks
from agtrace_indexer.index.queries.calls import by_session
from agtrace_schema.analysis import (
    Ending,
    Figures,
    Insight,
    Lens,
    ReportedDay,
    ReportedDeeds,
    ReportedDetector,
    ReportedModel,
    ReportedTool,
)
from agtrace_schema.landmarks import LandmarkKind
from msgspec import Struct

from agtrace.report.selection import Family
from agtrace.report.wording import LOW
from agtrace.sessions.usage import Usage
from agtrace.text.lines import LABEL, NO_TOOL, one_line
from agtrace.times import iso, local


class Tally(Struct, frozen=True):
    """The facts about one session that the figures need, its sub-agents included."""

    started_at: int
    """Milliseconds since 1970 UTC; 0 if unknown."""
    score: int | None
    ending: Ending
    tool_calls: int
    failed_calls: int
    corrections: int
    """What the human corrected."""
    loops: bool
    usage: Usage


def usage_of_all(tallies: Sequence[Tally]) -> Usage:
    """Return what these sessions used together."""
    together = Usage()
    for tally in tallies:
        together.include(tally.usage)
    return together


def figures(tallies: Sequence[Tally], since: int | None, until: int | None) -> Figures:
    """Return the figures of these sessions; the period is the one asked for, in milliseconds since 1970 UTC."""
    scores = [tally.score for tally in tallies if tally.score is not None]
    calls, failed = sum(tally.tool_calls for tally in tallies), sum(tally.failed_calls for tally in tallies)
    used = usage_of_all(tallies)
    return Figures(
        since=iso(since),
        until=iso(until),
        sessions=len(tallies),
        scored=len(scores),
        mean_score=mean_score(tallies),
        median_score=median_low(scores) if scores else None,
        below_60=sum(score < LOW for score in scores),
        endings=endings(tallies),
        tool_calls=calls,
        failed_calls=failed,
        failed_rate=round(failed / calls, 4) if calls else None,
        corrections=sum(tally.corrections for tally in tallies),
        sessions_corrected=sum(tally.corrections > 0 for tally in tallies),
        sessions_with_loops=sum(tally.loops for tally in tallies),
        total_tokens=used.total or 0,
        tokens_made=used.tokens_made,
        cost_usd=used.cost,
        cost_made=used.cost_made,
    )


def mean_score(tallies: Sequence[Tally]) -> float | None:
    """Return the mean of the scores, rounded to a tenth; None if no session has one."""
    scores = [tally.score for tally in tallies if tally.score is not None]
    return round(fmean(scores), 1) if scores else None


def endings(tallies: Sequence[Tally]) -> dict[Ending, int]:
    """Return the number of sessions for each ending, the most frequent first."""
    return dict(Counter(tally.ending for tally in tallies).most_common())


# -- tables ----------------------------------------------------------------------------------------

_TENS = 10


def histogram(tallies: Iterable[Tally]) -> list[int]:
    """Return the number of sessions with a score of 0 to 9, 10 to 19, ... 90 to 100."""
    tens = Counter(min(tally.score // _TENS, _TENS - 1) for tally in tallies if tally.score is not None)
    return [tens[ten] for ten in range(_TENS)]


def days(tallies: Iterable[Tally]) -> list[ReportedDay]:
    """Return the local days on which sessions began, in order; a session's usage counts on its first day."""
    return [
        ReportedDay(
            day=day,
            sessions=len(those),
            endings=endings(those),
            mean_score=mean_score(those),
            total_tokens=(used := usage_of_all(those)).total or 0,
            cost_usd=used.cost,
        )
        for day, those in _by_day(tallies)
    ]


def models(tallies: Iterable[Tally]) -> list[ReportedModel]:
    """Return what each model used on each day, in order, the model with the most tokens first."""
    return [
        ReportedModel(day=day, model=one_line(name, LABEL), total_tokens=usage.total or 0, cost_usd=usage.cost)
        for day, those in _by_day(tallies)
        for name, usage in sorted(usage_of_all(those).models.items(), key=lambda item: (-(item[1].total or 0), item[0]))
    ]


def _by_day(tallies: Iterable[Tally]) -> list[tuple[str, list[Tally]]]:
    found: dict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        if day := local(tally.started_at)[:10]:
            found[day].append(tally)
    return sorted(found.items())


def tools(connection: sqlite3.Connection, families: Sequence[Family]) -> list[ReportedTool]:
    """Return the tools called in these sessions and their sub-agents, the one that failed most often first."""
    calls: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    failing: dict[str, set[int]] = defaultdict(set)
    session_of = {member: family.row.id for family in families for member in family.members}
    for member, name, called, failed in by_session(connection, session_of):
        tool = one_line(name or NO_TOOL, LABEL)
        calls[tool] += called
        failures[tool] += failed
        if failed:
            failing[tool].add(session_of[member])
    found = (
        ReportedTool(tool=tool, calls=called, failed=failures[tool], sessions=len(failing[tool]))
        for tool, called in calls.items()
    )
    return sorted(found, key=lambda tool: (-tool.failed, -tool.calls, tool.tool))


def deeds(connection: sqlite3.Connection, families: Sequence[Family]) -> list[ReportedDeeds]:
    """Return what these sessions and their sub-agents did, by kind."""
    session_of = {member: family.row.id for family in families for member in family.members}
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    where: dict[str, set[int]] = defaultdict(set)
    for kind, number, failures, session in landmarks.totals(connection, session_of):
        counts[kind] += number
        failed[kind] += failures
        where[kind].add(session_of[session])
    return [
        ReportedDeeds(kind=kind, count=counts[kind], failed=failed[kind], sessions=len(where[kind]))
        for kind in LandmarkKind
        if counts[kind]
    ]


def detectors(insights: Iterable[Sequence[Insight]]) -> list[ReportedDetector]:
    """Return how often each detector found something, given the findings of each session, the most frequent first."""
    sessions: Counter[str] = Counter()
    findings: Counter[tuple[str, Lens]] = Counter()
    critical: Counter[str] = Counter()
    for of_session in insights:
        sessions.update({one.detector for one in of_session})
        findings.update((one.detector, one.lens) for one in of_session)
        critical.update(one.detector for one in of_session if one.severity == "Critical")
    table = (
        ReportedDetector(detector=name, lens=lens, sessions=sessions[name], findings=count, critical=critical[name])
        for (name, lens), count in findings.items()
    )
    return sorted(table, key=lambda row: (-row.sessions, -row.findings, row.detector))
