"""The queries of forgetting, and its changes to the rows that stay; `forget.py` gives the reasons."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple


class File(NamedTuple):
    """A file as recorded in the index."""

    path: str
    gone: int
    stamp: str


def newest_end(connection: sqlite3.Connection, now: float) -> int | None:
    """Return the newest end of a session (ms) that isn't after a time (ms); None if there is none."""
    query = "SELECT max(ended_at) FROM session WHERE ended_at <= ?"
    found: int | None = connection.execute(query, (now,)).fetchone()[0]
    return found


def any_ended_before(connection: sqlite3.Connection, time: int) -> bool:
    """Whether any session ended before a time (ms)."""
    return connection.execute("SELECT 1 FROM session WHERE ended_at < ? LIMIT 1", (time,)).fetchone() is not None


def file(connection: sqlite3.Connection, id: int) -> File:
    """Return a file by its row id."""
    return File(*connection.execute("SELECT path, gone, stamp FROM file WHERE id = ?", (id,)).fetchone())


def no_logs(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the files that are not logs, with their paths."""
    query = "SELECT id, path FROM file WHERE status NOT IN ('log', 'forgotten')"
    return [(id, path) for id, path in connection.execute(query)]


def drop_root(connection: sqlite3.Connection, path: str) -> bool:
    """Stop keeping a path fresh; return whether it was a root."""
    return connection.execute("DELETE FROM root WHERE path = ?", (path,)).rowcount > 0


def drop_repeats(connection: sqlite3.Connection, reason: str) -> None:
    """Drop the files that weren't read because they repeat a log, which the reason names."""
    connection.execute("DELETE FROM file WHERE status = 'duplicate' AND reason = ?", (reason,))


def drop_hidden(connection: sqlite3.Connection) -> None:
    """Drop the records of forgotten logs' files, so that the files are looked at again."""
    connection.execute("DELETE FROM file WHERE status = 'forgotten'")
