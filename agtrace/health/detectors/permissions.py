"""Findings about permissions that the model didn't have."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace.health.facts.labels import named
from agtrace.health.facts.refusals import denied_by_rule
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import History
from agtrace.text.numbers import counted

_FEWEST, _SHARE = 3, 0.2


@detector(
    "Failures",
    "At least 3 calls, and one in five, were refused by a rule, a hook or a sandbox, or because nobody was there to "
    "permit them.",
)
def find_denied_calls(history: History) -> Iterator[Finding]:
    """Find a session whose model lacked permissions."""
    denied = [call for call in history.calls if denied_by_rule(call)]
    if len(denied) < _FEWEST or len(denied) < _SHARE * len(history.calls):
        return
    yield Finding(
        severity="Warning",
        message=f"{len(denied):,} of {counted(len(history.calls), 'call')} were refused for want of a permission, "
        f"not by the human: {named(denied[0])}",
        count=len(denied),
        events=evidence([call.evidence for call in denied]),
        told=frozenset(call.evidence for call in denied),
        turn=denied[0].turn,
    )
