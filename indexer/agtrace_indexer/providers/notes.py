"""Notes in the state of a log: a limited number of values, and the types that a provider leaves out or doesn't know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState
from agtrace_indexer.events.json_values import compact_json


def remember(table: dict[str, Any], key: str, value: Any, limit: int) -> None:
    """Note a value under a key, and forget the oldest keys above the limit."""
    table[key] = value
    while len(table) > limit:
        del table[next(iter(table))]


def readable_json(value: Any) -> str:
    """Write a JSON value compactly, whatever it is: one that is nested too deeply can't be shown."""
    try:
        return compact_json(value)
    except RecursionError:
        return "[nested too deeply to be shown]"


def skip(kind: str, state: LogState) -> list[Draft]:
    """Leave the current record out: its type is noted, and it becomes no event."""
    state.skipped.append(kind)
    return []


def unknown(kind: str, value: Any, state: LogState, written: Callable[[Any], str] = compact_json) -> Notification:
    """Keep a record, or a part of one, that the provider doesn't know: its type is noted, and its JSON kept as text."""
    state.unknown.append(kind)
    return Notification(f"unknown/{kind}", written(value))
