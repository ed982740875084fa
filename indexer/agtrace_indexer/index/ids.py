"""Sets of row ids as arguments of a query."""

from __future__ import annotations

from collections.abc import Iterable

FILES = "(SELECT value FROM json_each(:files))"
"""The ids of files that a query is about, passed as `as_json`."""


def as_json(ids: Iterable[int]) -> str:
    """Return ids as the JSON array that SQLite's `json_each` reads."""
    return f"[{', '.join(map(str, ids))}]"
