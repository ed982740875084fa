"""Whether a turn of Gemini CLI goes on, by single records of its log of JSON lines.

After a text of the model the log doesn't tell whether the turn is over: some versions write a tool call only once it
has ended. A call that is written before its end has a status.
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
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.startswith(("/", "?"))
