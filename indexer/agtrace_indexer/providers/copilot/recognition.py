"""Recognising Copilot's events: their envelope, and the producer that the first of them names."""

from __future__ import annotations

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import fields, text

_TYPES = frozenset({
    "session.start", "session.resume", "session.model_change", "user.message", "assistant.message",
    "assistant.turn_start", "tool.execution_start", "tool.execution_complete", "system.message", "hook.start",
})  # fmt: skip
"""The types of which one is among the first lines of every log."""


def is_event(record: Record) -> bool:
    """Whether this is an event of one of these types, in Copilot's envelope."""
    kind = record.get("type")
    return (
        isinstance(kind, str)
        and kind in _TYPES
        and isinstance(record.get("data"), dict)
        and isinstance(record.get("id"), str)
        and isinstance(record.get("timestamp"), str)
        and "parentId" in record
    )


def producer(record: Record) -> str | None:
    """Return the program that wrote a log, `copilot-agent` or `copilot-chat`; only the first line names it."""
    return text(fields(record.get("data")).get("producer")) if record.get("type") == "session.start" else None
