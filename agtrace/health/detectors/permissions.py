"""Findings about permissions that the model didn't have."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.events import Outcome
from agtrace_schema.patterns import later

from agtrace.health.facts.labels import named
from agtrace.health.facts.refusals import denied_by_rule
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_FEWEST, _SHARE, _SHOWN = 3, 0.2, 3
_NOT_RUN = later(r"(?:<tool_use_error>)?PreToolUse:\S+ hook error: |(?:Error: )?Tool execution denied by policy\b")
"""How results of failed calls begin that a hook of Claude Code or a policy of Gemini CLI refused."""


@detector(
    "Failures",
    "At least 3 calls, and at least one in five, were refused by a rule, a hook or a sandbox, or because nobody was "
    "there to permit them.",
)
def find_denied_calls(history: History) -> Iterator[Finding]:
    """Find a session whose model lacked permissions."""
    denied = [call for call in history.calls if _is_denied(call)]
    if len(denied) < _FEWEST or len(denied) < _SHARE * len(history.calls):
        return
    yield Finding(
        severity="Warning",
        message=f"{len(denied):,} of {counted(len(history.calls), 'call')} were refused for lack of permission, "
        f"not by the human: {', '.join(list(dict.fromkeys(map(named, denied)))[:_SHOWN])}",
        count=len(denied),
        events=evidence([call.evidence for call in denied]),
        told=frozenset(call.evidence for call in denied),
        turn=denied[0].turn,
    )


def _is_denied(call: Call) -> bool:
    if call.outcome is Outcome.REJECTED:
        return denied_by_rule(call)
    return call.failed and _NOT_RUN.match(call.result) is not None
