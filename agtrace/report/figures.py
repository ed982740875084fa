"""The figures of many sessions, made of what is remembered of each one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median_low

from agtrace_schema.analysis import Ending, Figures

from agtrace.sessions.query import iso
from agtrace.usage.usage import Usage

LOW, GOOD = 60, 80
"""A score below the first is a low one, from the second on a good one."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What the figures need of one session, its sub-agents included."""

    started_at: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    score: int | None
    ending: Ending
    tool_calls: int
    failed_calls: int
    loops: bool
    usage: Usage


def usage_of_all(tallies: Sequence[Tally]) -> Usage:
    """What these sessions used together."""
    together = Usage()
    for tally in tallies:
        together.include(tally.usage)
    return together


def figures(tallies: Sequence[Tally], since: int | None, until: int | None) -> Figures:
    """The figures of these sessions; the period is that which was asked for, in milliseconds since 1970 UTC."""
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
        sessions_with_loops=sum(tally.loops for tally in tallies),
        total_tokens=used.total or 0,
        cost_usd=used.cost,
        cost_made=used.cost_made,
    )


def mean_score(tallies: Sequence[Tally]) -> float | None:
    """The mean of the scores to a tenth; None where no session has one."""
    scores = [tally.score for tally in tallies if tally.score is not None]
    return round(mean(scores), 1) if scores else None


def endings(tallies: Sequence[Tally]) -> dict[Ending, int]:
    """How many sessions ended in which way, the most frequent first."""
    return dict(Counter(tally.ending for tally in tallies).most_common())
