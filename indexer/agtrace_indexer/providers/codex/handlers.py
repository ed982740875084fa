"""What reads a payload, and the handlers that need not know what the payload is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.events.json_values import compact_json, text
from agtrace_indexer.providers.notes import skip, unknown

Handler: TypeAlias = Callable[[Record, LogState, "int | None"], Sequence[Said]]
"""Makes drafts of a payload; the number is the time of its line."""


def skipping(kind: str) -> Handler:
    """Leave the record out, under this name."""
    return lambda payload, state, at: skip(kind, state)


def notifying(kind: str, *keys: str, ends_turn: bool = False) -> Handler:
    """A notification of the first of these fields that is a text, else of the whole payload."""

    def notify(payload: Record, state: LogState, at: int | None) -> list[Draft]:
        found = next((payload[key] for key in keys if text(payload.get(key))), None)
        rest = {key: value for key, value in payload.items() if key != "type"}
        return [Draft(Notification(kind, found or (_shown(rest) if rest else "")), at, ends_turn=ends_turn)]

    return notify


def unknown_record(kind: str, record: Record, state: LogState, at: int | None) -> list[Draft]:
    """A record of a type that no table has, shown as it stands but for what is encrypted."""
    return [Draft(unknown(kind, record, state, _shown), at)]


def _shown(value: Any) -> str:
    return compact_json(_readable(value))


def _readable(value: Any) -> Any:
    """A value without what nobody can read: encrypted contents."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if key != "encrypted_content"}
    return [_readable(inner) for inner in value] if isinstance(value, list) else value
