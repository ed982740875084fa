"""The tables of the index: what their rows belong to, which other rows they name, which text from logs they hold.

Whatever deletes, moves, masks, checks or saves rows goes by this list; `schema/README.md` has the columns.
"""

from __future__ import annotations

import sqlite3
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """What the rows of a table belong to."""

    INDEX = "index"
    """Facts about the index itself."""
    FILE = "file"
    SESSION = "session"
    EVENT = "event"
    BLOCK = "block"
    SHARED = "shared"
    """Strings that rows of many sessions name by their ids."""
    DERIVED = "derived"
    """Made of other tables, and can be made again."""
    WORDS = "words"
    """The word index with its vocabulary, and the ranking index: made of the blocks."""


class Table(NamedTuple):
    """A table."""

    role: Role
    ids: dict[str, str] = {}  # noqa: RUF012  # never changed
    """Column -> the table whose row it names."""
    numbered: bool = False
    """Whether its rows have numbers (`id`) that other rows may name."""
    texts: tuple[str, ...] = ()
    """Columns with text from logs, each masked by itself; ids are not among them."""
    told_by: str = ""
    """Of shared strings: the column that tells one from another."""


TABLES: dict[str, Table] = {
    "meta": Table(Role.INDEX),
    "root": Table(Role.INDEX),
    "file": Table(Role.FILE, numbered=True, texts=("reason",)),
    "record_type": Table(Role.FILE, {"file_id": "file"}),
    "project": Table(Role.SHARED, numbered=True, texts=("root_path",), told_by="hash"),
    "session": Table(
        Role.SESSION,
        {"file_id": "file", "project_id": "project"},
        numbered=True,
        texts=("cwd", "branch", "version", "model", "title", "snippet", "description", "own_title", "agent_type"),
    ),
    "name": Table(Role.SHARED, numbered=True, told_by="text"),
    "path": Table(Role.SHARED, numbered=True, told_by="text"),
    "turn": Table(Role.DERIVED, {"session_id": "session"}),
    "event": Table(Role.EVENT, {"session_id": "session", "name_id": "name", "superseded_by": "event"}, numbered=True),
    "token_usage": Table(Role.EVENT, {"session_id": "session"}),
    "block": Table(Role.BLOCK, {"session_id": "session"}, numbered=True),
    "block_data": Table(Role.BLOCK, {"block_id": "block"}),
    "block_tool": Table(Role.BLOCK, {"block_id": "block", "name_id": "name"}),
    "agent_start": Table(Role.EVENT, {"session_id": "session"}),
    "naming": Table(Role.SESSION, {"session_id": "session"}),
    "request": Table(Role.EVENT, {"session_id": "session"}),
    "touched": Table(Role.EVENT, {"session_id": "session", "path_id": "path"}),
    "model_usage": Table(Role.DERIVED, {"session_id": "session"}),
    "kin": Table(Role.DERIVED, {"session_id": "session", "other_id": "session"}),
    "words": Table(Role.WORDS),
    "word": Table(Role.WORDS),
    "trigram": Table(Role.WORDS),
    "vocabulary": Table(Role.WORDS),
    "vocabulary_part": Table(Role.WORDS),
    "ranked": Table(Role.WORDS),
    "ranked_event": Table(Role.WORDS),
}


def of_role(*roles: Role) -> tuple[str, ...]:
    """The tables with one of these roles."""
    return tuple(name for name, table in TABLES.items() if table.role in roles)


BESIDE = tuple(name for name in of_role(Role.SESSION, Role.EVENT) if not TABLES[name].numbered)
"""Tables with rows that say more of a session or of its events."""


def pointers() -> list[tuple[str, str, str]]:
    """(table, column, the table whose row it names) wherever a row must be there."""
    return [(name, column, other) for name, table in TABLES.items() for column, other in table.ids.items()]


def users(shared: str) -> list[tuple[str, str]]:
    """(table, column) of whatever names rows of a table of shared strings."""
    return [(name, column) for name, column, other in pointers() if other == shared]


def unused(shared: str) -> str:
    """SQL: whether no row names a row of a table of shared strings."""
    used = " UNION ".join(f"SELECT {column} FROM {name} WHERE {column} IS NOT NULL" for name, column in users(shared))
    return f"id NOT IN ({used})"


def delete_rows_of_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Delete all rows that belong to a session, except its own row in `session`."""
    for name, table in TABLES.items():
        if "block_id" in table.ids:
            its_blocks = "SELECT id FROM block WHERE session_id = ?"
            connection.execute(f"DELETE FROM {name} WHERE block_id IN ({its_blocks})", (session_id,))
    for name, column, other in pointers():
        if other == "session":
            connection.execute(f"DELETE FROM {name} WHERE {column} = ?", (session_id,))
