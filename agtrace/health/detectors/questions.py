"""Findings about questions of the model to the human."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_indexer.landmarks.questions import asked
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import asks_human
from agtrace.health.facts.labels import quoted
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History
from agtrace.text.numbers import counted

_NOBODY = later(
    r"\A\W*(?:No (?:response|answer|reply) (?:after|within|in) \d|(?:The )?(?:question|request) timed out"
    r"|Timed out (?:while )?waiting for (?:the )?(?:user|human|answer|response))",
    2,
)
"""How agents tell the model that nobody answered in time."""


@detector("Outcome", "The model asked the human, nobody answered in time, and it went on without an answer.")
def find_unanswered_question(history: History) -> Iterator[Finding]:
    """Find questions that the model had to answer itself."""
    found = [call for call in history.calls if asks_human(call) and _NOBODY.search(call.result[:200])]
    found = [call for call in found if _went_on(call, history)]
    if not found:
        return
    question = asked(found[0].arguments).name
    yield Finding(
        severity="Warning",
        message=f"Nobody answered {counted(len(found), 'question')} in time, and the model went on by itself"
        + (f": {quoted(question)}" if question else ""),
        count=len(found),
        events=evidence([call.evidence for call in found]),
        turn=found[0].turn,
    )


def _went_on(question: Call, history: History) -> bool:
    return any(call.turn == question.turn and call.event_index > question.event_index for call in history.calls)
