"""Facts about the index itself: the table `meta`, whose keys `schema/README.md` lists."""

from __future__ import annotations

import sqlite3


def get(connection: sqlite3.Connection, key: str) -> str | None:
    """Return a fact; None if there is none under this key."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else found[0]


def put(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Store a fact, replacing any previous one."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def drop(connection: sqlite3.Connection, key: str) -> None:
    """Remove the fact under a key."""
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
