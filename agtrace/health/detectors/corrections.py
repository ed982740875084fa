"""Findings about the human correcting the model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from agtrace.health.facts.actions import counted_attempts
from agtrace.health.facts.corrections import Correction, corrections
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import History
from agtrace.text.numbers import counted

_CRITICAL = 3
_SHOWN = 160


@detector(
    "Outcome",
    "The human refused a call, or said that the work was wrong, wasn't what was asked for, or should be undone.",
    version=2,
)
def find_corrections(history: History) -> Iterator[Finding]:
    """Find what the human corrected, as one finding with the human's own words."""
    found = corrections(history)
    if not found:
        return
    spoken = [one for one in found if not one.silent]
    said = f"The human refused {counted(len(found), 'call')} without a word{_before(history, found[0])}: "
    said += found[0].quote
    if spoken:
        shown = " and ".join(quoted(one.quote, _SHOWN // len(spoken[:2])) for one in spoken[:2])
        said = f"The human objected to the work {counted(len(found), 'time')}: {shown}"
    yield Finding(
        severity="Critical" if len(found) >= _CRITICAL else "Warning",
        message=said,
        count=len(found),
        events=evidence([one.event_index for one in found]),
        turn=found[0].turn,
    )


def _before(history: History, refused: Correction) -> str:
    """Return a clause with the failed attempts just before a refused call, if there were any."""
    before = [attempt for attempt in counted_attempts(history) if attempt.last_event < refused.event_index]
    failed = len(list(takewhile(lambda attempt: attempt.failed, reversed(before))))
    return f", after {counted(failed, 'failed attempt')}" if failed else ""
