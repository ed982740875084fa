"""Reading values that logs write in several ways: times, numbers, images, loosely typed fields."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

_LAST_SECOND_IN_S = 100_000_000_000  # above it, an epoch is in milliseconds


def milliseconds(value: Any) -> int | None:
    """Read a time as milliseconds since 1970 UTC: ISO 8601 (without a zone: UTC) or an epoch in s or ms.

    Returns None for anything else, and for 1970 itself, which only a clock that was never set tells; never raises.
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
    if type(value) is int:  # a flag is no number
        return value if 0 <= value < 2**53 else None
    return int(value) if isinstance(value, float) and 0 <= value < 2**53 else None


def text(value: Any) -> str | None:
    """Read a non-empty string; None for anything else."""
    return value if isinstance(value, str) and value else None


def first_text(*values: Any) -> str | None:
    """Read the first of these that is a non-empty string; None where there is none."""
    for value in values:
        if isinstance(value, str) and value:
            return value
    return None


def fields(value: Any) -> dict[str, Any]:
    """Read an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Read an array; an empty one for anything else."""
    return value if isinstance(value, list) else []


def listed(value: Any) -> list[Any]:
    """Read what is an array, or one thing in the place of an array; nothing is an empty one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def by_name(instance: Any) -> dict[str, Any]:
    """Read a dataclass as its values by the names of its fields: the values themselves, no copies."""
    return {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}


def compact_json(value: Any) -> str:
    """Write a JSON value without spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def digest(said: str) -> str:
    """Give a short hash of a text, to compare it with another later: 16 hexadecimal digits."""
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def image_placeholder(media_type: Any, base64_data: Any) -> str:
    """Stand in for an image: its type and its size in bytes, counted from the base64 text."""
    size = len(base64_data) * 3 // 4 if isinstance(base64_data, str) else 0
    return f"[image: {media_type if isinstance(media_type, str) else 'unknown type'}, {size} bytes]"
