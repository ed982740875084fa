"""Findings about tests, builds and linters that were left failing."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import LandmarkKind, Verdict

from agtrace.health.detectors.ending import ending_of
from agtrace.health.facts.actions import command_of, is_probe
from agtrace.health.facts.checks import OF_THE_MACHINE, Kind, kinds_of
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History
from agtrace.text.signatures import signature_of

_COMMAND, _ERROR = 60, 100
_RUNS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)


@detector(
    "Outcome",
    "The last test run, build or linter of the session failed because of the code, not the machine; none of its kind "
    "passed after it, and the session didn't end on a failure.",
)
def find_failing_check(history: History) -> Iterator[Finding]:
    """Find a session that leaves its checks failing."""
    if history.at_work or ending_of(history).ending == "error_left":
        return
    left = _left_failing(history)
    if not left:
        return
    kind, last = max(left.items(), key=lambda one: one[1].event_index)
    error = signature_of(last.result)
    yield Finding(
        severity="Warning",
        message=f"The last {kind} failed: {quoted(command_of(last) or '', _COMMAND)}"
        + (f", {quoted(error.line, _ERROR)}" if error else ""),
        count=len(left),
        events=(last.evidence,),
        turn=last.turn,
    )


def _left_failing(history: History) -> dict[Kind, Call]:
    """Return the last check of each kind, if it failed."""
    left: dict[Kind, Call] = {}
    if not any(call.failed for call in history.calls):
        return left
    for call in history.calls:
        kinds = kinds_of(call) if call.outcome in (Outcome.OK, Outcome.FAILED) else ()
        if not kinds:
            continue
        if call.outcome is Outcome.OK or _passed(call):
            for kind in kinds:
                left.pop(kind, None)
                if kind == "test run":
                    left.pop("build", None)  # what is tested was built
        elif not is_probe(call) and not _is_of_the_machine(call):
            left |= dict.fromkeys(kinds, call)
    return left


def _is_of_the_machine(call: Call) -> bool:
    error = signature_of(call.result)
    return OF_THE_MACHINE.search(call.result if error is None else error.line) is not None


def _passed(call: Call) -> bool:
    """Whether the tests and builds of a command that failed passed, as what it printed says: the rest of it failed."""
    if "linter" in kinds_of(call):
        return False  # whose verdict isn't known apart
    found = landmarks(attempts(command_of(call) or ""), call.result, call.outcome)
    runs = [landmark for landmark in found if landmark.kind in _RUNS]
    return bool(runs) and all(landmark.verdict is Verdict.PASSED for landmark in runs)
