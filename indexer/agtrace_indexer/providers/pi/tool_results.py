"""Results of tool executions: a flag says whether they failed, and the text how."""

from __future__ import annotations

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.pi.content import joined_text

COMMAND_RAN = "Command exited with code {}"
"""The last line of what a failed command printed, written by Pi."""

_ENDED = later(r"(?:\A|\n)Command exited with code (-?[0-9]{1,9})\s*\Z")
_STOPPED = later(r"(?:\A|\n)(?:Command|Operation) aborted\s*\Z|\ASkipped due to queued user message\.")
_BLOCKED = later(r"\ATool execution was blocked")
_TAIL = 200
"""Characters in which the last line is searched for."""


def tool_result(message: Record) -> ToolResult:
    """Read a result. Pi's shell fails if a command does, so its flag is that of the command (`bash.ts`)."""
    said = joined_text(message.get("content"))
    outcome, source = _outcome(message.get("isError"), said)
    ended = _ENDED.search(said[-_TAIL:]) if outcome is Outcome.FAILED else None
    return ToolResult(
        identifier(message.get("toolCallId")), said, outcome, source, exit_code=int(ended[1]) if ended else None
    )


def _outcome(failed: object, said: str) -> tuple[Outcome, OutcomeSource | None]:
    if failed is False:
        return Outcome.OK, OutcomeSource.STRUCTURE
    if failed is not True:
        return Outcome.UNKNOWN, None
    if _STOPPED.search(said[:_TAIL]) or _STOPPED.search(said[-_TAIL:]):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    if _BLOCKED.match(said):
        return Outcome.REJECTED, OutcomeSource.TEXT
    return Outcome.FAILED, OutcomeSource.STRUCTURE
