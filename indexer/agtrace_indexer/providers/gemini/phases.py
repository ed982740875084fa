"""Whether a turn of Gemini CLI goes on, by single records of its log of JSON lines.

The CLI writes what the model said when it has said it, and a tool call once it has ended: after a text, the log doesn't
tell whether the turn is over or a tool runs or waits for permission. A call that is written before its end has a status.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_WAITS = "awaiting_approval"


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind = record.get("type")
    if kind in ("gemini", "model"):
        calls = record.get("toolCalls")
        states = [call.get("status") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        return Phase.ASKS_PERMISSION if _WAITS in states else Phase.GOES_ON
    if kind == "info":
        said = record.get("content")
        return Phase.OVER if isinstance(said, str) and said.startswith("Request cancelled.") else None
    return Phase.GOES_ON if kind == "user" and not _is_command(record.get("content")) else None


def _is_command(content: Any) -> bool:
    return isinstance(content, str) and content.startswith(("/", "?"))
