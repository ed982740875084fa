"""How the topics ask: rows of the tables as values of our own, whatever the connection makes of rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, TypeAlias, TypeVar

Row = TypeVar("Row")

Arguments: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""By position, or by name."""


def rows(
    connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()
) -> Iterator[Row]:
    """What `form` makes of the columns of each row; a row is read when it is asked for."""
    return starmap(form, _asked(connection, sql, arguments))


def first(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row | None:
    """What `form` makes of the first row; None where there is none."""
    row = _asked(connection, sql, arguments).fetchone()
    return None if row is None else form(*row)


def only(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row:
    """What `form` makes of the only row. Raises `KeyError` where there is none."""
    row = _asked(connection, sql, arguments).fetchone()
    if row is None:
        raise KeyError("the index has no such row")
    return form(*row)


def value(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> Any:
    """The first column of the first row; None where there is none."""
    row = _asked(connection, sql, arguments).fetchone()
    return None if row is None else row[0]


def values(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in _asked(connection, sql, arguments)]


def pairs(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> dict[Any, Any]:
    """The second column of all rows by the first."""
    return dict(_asked(connection, sql, arguments).fetchall())


def listed(numbers: Iterable[int]) -> str:
    """Numbers as SQL lists them behind `IN`."""
    return f"({', '.join(map(str, numbers))})"


def _asked(connection: sqlite3.Connection, sql: str, arguments: Arguments) -> sqlite3.Cursor:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, arguments)
