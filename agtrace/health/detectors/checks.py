"""Findings about tests, builds and linters that were left failing."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.events import Outcome

from agtrace.health.detectors.ending import ending_of
from agtrace.health.facts.actions import command_of
from agtrace.health.facts.checks import is_check
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector
from agtrace.health.history import History
from agtrace.text.signatures import signature_of

_COMMAND, _ERROR = 60, 100


@detector(
    "Outcome",
    "The last test run, build or linter of the session failed, although the session then went on to another end.",
)
def find_failing_check(history: History) -> Iterator[Finding]:
    """Find a session that leaves its checks failing."""
    if ending_of(history).ending == "error_left":
        return
    checks = (call for call in reversed(history.calls) if call.outcome in (Outcome.OK, Outcome.FAILED))
    last = next(filter(is_check, checks), None)
    if last is None or not last.failed:
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
