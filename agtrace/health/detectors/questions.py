"""Findings about questions of the model to the human."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from agtrace_indexer.landmarks.questions import asked
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import asks_human, only_reads
from agtrace.health.facts.labels import quoted
from agtrace.health.facts.questions import asks_to_go_on
from agtrace.health.facts.tool_names import own_name
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import Call, History, Message
from agtrace.text.numbers import counted

_NOBODY = later(
    r"\A\W*(?:No (?:response|answer|reply) (?:after|within|in) \d|(?:The )?(?:question|request) timed out"
    r"|Timed out (?:while )?waiting for (?:the )?(?:user|human|answer|response))",
    re.IGNORECASE,
)
"""How agents tell the model that nobody answered in time."""
_CODEX_ASKS, _CODEX_NOBODY = "request_user_input", later(r'\A\s*\{\s*"answers"\s*:\s*\{\s*\}\s*\}\s*\Z')
"""The tool of Codex that asks: after two minutes without an answer it returns none. (Gemini CLI has no such limit.)"""


@detector("Outcome", "The model asked the human, nobody answered in time, and it went on without an answer.")
def find_unanswered_question(history: History) -> Iterator[Finding]:
    """Find questions that the model had to answer itself."""
    found = [call for call in history.calls if _nobody_answered(call) and _went_on(call, history)]
    if not found:
        return
    question = asked(found[0].arguments).name
    yield Finding(
        severity="Warning",
        message=f"Nobody answered {counted(len(found), 'question')} in time, and the model went on without an answer"
        + (f": {quoted(question)}" if question else ""),
        count=len(found),
        events=evidence([call.evidence for call in found]),
        turn=found[0].turn,
    )


def _nobody_answered(call: Call) -> bool:
    if not asks_human(call):
        return False
    silent = _CODEX_NOBODY if own_name(call.tool) == _CODEX_ASKS else _NOBODY
    return silent.search(call.result[:200]) is not None


def _went_on(question: Call, history: History) -> bool:
    """Whether the model did something before it got an answer, not only looked at things and asked again."""
    looked = False
    said = ""
    begin = bisect_right(history.entries, question.evidence, key=lambda entry: entry.event_index)
    for entry in islice(history.entries, begin, None):
        if entry.turn not in (None, question.turn):
            break
        if isinstance(entry, Message):
            said = entry.text
        elif isinstance(entry, Call) and entry.tool == question.tool:
            if not _nobody_answered(entry):
                return False
        elif isinstance(entry, Call):
            if not only_reads(entry):
                return True
            looked = True
    return looked and bool(said) and not asks_to_go_on(said)
