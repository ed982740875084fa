"""Which rows of the index belong to a file, and which others they refer to, as the definitions of the tables tell.

Code that deletes, moves or checks rows follows them: a column that ends in `_id` has the `id` of a row of the table of
that name.
"""

from __future__ import annotations

import re
import sqlite3

from agtrace_schema.database import TABLES

SHARED = {"name": "text", "path": "text", "project": "hash"}
"""Tables of strings that rows of many sessions refer to -> the column that distinguishes their rows."""

_OTHERWISE = {"program_id": "name", "other_id": "session", "superseded_by": "event"}
_OF_LOGS = frozenset({"own_id", "parent_id", "response_id", "agent_id"})
"""Ids as logs have them, which are no row's."""

COLUMNS: dict[str, list[str]] = {
    table: re.findall(r"^  ([a-z]\w*)", body, re.MULTILINE)
    for table, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", TABLES, re.MULTILINE | re.DOTALL)
}

REFERENCES: dict[str, dict[str, str]] = {
    table: {
        column: _OTHERWISE.get(column, column.removesuffix("_id"))
        for column in columns
        if column in _OTHERWISE or (column.endswith("_id") and column not in _OF_LOGS)
    }
    for table, columns in COLUMNS.items()
}
"""Table -> its columns with ids of rows, and the tables of these."""

OWNED = tuple(name for name, to in REFERENCES.items() if name == "file" or not to.keys().isdisjoint(
    {"file_id", "session_id", "block_id"}))  # fmt: skip
"""The tables whose rows belong to a file, or to one of its sessions. Others are shared or about the whole index."""


def unused(shared: str) -> str:
    """SQL: whether nothing of a file refers to a row of a table of shared strings."""
    used = (
        f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
        for table in OWNED
        for column, other in REFERENCES[table].items()
        if other == shared
    )
    return f"id NOT IN ({' UNION '.join(used)})"


def delete_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Delete a session and all rows that belong to it."""
    for table in OWNED:
        if "block_id" in REFERENCES[table]:
            its_blocks = "SELECT id FROM block WHERE session_id = ?"
            connection.execute(f"DELETE FROM {table} WHERE block_id IN ({its_blocks})", (session_id,))
    for table in OWNED:
        for column, other in REFERENCES[table].items():
            if other == "session":
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))
