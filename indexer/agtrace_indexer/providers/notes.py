"""Notes in the state of a log: a limited number of values, and what a provider leaves out or doesn't know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeAlias

from agtrace_schema.events import Notification

from agtrace_indexer.events.drafts import Draft, LogState
from agtrace_indexer.events.json_values import compact_json, fields, listed

Known: TypeAlias = dict[str, Any]
"""The fields of a usage object that a parser reads, or that add nothing: name -> those of the object in it."""


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


def known(*paths: str) -> Known:
    """Return the fields at these paths: `input` or, in an object or the objects of a list, `cache.read`."""
    tree: Known = {}
    for path in paths:
        inner = tree
        for name in path.split("."):
            inner = inner.setdefault(name, {})
    return tree


def check_usage(usage: Any, expected: Known, state: LogState, place: str = "usage/") -> None:
    """Note the fields with a value that a parser doesn't know: what they count is in no figure.

    So the totals of this log aren't exact (`index.questions.usage.not_understood`).
    """
    for name, value in fields(usage).items():
        inner = expected.get(name)
        if not value or (inner == {} and not isinstance(value, dict)):
            continue
        if inner:
            for part in listed(value):
                check_usage(part, inner, state, f"{place}{name}.")
        elif not isinstance(value, dict) or any(value.values()):
            state.unknown.append(f"{place}{name}")


def no_document(_document: Any) -> None:
    """Recognize no document: `Parser.unroll` of an agent none of whose logs is one."""


def empty_state(_path: PurePath) -> LogState:
    """Return an empty state: `Parser.begin` of an agent whose records say all about their session."""
    return LogState()
