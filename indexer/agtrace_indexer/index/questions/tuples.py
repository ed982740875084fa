"""Rows as plain tuples, whatever a connection makes of them: rows of our own are made of these at the least cost."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any


def tuples(
    connection: sqlite3.Connection, query: str, arguments: Sequence[Any] | Mapping[str, Any] = ()
) -> sqlite3.Cursor:
    """The rows of a query as tuples."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(query, arguments)
