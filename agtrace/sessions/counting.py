"""Calls, uses of files and tokens by group, as answers show them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, TypeAlias

from agtrace_indexer.index.questions import counts, sessions
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_schema.answers import Counts
from agtrace_schema.requests import CountOf, GroupBy

from agtrace.sessions.files import file_key
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.text.lines import LABEL, one_line, shown_path

Key: TypeAlias = str | int | None
"""What tells a group from others: a name, or the row id of a session or a project, or a day."""

_UNKNOWN = "unknown"
YOU = "you"
"""Whose one's own index is."""
_LONGEST_PATH = 160


class Group(NamedTuple):
    """A group with its figures."""

    key: Key
    figures: tuple[int | None, ...]
    """Its calls and how many of them failed, None if that is unknown; or its tokens, those of the output, and its
    responses."""
    sessions: int


def counted(
    connection: sqlite3.Connection, by: GroupBy, measure: CountOf, filters: EventFilters, kind: str | None
) -> list[Group]:
    """Count what passes the filters, by group, the largest first; `kind` as in `SessionFilters`."""
    if measure == "tokens":
        tokens = counts.tokens(connection, by, filters, kind)
        groups = [Group(key, tuple(figures), number) for key, *figures, number in tokens]
        return _largest_first(groups, 0)
    if by == "file":
        groups = _files(counts.files(connection, filters, kind))
    else:
        calls = counts.calls(connection, by, filters, kind)
        groups = [Group(key, (done, failed), number) for key, done, failed, number in calls]
    return _largest_first(groups, 1 if measure == "failed" else 0)


def totals(groups: Sequence[Group]) -> list[int | None]:
    """Return the figures of all groups together, as far as they are known; None for one that no group has."""
    return [
        None if all(figure is None for figure in figures) else sum(filter(None, figures))
        for figures in zip(*(group.figures for group in groups), strict=True)
    ]


def shown(connection: sqlite3.Connection, by: GroupBy, groups: Sequence[Group], most: int) -> Counts:
    """Show the first groups, and what the others come to."""
    first, others = groups[:most], groups[most:]
    titles = _titles(connection, first) if by == "session" else {}
    return Counts(
        rows=[
            [_label(connection, by, group.key), *group.figures, titles.get(group.key, group.sessions)]
            for group in first
        ],
        others=[len(others), *totals(others)] if others else None,
    )


def _largest_first(groups: Iterable[Group], column: int) -> list[Group]:
    """Sort groups by one of their figures, then by the others; of equal ones names in order, or the newest first."""

    def rank(group: Group) -> tuple[Any, ...]:
        key = group.key
        figures = [-(figure or 0) for figure in group.figures]
        return figures[column], *figures, -key if isinstance(key, int) else 0, str(key)

    return sorted(groups, key=rank)


def _files(uses: Iterable[counts.FileUses]) -> list[Group]:
    """Sum up the uses of files by their absolute paths: a relative one starts from the session's directory."""
    calls: dict[str, tuple[int, int | None]] = {}
    users: dict[str, set[int]] = {}
    for use in uses:
        path = file_key(use.path, use.cwd, None)
        done, failed = calls.get(path, (0, None))
        calls[path] = done + use.calls, failed if use.failed is None else (failed or 0) + use.failed
        users.setdefault(path, set()).add(use.session)
    return [Group(path, (done, failed), len(users[path])) for path, (done, failed) in calls.items()]


# -- labels ----------------------------------------------------------------------------------------


def _label(connection: sqlite3.Connection, by: GroupBy, key: Key) -> str:
    """Return the name of a group; that of a session or a project can be used to ask for it."""
    if key is None:
        return YOU if by == "user" else _UNKNOWN
    if isinstance(key, str):
        return shown_path(key, _LONGEST_PATH) if by == "file" else one_line(key, LABEL)
    if by == "day":
        return (date(1970, 1, 1) + timedelta(days=key)).isoformat()
    if by == "session":
        return short_id(connection, sessions.id_of(connection, key))
    return labels(connection)[key]


def _titles(connection: sqlite3.Connection, groups: Sequence[Group]) -> dict[Key, str]:
    found = sessions.in_rows(connection, (key for key, *_ in groups if isinstance(key, int)))
    return {one.id: one_line(one.title or one.snippet or "", LABEL) for one in found}
