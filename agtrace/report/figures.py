"""The figures of many sessions, computed from a tally of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median_low

from agtrace_schema.analysis import Ending, Figures
from msgspec import Struct

from agtrace.sessions.usage import Usage
from agtrace.times import iso

LOW, GOOD = 60, 80
"""Scores below the first are low, from the second on good."""


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
