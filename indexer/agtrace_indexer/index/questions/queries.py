"""Running queries: rows of the tables become values of our own types, whatever the connection's row factory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, TypeAlias, TypeVar

Row = TypeVar("Row")

Arguments: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Arguments by position or by name."""

GIVEN = "(SELECT value FROM json_each(?))"
FILES = "(SELECT value FROM json_each(:files))"
"""The ids that a query is about, passed as `as_json`."""


def is_team(connection: sqlite3.Connection) -> bool:
    """Whether this stands for a connection to a team's index, on PostgreSQL, and isn't one to a file of SQLite."""
    return not isinstance(connection, sqlite3.Connection)


def rows(
    connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()
) -> Iterator[Row]:
    """Yield `form` of the columns of each row; rows are read on demand."""
    return starmap(form, _asked(connection, sql, arguments))


def first(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row | None:
    """Return `form` of the first row's columns; None if there is no row."""
    row = _asked(connection, sql, arguments).fetchone()
    return None if row is None else form(*row)


def only(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row:
    """Return `form` of the only row's columns. Raise `KeyError` if there is no row."""
    row = _asked(connection, sql, arguments).fetchone()
    if row is None:
        raise KeyError("the index has no such row")
    return form(*row)


def value(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> Any:
    """Return the first column of the first row; None if there is no row."""
    row = _asked(connection, sql, arguments).fetchone()
    return None if row is None else row[0]


def values(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> list[Any]:
    """Return the first column of all rows."""
    return [row[0] for row in _asked(connection, sql, arguments)]


def pairs(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> dict[Any, Any]:
    """Return a mapping from the first column of all rows to the second."""
    return dict(_asked(connection, sql, arguments).fetchall())


def as_json(ids: Iterable[int]) -> str:
    """Return ids as the JSON array that SQLite's `json_each` reads."""
    return f"[{', '.join(map(str, ids))}]"


def _asked(connection: sqlite3.Connection, sql: str, arguments: Arguments) -> sqlite3.Cursor:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, arguments)
