"""The report: every selected session is examined, and the tallies are summed up."""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agtrace_indexer.index.opening import path_of
from agtrace_indexer.index.queries import sessions
from agtrace_schema.analysis import Analysis, Change, Insight, Report, ReportedSession, Timeline
from msgspec import Struct
from msgspec.structs import replace

from agtrace.health.analysis import Examined, Note, analysis_of, examinations, nobody
from agtrace.health.detectors import DETECTORS
from agtrace.health.examination import Experience, call_wrong, key_of
from agtrace.report.figures import Tally, days, deeds, detectors, figures, histogram, models, tools, usage_of_all
from agtrace.report.lessons import Case, learned
from agtrace.report.secrets import new_secrets
from agtrace.report.selection import Family, Selection, families, in_period, minute
from agtrace.report.wording import LOW
from agtrace.sessions.listing import shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.terms import believable
from agtrace.sessions.usage import Usage, usage_of
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.times import iso, zone

# -- comparison ------------------------------------------------------------------------------------
# What got better and what got worse in a period, compared with the one before it. Sessions differ from each other far
# more than one week differs from the next. So a difference counts as better or worse only if it is larger than chance
# would make it, more than twice its standard error, and not trivial. Every measure is a ratio of two sums over
# sessions, such as points per scored session or failed calls per call. Failures within a session often share a cause
# and aren't independent, so the error is estimated from how much the sessions of both periods together vary (quasi-
# likelihood: McCullagh and Nelder, Generalized Linear Models, chapter 9). Of shares of sessions, such as those below a
# score, Fisher's exact test says how likely chance makes such a difference, also of few sessions.

ENOUGH = 5
"""Scored sessions that each period needs for a verdict."""

_ERRORS = 2.0
"""The number of standard errors above which a difference isn't put down to chance."""

_RARE = 0.05
"""The probability of as large a difference by chance at which a difference of shares isn't put down to it."""

Unit = Literal["points", "share"]


class Periods(NamedTuple):
    """Two periods next to each other; milliseconds since 1970 UTC, both ends included."""

    before: tuple[int, int]
    now: tuple[int, int]
    halves: bool
    """Whether they are the two halves of the selected sessions' time, used if no beginning was asked for."""

    def sentence(self) -> str:
        """Say what is compared with what."""
        first, boundary, last = (minute(moment) for moment in (self.before[0], self.now[0], self.now[1]))
        first += f" ({zone(self.now[1])})"
        if self.halves:
            return f"the second half of the period, {boundary} to {last}, with the first half, from {first}"
        return f"{boundary} to {last} with the same length of time before, from {first}"


def periods(selection: Selection, started: Iterable[int], now: int) -> Periods | None:
    """Return the periods to compare: the one asked for, and the same length of time before it.

    If no beginning was asked for, they are the two halves of the time in which the selected sessions began. None if
    there is no time to divide.
    """
    if selection.since is not None:
        last = now if selection.until is None else selection.until
        length = last - selection.since + 1  # both ends are included
        before = (selection.since - length, selection.since - 1)
        return Periods(before, (selection.since, last), halves=False) if length > 0 else None
    moments = [moment for moment in started if moment]
    first, last = min(moments, default=0), max(moments, default=0)
    middle = first + (last - first) // 2
    return Periods((first, middle), (middle + 1, last), halves=True) if first < last else None


class _Measure(Struct, frozen=True):
    what: str
    unit: Unit
    of: Callable[[Tally], tuple[float, float]]
    """What a session adds to the two sums whose ratio is the measure."""
    more_is_better: bool
    trifle: float
    """Smaller differences are ignored."""


def _of_scored(tally: Tally, value: float) -> tuple[float, float]:
    return (0, 0) if tally.score is None else (value, 1)


_MEASURES = (
    _Measure("mean score", "points", lambda tally: _of_scored(tally, tally.score or 0), True, 3),
    _Measure(f"sessions below {LOW}", "share", lambda tally: _of_scored(tally, (tally.score or 0) < LOW), False, 0.05),
    _Measure("failed tool calls", "share", lambda tally: (tally.failed_calls, tally.tool_calls), False, 0.01),
    _Measure("ended on an error", "share", lambda tally: (tally.ending == "error_left", 1), False, 0.05),
    _Measure("sessions with corrections", "share", lambda tally: (tally.corrections > 0, 1), False, 0.05),
    _Measure("sessions with loops", "share", lambda tally: (tally.loops, 1), False, 0.05),
)


def changes(before: Sequence[Tally], now: Sequence[Tally]) -> list[Change]:
    """Return what changed; without verdicts if a side has too few scored sessions, empty if one has no sessions."""
    if not before or not now:
        return []
    judged = comparable(before, now)
    return [*(change for measure in _MEASURES for change in _measured(measure, before, now, judged)),
            *_amounts(before, now)]  # fmt: skip


def comparable(before: Sequence[Tally], now: Sequence[Tally]) -> bool:
    """Whether both sides have enough scored sessions for a verdict."""
    return min(sum(tally.score is not None for tally in side) for side in (before, now)) >= ENOUGH


def _measured(measure: _Measure, before: Sequence[Tally], now: Sequence[Tally], judged: bool) -> Iterator[Change]:
    then, today = (_Parts.of(measure, side) for side in (before, now))
    if not (then.below and today.below):
        return
    places = 1 if measure.unit == "points" else 4
    yield Change(
        what=measure.what,
        unit=measure.unit,
        before=float(round(then.ratio, places)),
        now=float(round(today.ratio, places)),
        verdict=_verdict(measure, then, today) if judged else "neither",
    )


class _Parts(NamedTuple):
    """The contributions of a period's sessions to the two sums of a measure."""

    each: list[tuple[float, float]]
    above: float
    below: float

    @classmethod
    def of(cls, measure: _Measure, tallies: Iterable[Tally]) -> _Parts:
        each = [part for part in map(measure.of, tallies) if part[1]]
        return cls(each, sum(part[0] for part in each), sum(part[1] for part in each))

    @property
    def ratio(self) -> float:
        return self.above / self.below


def _verdict(measure: _Measure, before: _Parts, now: _Parts) -> Literal["better", "worse", "same"]:
    difference = now.ratio - before.ratio
    if abs(difference) < measure.trifle or _may_be_chance(before, now):
        return "same"
    return "better" if (difference > 0) == measure.more_is_better else "worse"


def _may_be_chance(before: _Parts, now: _Parts) -> bool:
    each = (*before.each, *now.each)
    if all(above in (0, 1) and below == 1 for above, below in each):
        return _probability(int(before.above), int(before.below), int(now.above), int(now.below)) > _RARE
    return abs(now.ratio - before.ratio) <= _ERRORS * _standard_error(before, now)


def _probability(some: int, of: int, others: int, of_others: int) -> float:
    """Return how likely two shares differ at least as much by chance: Fisher's exact test, two-sided."""
    together, all_of = some + others, of + of_others
    least, most = max(0, together - of_others), min(of, together)
    ways = [math.comb(of, one) * math.comb(of_others, together - one) for one in range(least, most + 1)]
    seen = math.comb(of, some) * math.comb(of_others, others)
    return sum(way for way in ways if way <= seen) / math.comb(all_of, together)


def _standard_error(before: _Parts, now: _Parts) -> float:
    """Return the standard error of the difference of the ratios, assuming that only chance separates the periods."""
    ratio = (before.above + now.above) / (before.below + now.below)
    each = [*before.each, *now.each]
    spread = sum((above - ratio * below) ** 2 / below for above, below in each) / max(len(each) - 1, 1)
    return math.sqrt(spread / before.below + spread / now.below)


def _amounts(before: Sequence[Tally], now: Sequence[Tally]) -> Iterator[Change]:
    """Yield amounts that are more or less than before, which is neither better nor worse."""
    yield Change(what="sessions", before=float(len(before)), now=float(len(now)), verdict="neither")
    then, today = usage_of_all(before), usage_of_all(now)
    if then.total is not None and today.total is not None:
        yield Change(what="tokens", unit="tokens", before=float(then.total), now=float(today.total), verdict="neither")
    if then.cost is not None and today.cost is not None:
        yield Change(what="cost", unit="dollars", before=then.cost, now=today.cost, verdict="neither")


# -- the report --------------------------------------------------------------------------------------

ENOUGH_TO_RANK = 10
"""The scored sessions from which on each has a percentile."""

LESSONS = 10
"""The most lessons that a report has."""


def report(connection: sqlite3.Connection, asked: ReportQuery, note: Note = nobody) -> Report:
    """Examine the selected sessions and those of the period before, and sum them up; `note` as in `examine_all`."""
    selection = asked.selection
    every = families(connection, selection)
    chosen = in_period(every, selection.since, selection.until)
    seen = examine_all(connection, asked, chosen, note)
    tallies = [one.tally for one in seen]
    cases = (Case(family.row, told) for family, one in zip(chosen, seen, strict=True) for told in one.experiences)
    found, _ = learned(connection, cases)
    return Report(
        selection=selection.sentence(len(chosen)),
        figures=figures(tallies, selection.since, selection.until),
        **_comparison(connection, asked, every, tallies),
        scores=histogram(tallies),
        days=days(tallies),
        tools=tools(connection, chosen),
        models=models(tallies),
        detectors=detectors(one.insights for one in seen),
        deeds=deeds(connection, chosen),
        lessons=found[:LESSONS],
        undated=sum(not family.started_at for family in every),
        sub_agents=sum(len(family.members) - 1 for family in chosen),
        sessions=sorted(
            _with_percentiles([one.shown for one in seen]),
            key=lambda one: (one.score is None, one.score or 0, -one.failed_calls, one.session_id),
        ),
        versions={detector.name: detector.version for detector in DETECTORS},
        new_secrets=new_secrets(connection, selection, asked.now),
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


def _comparison(
    connection: sqlite3.Connection, asked: ReportQuery, every: Sequence[Family], tallies: Sequence[Tally]
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
        chosen = {one.row.id for one in in_period(every, asked.selection.since, asked.selection.until)}
        others = [one for one in in_period(every, *found.before) if one.row.id not in chosen]
        earlier = examine_all(connection, replace(asked, timelines=False), others)
        before, now = [one.tally for one in earlier], list(tallies)
    few = "" if comparable(before, now) else f"; no verdicts, as a side has fewer than {ENOUGH} scored sessions"
    return {
        "before": figures(before, *found.before),
        "later": figures(now, *found.now) if found.halves else None,
        "compared": found.sentence() + few,
        "changes": changes(before, now),
    }


# -- without dollars -------------------------------------------------------------------------------

_NONE: dict[str, Any] = {"cost_usd": None, "cost_made": None}


def without_dollars(report: Report) -> Report:
    """Return the same report without any cost: `figures.cost_made` is then None, and renderers leave costs out."""
    changed: dict[str, Any] = {
        "figures": replace(report.figures, **_NONE),
        "before": report.before and replace(report.before, **_NONE),
        "later": report.later and replace(report.later, **_NONE),
        "changes": [change for change in report.changes if change.unit != "dollars"],
        "days": [replace(day, cost_usd=None) for day in report.days],
        "models": [replace(model, cost_usd=None) for model in report.models],
        "sessions": [replace(session, **_NONE) for session in report.sessions],
    }
    return replace(report, **changed)


# -- the sessions -------------------------------------------------------------------------------------

INSIGHTS = 50
"""The most findings that a report shows of a session."""

ENTRIES_IN_ALL, FEWEST_ENTRIES, MOST_ENTRIES = 200_000, 50, 2_000
"""Limits of timeline entries: sessions share the first number; each gets between the second and the third."""


class ReportQuery(Struct, frozen=True):
    """What a report was asked for."""

    selection: Selection
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    timelines: bool = False
    behind: str | None = None
    """What the index doesn't have yet, as a sentence."""
    most_events: int | None = None
    """The most events to examine, in this process; None for all, on all cores."""


class ExaminedSession(NamedTuple):
    """An examined session."""

    tally: Tally
    shown: ReportedSession
    insights: list[Insight]
    """All findings, also those of its sub-agents."""
    experiences: list[Experience]


def examine_all(
    connection: sqlite3.Connection,
    asked: ReportQuery,
    chosen: Sequence[Family],
    note: Note = nobody,
    entries: int | None = None,
) -> list[ExaminedSession]:
    """Return each session as a report shows it. Raises `TooManyEvents`.

    `note` is called with how many sessions are examined, and the number of those that have to be; `entries` are the
    most that a timeline has.
    """
    most = entries or max(FEWEST_ENTRIES, min(MOST_ENTRIES, ENTRIES_IN_ALL // max(len(chosen), 1)))
    rows = sessions.in_rows(connection, (member for family in chosen for member in family.members))
    found = examinations(
        connection,
        rows,
        now=asked.now,
        prices=asked.prices,
        entries=most if asked.timelines else 0,
        most_events=asked.most_events,
        workers=asked.most_events is None,
        note=note,
    )
    top_of = {member: family.row.id for family in chosen for member in family.members}
    agents_of: dict[int, list[Examined]] = defaultdict(list)
    for row in rows:
        if top_of[row.id] != row.id:
            agents_of[top_of[row.id]].append(Examined(row, short_id(connection, row.uid), found[row.id]))
    used = usage_of(connection, asked.prices, top_of)
    projects = labels(connection)
    result = []
    for family in chosen:
        id, agents = family.row.id, agents_of[family.row.id]
        own = Examined(family.row, short_id(connection, family.row.uid), found[id])
        together = Usage()
        for member in family.members:
            if member in used:
                together.include(used[member])
        analysis = analysis_of(own, agents)
        tally = _tally(family, analysis, [own, *agents], together)
        project = None if family.row.project_id is None else projects[family.row.project_id]
        shown = _shown(family, analysis, tally, project, own.health.timeline)
        result.append(ExaminedSession(tally, shown, analysis.insights, own.health.experiences))
    return result


def _shown(
    family: Family, analysis: Analysis, tally: Tally, project: str | None, times: Timeline | None
) -> ReportedSession:
    row = family.row
    ended = believable(row.ended_at)
    return ReportedSession(
        session_id=analysis.session_id,
        provider=row.provider,
        kind=shown_kind(row),
        project=project,
        title=one_line(row.title or row.snippet or "(no request)", USER_MESSAGE),
        start_time=iso(family.started_at),
        duration_seconds=(ended - family.started_at) // 1000 if ended and family.started_at else None,
        active_seconds=row.active_ms // 1000 if family.started_at else None,
        ending=analysis.ending,
        score=analysis.score,
        unscored=analysis.unscored,
        parts=analysis.parts,
        turns=row.turn_count,
        tool_calls=tally.tool_calls,
        failed_calls=tally.failed_calls,
        total_tokens=tally.usage.total,
        tokens_made=tally.usage.tokens_made,
        cost_usd=tally.usage.cost,
        cost_made=tally.usage.cost_made,
        model=row.model and one_line(row.model, LABEL),
        agents=analysis.agents,
        insights=_insights_to_show(analysis.insights),
        total_insights=len(analysis.insights),
        detectors=Counter(insight.detector for insight in analysis.insights),
        severities=Counter(insight.severity for insight in analysis.insights),
        time=analysis.time,
        timeline=times,
    )


def _insights_to_show(insights: Sequence[Insight]) -> list[Insight]:
    """Return the findings to show, given the worst first: each detector's worst one, then the worst of the rest."""
    worst: dict[str, int] = {}
    for place, insight in enumerate(insights):
        worst.setdefault(insight.detector, place)
    others = sorted(set(range(len(insights))) - set(worst.values()))
    return [insights[place] for place in sorted([*worst.values(), *others][:INSIGHTS])]


def _tally(family: Family, analysis: Analysis, every: Sequence[Examined], usage: Usage) -> Tally:
    """Return the tally of a session, from the examinations of it and its sub-agents."""
    return Tally(
        started_at=family.started_at,
        score=analysis.score,
        ending=analysis.ending.ending,
        tool_calls=sum(one.row.tool_calls for one in every),
        failed_calls=sum(one.row.failed_calls for one in every),
        corrections=every[0].health.corrections,
        loops=any(insight.lens == "Loops" for insight in analysis.insights),
        usage=usage,
    )


def put_away(connection: sqlite3.Connection, session_id: str, wrong: Sequence[Mapping[str, Any]]) -> None:
    """Keep that these findings of a session, or of its sub-agents, are wrong; without any, that none of its own is."""
    keys: dict[str, set[str]] = {} if wrong else {session_id: set()}
    for one in wrong:
        if one["evidence"]:
            key = key_of(one["detector"], one["evidence"][0]["event_index"])
            keys.setdefault(one.get("session_id", session_id), set()).add(key)
    for id, of_session in keys.items():
        call_wrong(path_of(connection).parent, find_session(connection, id).uid, of_session)
