"""The score: 100 minus what each part of a session's health costs.

Failures and loops cost by their share of the tool calls, so that a long session isn't worse just for being long; how it
ended costs the same for every session. What isn't known costs nothing and says so; if nothing can be judged there is
no score at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agtrace_schema.analysis import Ending, ScorePart, SessionEnding

from agtrace.health.finding import Detector, Finding
from agtrace.text.numbers import counted

Found = tuple[Detector, Finding]

OUTCOME, FAILURES, LOOPS, CONTEXT, TIME = 30, 30, 20, 15, 5
"""The most points that each part can cost."""

_ENDINGS: dict[Ending, int] = {
    "finished": 0, "question_left": 0, "error_left": 20, "tool_left": 20, "interrupted": 5, "abandoned": 15,
    "unknown": 0,
}  # fmt: skip
_ENDED: dict[Ending, str] = {
    "finished": "the model had the last word", "question_left": "the model waits for the human",
    "error_left": "the last attempt failed", "tool_left": "the last call has no result",
    "interrupted": "the human stopped it", "abandoned": "the last request has no answer",
    "unknown": "how it ended isn't known",
}  # fmt: skip
_NOTHING_SAID = 30
"""The cost of a final error after which the model didn't say anything."""

_ENOUGH_FAILURES = 3
"""Fewer failures cost proportionally less: one failure of one call says little."""

_SHARE_THAT_COSTS_ALL = 0.5
_COSTS = {"Critical": 6, "Warning": 3, "Info": 0}
_LOOPS_WITHOUT_CALLS = 0.25
"""The share of a turn that counts as lost to a loop without tool calls (a monologue, the same request again)."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The facts that the score is made from, for one session without its sub-agents."""

    calls: int
    """Tool calls, without probes."""
    failed: int
    """Calls that failed, or never got a result although the session went on."""
    turns: int
    ending: SessionEnding
    found: tuple[Found, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Score:
    """A session's score with its parts; None, with the reason, if there is nothing to judge."""

    score: int | None
    unscored: str | None
    parts: list[ScorePart]


def score(session: Examined, agents: Sequence[Examined] = ()) -> Score:
    """Return the score of a session with its sub-agents rolled up; only the session's own ending counts."""
    every = [session, *agents]
    calls, failed = sum(one.calls for one in every), sum(one.failed for one in every)
    found = [pair for one in every for pair in one.found]
    unscored = _unscored(session, calls, found)
    if unscored:
        return Score(None, unscored, [])
    parts = [
        _outcome(session),
        _failures(calls, failed),
        _loops(found, calls, sum(one.turns for one in every)),
        _weighed(found, "TokenUsage", CONTEXT),
        _weighed(found, "Time", TIME),
    ]
    return Score(100 - sum(part.lost for part in parts), None, parts)


def _unscored(session: Examined, calls: int, found: Iterable[Found]) -> str | None:
    if calls or session.ending.ending not in ("finished", "question_left", "unknown"):
        return None
    if any(finding.severity != "Info" for _, finding in found):
        return None
    if session.ending.ending == "unknown":
        return "no tool was called, and how it ended isn't known"
    return "no tool was called: there is nothing to judge except that the model answered"


def _outcome(session: Examined) -> ScorePart:
    lost = _ENDINGS[session.ending.ending]
    critical = any(f.severity == "Critical" for d, f in session.found if d.name in ("ended_on_failure", "api_errors"))
    if session.ending.ending == "error_left" and critical:
        lost = _NOTHING_SAID
    return ScorePart(part="outcome", lost=lost, of=OUTCOME, why=_ENDED[session.ending.ending])


def _failures(calls: int, failed: int) -> ScorePart:
    if not calls:
        return ScorePart(part="failures", lost=0, of=FAILURES, why="no tool was called")
    weight = min(1.0, failed / _ENOUGH_FAILURES)
    lost = round(FAILURES * weight * min(1.0, failed / calls / _SHARE_THAT_COSTS_ALL))
    why = f"{failed:,} of {counted(calls, 'tool call')} failed ({failed / calls:.0%})" if failed else "nothing failed"
    return ScorePart(part="failures", lost=lost, of=FAILURES, why=why)


def _loops(found: Iterable[Found], calls: int, turns: int) -> ScorePart:
    loops = [finding for detector, finding in found if detector.lens == "Loops" and finding.severity != "Info"]
    if not loops:
        return ScorePart(part="loops", lost=0, of=LOOPS, why="no loops")
    caught = sum(finding.caught for finding in loops)
    without = sum(not finding.caught for finding in loops)
    share = caught / max(calls, 1) + without * _LOOPS_WITHOUT_CALLS / max(turns, 1)
    lost = round(LOOPS * min(1.0, share / _SHARE_THAT_COSTS_ALL))
    caught_in = f", with {caught:,} of {counted(calls, 'tool call')}" if caught else ""
    return ScorePart(part="loops", lost=lost, of=LOOPS, why=f"{counted(len(loops), 'loop')}{caught_in}")


def _weighed(found: Iterable[Found], lens: str, most: int) -> ScorePart:
    """Return the cost of a lens's findings, by their severity."""
    of_lens = [(detector, finding) for detector, finding in found if detector.lens == lens]
    costly = {detector.name for detector, finding in of_lens if _COSTS[finding.severity]}
    lost = min(most, sum(max(_COSTS[f.severity] for d, f in of_lens if d.name == name) for name in costly))
    why = ", ".join(sorted(name.replace("_", " ") for name in costly)) or "nothing"
    return ScorePart(part="context" if lens == "TokenUsage" else "time", lost=lost, of=most, why=why)
