"""Findings about what the model had set itself to do."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.patterns import later

from agtrace.health.detectors.ending import ending_of
from agtrace.health.facts.actions import command_of, only_reads
from agtrace.health.facts.labels import quoted
from agtrace.health.facts.todos import todos
from agtrace.health.finding import Finding, detector
from agtrace.health.history import History

_CHECKING = later(r"\s*(?:re-?|manually |fully |finally )?(?:tests?|testing|verify|check|validate|confirm|try)\b", 2)
"""Things to do that check the work."""


@detector(
    "Outcome",
    "The model had the last word although a test or check on its own list was still open, and it ran nothing after it "
    "last changed that list.",
)
def find_open_checks(history: History) -> Iterator[Finding]:
    """Find checks that the model had set itself and left out."""
    left = todos(history)
    checks = [what for what in left.open if _CHECKING.match(what)] if left else []
    if left is None or not checks or ending_of(history).ending != "finished":
        return
    after = (call for call in history.calls if call.event_index > left.event_index)
    if any(command_of(call) is not None and not only_reads(call) for call in after):
        return
    yield Finding(
        severity="Warning",
        message=f"The model finished with {len(left.open)} of {left.of} things on its own list open, and checks among "
        f"them: {quoted(checks[0])}",
        count=len(checks),
        events=(left.event_index,),
    )
