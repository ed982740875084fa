"""Results of tool executions: the text says how a command ended, how long it took, and which agent was started."""

from __future__ import annotations

import re

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import milliseconds
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.notes import readable_json

_HEAD = 2_000
"""Characters in which the harness's own lines are searched for."""

_TIMES = later(r"Created At: (\S{1,40})\s+Completed At: (\S{1,40})")
_FAILED = later(r"\s*The command failed with exit code: (-?[0-9]{1,9})")
_SUCCEEDED = later(r"\s*The command completed successfully\.")
_AGENT = later(r'"conversationId":\s{0,9}"([A-Za-z0-9-]{1,64})"')

_BY_STATUS = {
    "DONE": Outcome.OK,
    "ERROR": Outcome.FAILED,
    "CANCELED": Outcome.INTERRUPTED,
    "CANCELLED": Outcome.INTERRUPTED,
    "INTERRUPTED": Outcome.INTERRUPTED,
    "PENDING": Outcome.RUNNING,
    "RUNNING": Outcome.RUNNING,
}


def tool_result(record: Record, call_id: str | None) -> ToolResult:
    """Read a result. A command whose end the text doesn't tell may still run."""
    content = record.get("content")
    said = content if isinstance(content, str) else "" if content is None else readable_json(content)
    head = said[:_HEAD]
    times = _TIMES.match(head)
    outcome, source, exit_code = _ending(record, head[times.end() :] if times else head)
    started = _AGENT.search(head) if record.get("type") == "INVOKE_SUBAGENT" else None
    return ToolResult(
        call_id, said, outcome, source, exit_code, _lasted(times), agent_id=identifier(started[1]) if started else None
    )


def _ending(record: Record, head: str) -> tuple[Outcome, OutcomeSource | None, int | None]:
    failed = _FAILED.match(head)
    if failed:
        return Outcome.FAILED, OutcomeSource.TEXT, int(failed[1])
    if _SUCCEEDED.match(head):
        return Outcome.OK, OutcomeSource.TEXT, 0
    status = record.get("status")
    outcome = _BY_STATUS.get(status, Outcome.UNKNOWN) if isinstance(status, str) else Outcome.UNKNOWN
    if outcome is Outcome.UNKNOWN or (outcome is Outcome.OK and record.get("type") == "RUN_COMMAND"):
        return Outcome.UNKNOWN, None, None
    return outcome, OutcomeSource.STRUCTURE, None


def _lasted(times: re.Match[str] | None) -> int | None:
    """Return how long an execution took, in whole seconds as the text has it."""
    begun, ended = (milliseconds(times[1]), milliseconds(times[2])) if times else (None, None)
    return None if begun is None or ended is None else max(ended - begun, 0)
