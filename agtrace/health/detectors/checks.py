"""Findings about tests, builds and linters that were left failing."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.landmarks.recognition import landmarks
from agtrace_schema.events import Outcome
from agtrace_schema.landmarks import LandmarkKind, Verdict

from agtrace.health.detectors.ending import ending_of
from agtrace.health.facts.actions import command_of, is_probe
from agtrace.health.facts.checks import is_check
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector
from agtrace.health.history import Call, History
from agtrace.text.shell_programs import LINTER
from agtrace.text.signatures import signature_of

_COMMAND, _ERROR = 60, 100
_RUNS = (LandmarkKind.TEST_RUN, LandmarkKind.BUILD)


@detector(
    "Outcome",
    "The last test run, build or linter of the session failed, although the session then went on to another end.",
)
def find_failing_check(history: History) -> Iterator[Finding]:
    """Find a session that leaves its checks failing."""
    if history.at_work or ending_of(history).ending == "error_left":
        return
    checks = (call for call in reversed(history.calls) if call.outcome in (Outcome.OK, Outcome.FAILED))
    last = next((call for call in checks if is_check(call) and not is_probe(call)), None)
    if last is None or not last.failed or _passed(last):
        return
    error = signature_of(last.result)
    yield Finding(
        severity="Warning",
        message=f"The last check failed, and none passed after it: {quoted(command_of(last) or '', _COMMAND)}"
        + (f", {quoted(error.line, _ERROR)}" if error else ""),
        count=1,
        events=(last.evidence,),
        turn=last.turn,
    )


def _passed(call: Call) -> bool:
    """Whether the tests and builds of a command that failed passed, as what it printed says: the rest of it failed."""
    command = command_of(call) or ""
    if LINTER.search(command):
        return False  # whose verdict isn't known apart
    found = landmarks(attempts(command), call.result, call.outcome)
    runs = [landmark for landmark in found if landmark.kind in _RUNS]
    return bool(runs) and all(landmark.verdict is Verdict.PASSED for landmark in runs)
