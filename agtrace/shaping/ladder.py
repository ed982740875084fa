"""The ladder: how a payload that doesn't fit is made smaller, rung by rung, and how the answer says so.

It is only for what no cursor continues: pages and chunks end earlier instead. `truncation` says what is missing,
`artifact_ref` and `hint` say how to get it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import Struct, field

from agtrace.settings.limits import limits
from agtrace.text.lines import cut


def shortened(value: Any, most: int, path: str = "") -> tuple[Any, list[str]]:
    """Cut every string of a JSON value to `most` characters, including keys; return the value and where it was cut."""
    if isinstance(value, str):
        short = cut(value, most)
        return short, [] if short == value else [f"{path}: {most} of {len(value)} chars"]
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        told: list[str] = []
        for key, item in value.items():
            name = cut(key, most)
            at = f"{path}.{name}" if path else name
            if name in fields:  # another key with the same beginning
                told.append(f"{at}: left out")
                continue
            told += [] if name == key else [f"{at}: {most} of {len(key)} chars of the name"]
            fields[name], below = shortened(item, most, at)
            told += below
        return fields, told
    if isinstance(value, list):
        entries = [shortened(item, most, f"{path}[{number}]") for number, item in enumerate(value)]
        return [item for item, _ in entries], [p for _, paths in entries for p in paths]
    return value, []


def flattened(value: Any, levels: int) -> Any:
    """Write objects nested deeper than `levels` as dotted keys of the last level; values are preserved."""
    if isinstance(value, list):
        return [flattened(item, levels) for item in value]
    if not isinstance(value, dict):
        return value
    if levels > 1:
        return {key: flattened(item, levels - 1) for key, item in value.items()}
    return dict(pair for key, item in value.items() for pair in _dotted(str(key), item))


def _dotted(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [pair for key, item in value.items() for pair in _dotted(f"{path}.{key}", item)]
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [pair for number, item in enumerate(value) for pair in _dotted(f"{path}.{number}", item)]
    return [(path, value)]


OPTIONAL = frozenset(
    {
        "branch", "context_tokens", "context_window", "cost_made", "key_actions", "log", "models", "origin",
        "peak_context_tokens", "responses", "time", "token_shares", "tokens", "tokens_made", "total_models", "version",
    }
)  # fmt: skip
"""Fields that are dropped first. Ids, names, outcomes and counts never are."""

_LOGGED = frozenset({"arguments", "payload", "preview"})
"""Fields that hold objects from a log, whose names are not those of our models."""

_AS_SET = 1 << 30
"""More items than the setting `limits.max_array_items` ever allows: it alone says how many."""

_PATHS_SHOWN = 10
_LONGEST_PATH = 160
_FEWEST_ROWS = 3


class Omission(Struct):
    """A record of what a rung left out."""

    paths: list[str] = field(default_factory=list)
    shown: int = 0
    """Items kept of the lists that were cut."""
    total: int = 0
    """Items that these lists had."""
    omitted_failures: int = 0
    room: int = 0
    """Bytes that failures may take in addition to the items that a rung keeps."""

    def told(self) -> dict[str, Any] | None:
        """Return the `truncation` of the answer; None if nothing is left out."""
        if not self.paths:
            return None
        lists = {"shown": self.shown, "total": self.total, "omitted_failures": self.omitted_failures}
        more = {"more_paths": len(self.paths) - _PATHS_SHOWN} if len(self.paths) > _PATHS_SHOWN else {}
        paths = [cut(path, _LONGEST_PATH) for path in self.paths[:_PATHS_SHOWN]]
        return {"reason": "bytes", **(lists if self.total else {}), "paths": paths, **more}


def without_optional(value: Any, left: Omission, path: str = "") -> Any:
    """Drop the fields in `OPTIONAL`."""
    if isinstance(value, list):
        return [without_optional(item, left, f"{path}[{number}]") for number, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    left.paths += [f"{_at(path, key)}: left out" for key in value if key in OPTIONAL]
    return {
        key: item if key in _LOGGED else without_optional(item, left, _at(path, key))
        for key, item in value.items()
        if key not in OPTIONAL
    }


def shorter(value: Any, left: Omission, most: int) -> Any:
    """Cut every string to `most` characters, including keys."""
    short, paths = shortened(value, most)
    left.paths += paths
    return short


def tables(value: Any) -> Any:
    """Write lists of objects as tables: column names once, then rows. Nothing is lost."""
    if isinstance(value, list):
        if len(value) < _FEWEST_ROWS or not all(isinstance(item, dict) for item in value):
            return [tables(item) for item in value]
        columns = list(dict.fromkeys(key for item in value for key in item))
        return {"columns": columns, "rows": [[tables(item.get(key)) for key in columns] for item in value]}
    if isinstance(value, dict):
        return {key: item if key in _LOGGED else tables(item) for key, item in value.items()}
    return value


def fewer(value: Any, left: Omission, most: int, path: str = "") -> Any:
    """Keep `most` items from both ends of every longer list, and other failed items while there is room."""
    if isinstance(value, list):
        kept = _kept_positions(value, value, left, most, path)
        return [fewer(value[number], left, most, f"{path}[{number}]") for number in kept]
    if isinstance(value, dict) and value.keys() == {"columns", "rows"}:
        columns, rows = value["columns"], value["rows"]
        kept = _kept_positions(rows, [dict(zip(columns, row, strict=True)) for row in rows], left, most, path)
        cells = {number: zip(columns, rows[number], strict=True) for number in kept}
        return {
            "columns": columns,
            "rows": [[fewer(cell, left, most, f"{path}[{n}].{key}") for key, cell in cells[n]] for n in kept],
        }
    if isinstance(value, dict):
        return {key: fewer(item, left, most, _at(path, key)) for key, item in value.items()}
    return value


def is_failure(item: Any) -> bool:
    """Whether an item of a list reports a failure."""
    if not isinstance(item, dict):
        return False
    counted = any(item.get(count) for count in ("failed_calls", "failed_tools", "failed", "failed_1", "failed_2"))
    return counted or item.get("outcome") == "failed" or item.get("severity") == "Critical"


class Rung(Struct, frozen=True):
    """A rung of the ladder: how the requested payload is reduced."""

    chars: int | None = None
    """The most characters of a string."""
    as_tables: bool = False
    items: int | None = None
    """The most items of a list, not counting failures."""


RUNGS = (
    Rung(),  # fields in OPTIONAL are left out, here and further down
    Rung(chars=120),
    Rung(chars=60),
    Rung(chars=60, as_tables=True),
    Rung(chars=60, as_tables=True, items=_AS_SET),
    Rung(chars=60, as_tables=True, items=5),
    Rung(chars=60, as_tables=True, items=3),
    Rung(chars=60, as_tables=True, items=2),
    Rung(chars=60, as_tables=True, items=1),
    Rung(chars=30, as_tables=True, items=1),
)
"""From large to small. Above them is the requested answer, below them the essential fields of the first item of a
page, then counts and a reference."""


def down(value: Any, budget: int) -> Iterator[tuple[Any, dict[str, Any] | None]]:
    """Yield the requested payload, then ever smaller ones, each with its `truncation`.

    A quarter of the budget is reserved for failures: a list that is cut to its first and last items also keeps as
    many other failed items as fit into that.
    """
    yield value, None
    most = limits().settings.limits.max_array_items
    for rung in RUNGS:
        left = Omission(room=budget // 4)
        smaller = without_optional(value, left)
        smaller = shorter(smaller, left, rung.chars) if rung.chars else smaller
        smaller = tables(smaller) if rung.as_tables else smaller
        smaller = fewer(smaller, left, min(rung.items, most)) if rung.items else smaller
        yield smaller, left.told()


def _kept_positions(items: list[Any], described: list[Any], left: Omission, most: int, path: str) -> list[int]:
    """Return the positions of the items of a list to keep; `described` are the same items as objects."""
    if len(items) <= most:
        return list(range(len(items)))
    kept = {*range(most - most // 3), *range(len(items) - most // 3, len(items))}
    failed = [number for number, item in enumerate(described) if is_failure(item)]
    for number in failed:
        size = 0 if number in kept else len(orjson.dumps(items[number])) + 1
        if size <= left.room:
            kept.add(number)
            left.room -= size
    left.shown += len(kept)
    left.total += len(items)
    left.omitted_failures += sum(number not in kept for number in failed)
    left.paths.append(f"{path}: {len(kept)} of {len(items)} items")
    return sorted(kept)


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
