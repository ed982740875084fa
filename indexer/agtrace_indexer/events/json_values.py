"""Reading values that logs write in several ways: times, numbers, images, loosely typed fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

_LAST_SECOND_IN_S = 100_000_000_000  # above it, an epoch is in milliseconds


def milliseconds(value: Any) -> int | None:
    """Read a time as milliseconds since 1970 UTC, from ISO 8601 (UTC if it has no zone) or an epoch in s or ms.

    Return None for anything else, and for 1970 itself, which only comes from a clock that was never set. Never raise.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        try:
            return round(moment.timestamp() * 1000) or None
        except (OverflowError, ValueError):
            return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e15:
        return round(value if value > _LAST_SECOND_IN_S else value * 1000) or None
    return None


def count(value: Any) -> int | None:
    """Read a non-negative whole number; None for anything else."""
    if type(value) is int:  # a bool is not a number
        return value if 0 <= value < 2**53 else None
    return int(value) if isinstance(value, float) and 0 <= value < 2**53 else None


def text(value: Any) -> str | None:
    """Read a non-empty string; None for anything else."""
    return value if isinstance(value, str) and value else None


def first_text(*values: Any) -> str | None:
    """Read the first of these that is a non-empty string; None if there is none."""
    for value in values:
        if isinstance(value, str) and value:
            return value
    return None


def fields(value: Any) -> dict[str, Any]:
    """Read an object; anything else gives an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Read an array; anything else gives an empty one."""
    return value if isinstance(value, list) else []


def as_list(value: Any) -> list[Any]:
    """Read an array, or a single value in place of an array; None gives an empty one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def by_name(instance: Any) -> dict[str, Any]:
    """Return those of a struct's values that a new one doesn't have, by field name: the values themselves."""
    new = type(instance)()
    values = ((name, getattr(instance, name)) for name in instance.__struct_fields__)
    return {name: value for name, value in values if value != getattr(new, name)}


def compact_json(value: Any) -> str:
    """Write a JSON value without spaces and without escaping non-ASCII letters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def digest(said: str) -> str:
    """Return a short hash of a text, 16 hexadecimal digits, to compare it with another one later."""
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def image_placeholder(media_type: Any, base64_data: Any) -> str:
    """Return a text that stands for an image: its type and its size in bytes, computed from the base64 text."""
    size = len(base64_data) * 3 // 4 if isinstance(base64_data, str) else 0
    return f"[image: {media_type if isinstance(media_type, str) else 'unknown type'}, {size} bytes]"


def remember(table: dict[str, Any], key: str, value: Any, limit: int) -> None:
    """Note a value under a key, and forget the oldest keys above the limit."""
    table[key] = value
    while len(table) > limit:
        del table[next(iter(table))]
