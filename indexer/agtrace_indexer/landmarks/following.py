"""From calls to their results: what each execution may leave is remembered until its output tells what it left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from agtrace_schema.events import Json, Outcome, ToolCall, ToolResult
from agtrace_schema.landmarks import Evidence, Landmark, LandmarkKind, Verdict

from agtrace_indexer.events.commands import Command
from agtrace_indexer.events.json_values import remember
from agtrace_indexer.events.tools import Tools
from agtrace_indexer.landmarks import verdicts
from agtrace_indexer.landmarks.attempts import attempts, restored, stored
from agtrace_indexer.landmarks.questions import answered, question_landmark
from agtrace_indexer.landmarks.recognition import landmarks

Remembered = dict[str, list[Any]]
"""Id of a call -> [its event_index, [attempts], whether a script makes them, what it printed so far], or
[its event_index, what it asks the human]. JSON values only."""

_MOST = 256
_KEPT = 4_000
"""Characters that are kept of what an execution printed that goes on."""

_CHECKS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)

COMPACTION = Landmark(LandmarkKind.COMPACTION, None, evidence=Evidence.RECORD)


class Marks(NamedTuple):
    """All landmarks of an event as far as they are known now; they replace those that were told of it before."""

    event_index: int
    landmarks: list[Landmark]
    check_failed: bool = False
    """Whether another check failed according to what it printed, though a pipe hides its end."""


def of_call(
    call: ToolCall, command: Command | None, arguments: Json, event_index: int, tools: Tools, remembered: Remembered
) -> Marks | None:
    """Remember what a call may leave, by its arguments without secrets; a question is one from the start."""
    if call.call_id is None:
        return None
    if call.name in tools.questioning:
        question = question_landmark(arguments)
        remember(remembered, call.call_id, [event_index, question.name], _MOST)
        return Marks(event_index, [question])
    found = attempts(command.text) if command else []
    if command and (found or verdicts.hides_check(command)):
        remember(remembered, call.call_id, [event_index, stored(found), command.in_script, ""], _MOST)
    return None


def of_result(result: ToolResult, text: str, told: Iterable[Landmark], call: int | None, remembered: Remembered,
              *, may_change: bool) -> Marks | None:  # fmt: skip
    """Return what a call left, by its result: `text` is its output without secrets, `told` what the log says itself.

    `call` is the event_index of the call; `may_change`: whether a later version of the result may come.
    """
    noted = remembered.get(result.call_id or "")
    if noted is None or noted[0] != call:
        return Marks(call, list(told)) if told and call is not None else None
    goes_on = result.outcome is Outcome.RUNNING
    if goes_on and len(noted) > 2:
        noted[3] = text[-_KEPT:]
    elif not may_change:
        del remembered[result.call_id or ""]
    return Marks(noted[0], _together(_of(noted, text, result.outcome), told), _hidden_failure(noted, text))


def of_ending(call_id: str, outcome: Outcome, text: str, remembered: Remembered) -> Marks | None:
    """Return what an execution left that went on behind its result: `text` is what it printed at its end."""
    noted = remembered.pop(call_id, None)
    if noted is None or len(noted) == 2:
        return None
    printed = f"{noted[3]}\n{text}" if noted[3] else text
    return Marks(noted[0], _of(noted, printed, outcome), _hidden_failure(noted, printed))


def tell_of_failure(marks: Marks | None) -> bool:
    """Whether a test run, a build or another check failed according to its output, whatever the command's end says.

    The end of `pytest | tail` is that of `tail`.
    """
    if marks is None:
        return False
    return marks.check_failed or any(
        landmark.kind in _CHECKS and landmark.verdict is Verdict.FAILED for landmark in marks.landmarks
    )


def _hidden_failure(noted: list[Any], text: str) -> bool:
    return len(noted) > 2 and not noted[1] and verdicts.check_failed(text)


def _of(noted: list[Any], text: str, outcome: Outcome) -> list[Landmark]:
    if len(noted) == 2:
        return [answered(noted[1], text, outcome)]
    return landmarks(restored(noted[1]), text, outcome, in_script=noted[2])


def _together(found: list[Landmark], told: Iterable[Landmark]) -> list[Landmark]:
    """Add what the log says itself to what was found, once: it may name what was found without a name."""
    for landmark in told:
        same = [n for n, one in enumerate(found) if one.kind is landmark.kind and one.name in (landmark.name, None)]
        if not same:
            found.append(landmark)
        else:
            one = found[same[0]]
            found[same[0]] = landmark._replace(detail=one.detail or landmark.detail)
    return found
