"""Results of tool executions in Claude Code's logs: their outcome, text, and the agent they started.

A result is a `tool_result` block; its line may also have a structured copy, `toolUseResult`, which is an object, or
a string for errors, or a list for MCP tools (indexer/README.md).
"""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.events import Notification, Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.json_values import count, fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.claude_code.background import is_started
from agtrace_indexer.providers.claude_code.content import joined_text

_REJECTIONS = (
    "The user doesn't want to proceed",
    "The user doesn't want to take this action",
    "User rejected",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
    "This Bash command contains multiple operations. The following part",
)
"""The beginnings of error texts if the user or the permission rules did not allow an execution."""

_BLOCKED = later(r"[^\n]{1,500} was blocked\. For security, Claude Code ")

_INTERRUPTION = later(r"(?:Exit code -?[0-9]{1,9}\s*)?\[Request interrupted by user")
_CANCELLED = later(
    r"(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call .{0,200} errored)", re.DOTALL
)
"""What a call of the same response failed; this one was never run."""
_LONGEST_START = 300
_EXIT_CODE = later(r"Exit code (-?[0-9]{1,9})\b")
_AGENT_ID = later(r"(?:Async agent launched successfully\.\s+)?agentId: ([A-Za-z0-9_-]+)")

_Ending = tuple[Outcome, OutcomeSource]
_OK = (Outcome.OK, OutcomeSource.STRUCTURE)
_FAILED = (Outcome.FAILED, OutcomeSource.STRUCTURE)


def tool_result(block: dict[str, Any], line: dict[str, Any]) -> ToolResult:
    """Read a `tool_result` block, with what else its line says about it."""
    output = joined_text(block.get("content"))
    failed = block.get("is_error") is True
    outcome, source = _ending(output, failed, line)
    detail = line.get("toolUseResult")
    exit_code = _EXIT_CODE.match(output) if failed else None
    return ToolResult(
        call_id=identifier(block.get("tool_use_id")),
        text=output,
        outcome=outcome,
        outcome_source=source,
        exit_code=int(exit_code.group(1)) if exit_code else None,
        duration_ms=_duration(detail),
        agent_id=_agent_id(block, detail),
    )


def spilled_output(result: ToolResult, line: dict[str, Any]) -> list[Notification]:
    """Return a notification of the file with the rest of a large output, if only the structure names it."""
    detail = fields(line.get("toolUseResult"))
    path = text(detail.get("persistedOutputPath"))
    if path is None or path in result.text:
        return []
    size = count(detail.get("persistedOutputSize"))
    return [Notification("persisted-output", path if size is None else f"{path}\n{size} bytes")]


def bare_result(detail: dict[str, Any]) -> ToolResult:
    """Read a line that is nothing but a `toolUseResult`, as in early published samples."""
    output = joined_text(detail.get("output", detail.get("content")))
    failed = detail.get("is_error") is True or detail.get("status") == "error"
    known = failed or detail.get("status") == "completed"
    return ToolResult(
        call_id=identifier(detail.get("tool_use_id")),
        text=output,
        outcome=(Outcome.FAILED if failed else Outcome.OK) if known else Outcome.UNKNOWN,
        outcome_source=OutcomeSource.STRUCTURE if known else None,
        duration_ms=_duration(detail),
        agent_id=_named_agent(detail.get("agentId")),
    )


def _ending(output: str, failed: bool, line: dict[str, Any]) -> _Ending:
    if text(line.get("toolDenialKind")):
        return Outcome.REJECTED, OutcomeSource.STRUCTURE
    detail = line.get("toolUseResult")
    if failed and (_is_refusal(output) or (isinstance(detail, str) and _is_refusal(detail))):
        return Outcome.REJECTED, OutcomeSource.TEXT
    if _INTERRUPTION.match(output, 0, _LONGEST_START) or (failed and _CANCELLED.match(output, 0, _LONGEST_START)):
        return Outcome.INTERRUPTED, OutcomeSource.TEXT
    if not failed and is_started(output, detail):
        return Outcome.RUNNING, OutcomeSource.TEXT if detail is None else OutcomeSource.STRUCTURE
    if isinstance(detail, dict) and detail.get("interrupted") is True:
        return Outcome.INTERRUPTED, OutcomeSource.STRUCTURE
    return _FAILED if failed else _OK


def _is_refusal(said: str) -> bool:
    return said.startswith(_REJECTIONS) or _BLOCKED.match(said) is not None


def _duration(detail: Any) -> int | None:
    if not isinstance(detail, dict):
        return None
    for key in ("totalDurationMs", "durationMs"):  # an agent's run, whose durationMs is only a part; any other
        duration = count(detail.get(key))
        if duration is not None:
            return duration
    seconds = detail.get("durationSeconds")
    return count(seconds * 1000) if isinstance(seconds, (int, float)) else None


def _agent_id(block: dict[str, Any], detail: Any) -> str | None:
    named, content = _named_agent(fields(detail).get("agentId")), block.get("content")
    if named or not isinstance(content, list):
        return named
    return next(filter(None, map(_agent_in_text, content)), None)


def _agent_in_text(part: Any) -> str | None:
    """Return the agent named in a block of its own; only agents' results are lists with such a block."""
    written = fields(part).get("text")
    found = _AGENT_ID.match(written) if isinstance(written, str) else None
    return _named_agent(found.group(1)) if found else None


def _named_agent(agent: Any) -> str | None:
    named = identifier(agent)
    return named and f"agent-{named}"
