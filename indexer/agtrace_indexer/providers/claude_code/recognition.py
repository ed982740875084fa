"""Recognising Claude Code's lines by type and keys: other agents write the same types with other keys."""

from __future__ import annotations

from collections.abc import Callable

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import fields, text
from agtrace_indexer.providers.claude_code.messages import ROLES

_SIDE_LINES: dict[str, tuple[str, ...]] = {
    "summary": ("leafUuid",),
    "file-history-snapshot": ("messageId", "snapshot"),
    "file-history-delta": ("messageId",),
    "queue-operation": ("sessionId", "operation"),
    "last-prompt": ("sessionId",),
    "custom-title": ("sessionId", "customTitle"),
    "ai-title": ("sessionId", "aiTitle"),
    "agent-name": ("sessionId", "agentName"),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "pr-link": ("sessionId", "prUrl"),
    "frame-link": ("sessionId", "frameUrl"),
    "relocated": ("sessionId", "relocatedCwd"),
    "bridge-session": ("sessionId", "bridgeSessionId"),
    "worktree-state": ("sessionId", "worktreeSession"),
    "atis-latch": ("sessionId", "atis"),
}
"""The types of lines outside the chain, with the keys by which they are recognised."""


def is_own(kind: str, record: Record) -> bool:
    """Whether only Claude Code writes lines of this type with such keys."""
    if kind in _SIDE_LINES:
        return all(key in record for key in _SIDE_LINES[kind])
    recognizer = _CHAIN_LINES.get(kind)
    return recognizer is not None and recognizer(record)


def _has_identity(record: Record) -> bool:
    return any(isinstance(record.get(key), str) for key in ("timestamp", "sessionId", "uuid"))


def _is_spoken(record: Record) -> bool:
    message = record.get("message")
    if not isinstance(message, dict) or message.get("role", record["type"]) not in ROLES:
        return False
    return isinstance(message.get("content"), (str, list)) and "parts" not in message and _has_identity(record)


def _is_wrapped_message(record: Record) -> bool:
    message = fields(record.get("message"))
    known = isinstance(record.get("uuid"), str) and isinstance(record.get("sessionId"), str)
    return known and message.get("role") in ROLES and "content" in message


def _is_system(record: Record) -> bool:
    return "isSidechain" in record and isinstance(record.get("uuid"), str) and "systemPayload" not in record


_CHAIN_LINES: dict[str, Callable[[Record], bool]] = {
    "user": _is_spoken,
    "assistant": _is_spoken,
    "message": _is_wrapped_message,
    "tool_result": lambda record: isinstance(record.get("toolUseResult"), dict) and "uuid" in record,
    "system": _is_system,
    "attachment": lambda record: bool(text(fields(record.get("attachment")).get("type"))) and _has_identity(record),
    "progress": lambda record: "parentToolUseID" in record and isinstance(record.get("data"), dict),
}
