"""Whether a turn goes on, by single records of Pi's format (Pi, oh-my-pi, OpenClaw).

A response says why it stopped: `toolUse` before calls, `stop` or `length` at the end of the turn; what failed
(`error`) may be tried again. OpenClaw's older logs don't say it; a response without calls then says nothing.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_AT_WORK = ("user", "toolResult")
_ENDS = ("stop", "length", "aborted")
_CALLS = ("toolCall", "tool_use")


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return None
    role, reason = message.get("role"), message.get("stopReason")
    if role in _AT_WORK:
        return Phase.GOES_ON
    if role != "assistant":
        return None
    if reason == "toolUse" or _has_call(message.get("content")):
        return Phase.GOES_ON
    return Phase.OVER if reason in _ENDS else None


def _has_call(content: Any) -> bool:
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") in _CALLS for part in parts)
