"""The score: 100 minus what each part of a session's health cost the human.

What the human corrected weighs most, then how it ended, then checks that were left failing, failed calls and loops.
Each failure costs less than the one before, so that a long session isn't lost for being long. What isn't known costs
nothing and says so; if nothing can be judged there is no score at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2

from agtrace_schema.analysis import Ending, ScorePart, SessionEnding
from msgspec import Struct

from agtrace.health.facts.checks import Checks
from agtrace.health.finding import Detector, Finding
from agtrace.text.numbers import counted

Found = tuple[Detector, Finding]

CORRECTIONS, OUTCOME, CHECKS, FAILURES, LOOPS = 50, 20, 10, 12, 8
"""The most points that each part can cost."""

_KEPT = 0.5
"""The share of what corrections can cost that each of them leaves."""
_HALF = 0.5
"""What counts for that much of a correction: a refusal without a word, and a review that found problems."""

_ENDINGS: dict[Ending, int] = {
    "finished": 0, "question_left": 0, "error_left": 15, "tool_left": 6, "interrupted": 10, "abandoned": 12,
    "unknown": 0,
}  # fmt: skip
"""A log that ends within a call says little: it may be a copy that was made there, or the work was never finished."""

_ENDED: dict[Ending, str] = {
    "finished": "the model had the last word", "question_left": "the model is waiting for the human",
    "error_left": "it ended on a failure", "tool_left": "the log ends within a call",
    "interrupted": "the human stopped it", "abandoned": "the last request has no answer",
    "unknown": "how it ended isn't known",
}  # fmt: skip

_DANGERS = {"Critical": 12, "Warning": 6, "Info": 0}
"""Points for the worst command that can't be taken back, or that others see, and that nobody asked for; what the human
had agreed to is Info."""

_A_FAILURE = 3
"""Points for the first call that failed or never got a result, and for each time that their number and one doubles."""

_LOOP = 4
"""Points for each loop."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The facts that the score is made from, for one session without its sub-agents."""

    calls: int
    """Tool calls, without probes."""
    failed: int
    """Calls that failed; not what was refused, interrupted, or reported later."""
    turns: int
    corrections: int
    """What the human corrected, refusals without a word among it."""
    silent: int
    """The refusals without a word."""
    reviews: int
    """Reviews by another model that found problems."""
    checks: Checks
    ending: SessionEnding
    found: tuple[Found, ...] = field(repr=False)
    unanswered: int = 0
    """Calls that never got a result although the session went on."""
    probes: int = 0
    """Calls that only looked whether something is there."""
    untold: bool = False
    """Whether its log doesn't say how its calls ended."""


class Score(Struct, frozen=True):
    """A session's score with its parts; None, with the reason, if there is nothing to judge."""

    score: int | None
    unscored: str | None
    parts: list[ScorePart]


def score(session: Examined, agents: Sequence[Examined] = ()) -> Score:
    """Return the score of a session with its sub-agents rolled up; only the session's own ending counts."""
    every = [session, *agents]
    calls = sum(one.calls for one in every)
    found = [pair for one in every for pair in one.found]
    unscored = _unscored(session, calls, found)
    if unscored:
        return Score(None, unscored, [])
    loops = [finding for detector, finding in found if detector.lens == "Loops" and finding.severity != "Info"]
    why = counted(len(loops), "loop") if loops else "no loops"
    parts = [
        _corrections(session),
        _outcome(session),
        _checks(every),
        _failures(every),
        ScorePart(part="loops", lost=min(LOOPS, _LOOP * len(loops)), of=LOOPS, why=why),
    ]
    return Score(100 - sum(part.lost for part in parts), None, parts)


def _unscored(session: Examined, calls: int, found: Iterable[Found]) -> str | None:
    if session.untold:
        return "its log doesn't say how its tool calls ended"
    if calls or session.ending.ending not in ("finished", "question_left", "unknown"):
        return None
    if any(finding.severity != "Info" for _, finding in found):
        return None
    if session.ending.ending == "unknown":
        return "no tool was called, and how it ended isn't known"
    return "no tool was called: there is nothing to judge except that the model answered"


def _corrections(session: Examined) -> ScorePart:
    times, reviews = session.corrections, session.reviews
    if not times + reviews:
        return ScorePart(part="corrections", lost=0, of=CORRECTIONS, why="the human corrected nothing")
    weight = times - _HALF * session.silent + _HALF * reviews
    lost = round(CORRECTIONS * (1 - _KEPT**weight))
    why = f"the human corrected the work {counted(times, 'time')} in {counted(session.turns, 'turn')}"
    if times and session.silent == times:
        why = f"the human refused {counted(times, 'call')} without a word"
    if reviews:
        found = f"{counted(reviews, 'review')} found problems"
        why = f"{why}, and {found}" if times else found
    return ScorePart(part="corrections", lost=lost, of=CORRECTIONS, why=why)


def _outcome(session: Examined) -> ScorePart:
    lost = _ENDINGS[session.ending.ending]
    critical = any(f.severity == "Critical" for d, f in session.found if d.name in ("ended_on_failure", "api_errors"))
    if session.ending.ending == "error_left" and critical:
        lost = OUTCOME  # nothing was said after it
    dangers = [finding for detector, finding in session.found if detector.name == "dangerous_commands"]
    risked = max((_DANGERS[finding.severity] for finding in dangers), default=0)
    why = _ENDED[session.ending.ending] + ("; dangerous commands were run that nobody had asked for" if risked else "")
    return ScorePart(part="outcome", lost=min(lost + risked, OUTCOME), of=OUTCOME, why=why)


def _checks(every: Sequence[Examined]) -> ScorePart:
    if any(detector.name == "unchecked_commit" for one in every for detector, _ in one.found):
        why = "what was changed after a failed check was committed unchecked"
        return ScorePart(part="checks", lost=CHECKS, of=CHECKS, why=why)
    turns, failing, failed = map(sum, zip(*(one.checks for one in every), strict=True))
    if not turns:
        return ScorePart(part="checks", lost=0, of=CHECKS, why="no tests, builds or linters were run")
    why = f"{counted(failed, 'check')} failed, but all passed in the end" if failed else "all passed"
    if failing:
        why = f"{failing} of {counted(turns, 'turn')} with checks ended with a failing check"
    return ScorePart(part="checks", lost=round(CHECKS * failing / turns), of=CHECKS, why=why)


def _failures(every: Sequence[Examined]) -> ScorePart:
    sums = [sum(of_each) for of_each in zip(*((e.calls, e.failed, e.unanswered, e.probes) for e in every), strict=True)]
    calls, failed, unanswered, probes = sums
    if not calls:
        return ScorePart(part="failures", lost=0, of=FAILURES, why="no tool was called")
    lost = min(FAILURES, round(_A_FAILURE * log2(1 + failed + unanswered)))
    phrases = (
        f"{failed:,} of {counted(calls, 'tool call')} failed ({failed / calls:.0%})" if failed else "",
        f"{unanswered:,} of {counted(calls, 'tool call')} never got a result" if unanswered else "",
    )
    why = ", ".join(filter(None, phrases)) or "nothing failed"
    return ScorePart(
        part="failures",
        lost=lost,
        of=FAILURES,
        why=f"{why}, not counting {counted(probes, 'probe')}" if probes else why,
    )
