"""Facts about the index itself: the table `meta`, whose keys `schema/README.md` lists."""

from __future__ import annotations

import sqlite3


def get(connection: sqlite3.Connection, key: str) -> str | None:
    """A fact; None where nothing is noted."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else found[0]


def put(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Note a fact, in place of the one before."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def drop(connection: sqlite3.Connection, key: str) -> None:
    """Note nothing under a key any more."""
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
