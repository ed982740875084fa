"""Results of tool executions: their outcome, and what the model was given."""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.events import Outcome, OutcomeSource, ToolResult
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder, items
from agtrace_indexer.events.strings import identifier

_DECLINED = "The user has declined to run this tool"
_INTERRUPTED = later(r"\binterrupted by the user\b", re.IGNORECASE)
_LONGEST_NOTE = 1_000


def tool_result(block: Record) -> ToolResult:
    """Read a `toolResponse`: an execution that never began is an `error`, one that failed has `isError`."""
    result = fields(block.get("toolResult"))
    value = result.get("value")
    content = value if isinstance(value, list) else items(fields(value).get("content"))
    said = "\n".join(filter(None, map(part_text, content)))
    if not said:
        said = _plain(result.get("error") if "error" in result else None if content else value)
    outcome, source = _outcome(result, fields(value).get("isError") is True, said)
    return ToolResult(identifier(block.get("id")), said, outcome, source)


def _outcome(result: Record, failed: bool, said: str) -> tuple[Outcome, OutcomeSource | None]:
    status = result.get("status")
    if status not in ("error", "success"):
        return Outcome.UNKNOWN, None
    if said.startswith(_DECLINED):
        return Outcome.REJECTED, OutcomeSource.TEXT
    if status == "error" or failed:
        if _INTERRUPTED.search(said[:_LONGEST_NOTE]):
            return Outcome.INTERRUPTED, OutcomeSource.TEXT
        return Outcome.FAILED, OutcomeSource.STRUCTURE
    return Outcome.OK, OutcomeSource.STRUCTURE


def part_text(part: Any) -> str:
    """Read a part of a content as text; an image becomes a placeholder."""
    told = fields(part)
    if isinstance(told.get("text"), str):
        return str(told["text"])
    if told.get("type") == "image":
        return image_placeholder(told.get("mimeType"), told.get("data"))
    return _plain(part)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value in (None, {}, []) else compact_json(value)
