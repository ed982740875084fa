"""What a reader of a payload is, and readers that work for any payload; `record_types.py` says which reads which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import compact_json, text
from agtrace_indexer.providers.notes import skip, unknown

Handler: TypeAlias = Callable[[Record, LogState, "int | None"], Sequence[Said]]
"""Turns a payload into drafts; the number is the time of its line."""


def skipping(kind: str) -> Handler:
    """Make a handler that leaves the record out, noted under this name."""
    return lambda payload, state, at: skip(kind, state)


def notifying(kind: str, *keys: str, ends_turn: bool = False) -> Handler:
    """Make a handler that notifies of the first of these fields that is a text, or else of the whole payload."""

    def notify(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        found = next((payload[key] for key in keys if text(payload.get(key))), None)
        rest = {key: value for key, value in payload.items() if key != "type"}
        return [Draft(Notification(kind, found or (_shown(rest) if rest else "")), at, ends_turn=ends_turn)]

    return notify


def unknown_record(kind: str, record: Record, state: LogState, at: int | None) -> list[Draft]:
    """Keep a record whose type is in no table, without its encrypted parts."""
    return [Draft(unknown(kind, record, state, _shown), at)]


def _shown(value: Any) -> str:
    return compact_json(_readable(value))


def _readable(value: Any) -> Any:
    """Return a value without encrypted contents, which nobody can read."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if key != "encrypted_content"}
    return [_readable(inner) for inner in value] if isinstance(value, list) else value
