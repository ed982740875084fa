"""The envelope of an event, read once for all readers, and a reader that works for any event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import compact_json, text
from agtrace_indexer.providers.notes import skip


class Entry(NamedTuple):
    """One line of the log."""

    kind: str
    """Its type: `assistant.message`."""
    data: Record
    at: int | None
    """Milliseconds since 1970 UTC."""
    thread: str
    """"" for the session itself, else the id of the call that started the sub-agent."""
    id: str | None
    """The line's own id, if it is one that no other line has."""


Reader: TypeAlias = Callable[[Entry, LogState], Sequence[Said]]
"""Turns a line into drafts."""

_UNREADABLE = frozenset({"encryptedContent", "reasoningOpaque"})


def skipped(entry: Entry, state: LogState) -> list[Said]:
    """Leave a line out, which is counted."""
    return [*skip(entry.kind, state)]


def notifying(*keys: str, ends_turn: bool = False) -> Reader:
    """Make a reader that notifies of the first of these values that is a text, or else of all of the event."""

    def notify(entry: Entry, state: LogState) -> list[Said]:
        said = next((entry.data[key] for key in keys if text(entry.data.get(key))), None)
        return [notice(entry, said or readable(entry.data), ends_turn=ends_turn)]

    return notify


def notice(entry: Entry, said: str, *, ends_turn: bool = False) -> Draft:
    """Return a notification of an event's own type."""
    return Draft(Notification(entry.kind, said), entry.at, thread=entry.thread, ends_turn=ends_turn)


def readable(value: Any) -> str:
    """Write a value as JSON, without encrypted parts."""
    found = _legible(value)
    return compact_json(found) if found else ""


def _legible(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _legible(inner) for key, inner in value.items() if key not in _UNREADABLE}
    return [_legible(inner) for inner in value] if isinstance(value, list) else value
