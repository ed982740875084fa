"""The role of every table of the index: who owns its rows, and which other rows they refer to.

Code that deletes, moves or checks rows follows this list. The definitions of the tables are in
`schema/agtrace_schema/database.py`.
"""

from __future__ import annotations

import sqlite3
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """The kind of thing that the rows of a table belong to."""

    INDEX = "index"
    """Facts about the index itself."""
    FILE = "file"
    SESSION = "session"
    EVENT = "event"
    BLOCK = "block"
    SHARED = "shared"
    """Strings that rows of many sessions refer to by id."""
    DERIVED = "derived"
    """Computed from other tables, and can be computed again."""
    JOINED = "joined"
    """What folders are one repository: computed from the clues and files of all sessions."""
    WORDS = "words"
    """The word index with its vocabulary, and the ranking index: computed from the blocks."""


class Table(NamedTuple):
    """A table."""

    role: Role
    ids: dict[str, str] = {}  # noqa: RUF012  # never changed
    """Column -> the table that it refers to."""
    numbered: bool = False
    """Whether its rows have numbers (`id`) that other rows may refer to."""
    told_by: str = ""
    """For shared strings: the column that distinguishes them."""


TABLES: dict[str, Table] = {
    "meta": Table(Role.INDEX),
    "root": Table(Role.INDEX),
    "file": Table(Role.FILE, numbered=True),
    "record_type": Table(Role.FILE, {"file_id": "file"}),
    "project": Table(Role.SHARED, numbered=True, told_by="hash"),
    "repository": Table(Role.JOINED),
    "repository_folder": Table(Role.JOINED, {"project_id": "project", "repository_id": "repository"}),
    "repository_name": Table(Role.JOINED, {"repository_id": "repository"}),
    "session": Table(
        Role.SESSION,
        {"file_id": "file", "project_id": "project"},
        numbered=True,
    ),
    "name": Table(Role.SHARED, numbered=True, told_by="text"),
    "path": Table(Role.SHARED, numbered=True, told_by="text"),
    "turn": Table(Role.DERIVED, {"session_id": "session"}),
    "event": Table(
        Role.EVENT,
        {"session_id": "session", "name_id": "name", "program_id": "name", "superseded_by": "event"},
        numbered=True,
    ),
    "token_usage": Table(Role.EVENT, {"session_id": "session"}),
    "block": Table(Role.BLOCK, {"session_id": "session"}, numbered=True),
    "block_data": Table(Role.BLOCK, {"block_id": "block"}),
    "block_tool": Table(Role.BLOCK, {"block_id": "block", "name_id": "name"}),
    "agent_start": Table(Role.EVENT, {"session_id": "session"}),
    "naming": Table(Role.SESSION, {"session_id": "session"}),
    "request": Table(Role.EVENT, {"session_id": "session"}),
    "touched": Table(Role.EVENT, {"session_id": "session", "path_id": "path"}),
    "landmark": Table(
        Role.EVENT,
        {"session_id": "session"},
    ),
    "clue": Table(Role.EVENT, {"session_id": "session"}),
    "model_usage": Table(Role.DERIVED, {"session_id": "session"}),
    "sum_so_far": Table(Role.DERIVED, {"session_id": "session"}),
    "kin": Table(Role.DERIVED, {"session_id": "session", "other_id": "session"}),
    "words": Table(Role.WORDS),
    "word": Table(Role.WORDS),
    "trigram": Table(Role.WORDS),
    "vocabulary": Table(Role.WORDS),
    "vocabulary_part": Table(Role.WORDS),
    "ranked": Table(Role.WORDS),
}


def of_role(*roles: Role) -> tuple[str, ...]:
    """Return the tables with one of these roles."""
    return tuple(name for name, table in TABLES.items() if table.role in roles)


BESIDE = tuple(name for name in of_role(Role.SESSION, Role.EVENT) if not TABLES[name].numbered)
"""Tables with additional rows about a session or its events."""


def pointers() -> list[tuple[str, str, str]]:
    """Return (table, column, the table it refers to) for every reference that must lead to a row."""
    return [(name, column, other) for name, table in TABLES.items() for column, other in table.ids.items()]


def users(shared: str) -> list[tuple[str, str]]:
    """Return (table, column) of all references to a table of shared strings, but for those that are computed."""
    return [
        (name, column) for name, column, other in pointers() if other == shared and TABLES[name].role is not Role.JOINED
    ]


def unused(shared: str) -> str:
    """SQL: whether nothing refers to a row of a table of shared strings."""
    used = " UNION ".join(f"SELECT {column} FROM {name} WHERE {column} IS NOT NULL" for name, column in users(shared))
    return f"id NOT IN ({used})"


def delete_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Delete a session and all rows that belong to it."""
    for name, table in TABLES.items():
        if "block_id" in table.ids:
            its_blocks = "SELECT id FROM block WHERE session_id = ?"
            connection.execute(f"DELETE FROM {name} WHERE block_id IN ({its_blocks})", (session_id,))
    for name, column, other in pointers():
        if other == "session":
            connection.execute(f"DELETE FROM {name} WHERE {column} = ?", (session_id,))
    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))
