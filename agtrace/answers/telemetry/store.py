"""The telemetry file: a SQLite database of its own next to the index, which can be deleted at any time.

This is the only module that knows its table. Nothing here raises anything but `sqlite3.Error` and `OSError`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from agtrace_indexer.index.opening import is_damage

from agtrace.answers.telemetry.request import Request

KEEP_DAYS = 30
_DAY = 24 * 3600 * 1000
_PATIENCE, _READING_PATIENCE = 1.0, 0.2
"""Seconds to wait for another process that writes: in the thread that records, and in one that answers."""

_VERSION = 1
_TABLE = """
CREATE TABLE request (
  at INTEGER NOT NULL, tool TEXT NOT NULL, request_id TEXT NOT NULL, client TEXT, client_version TEXT, protocol TEXT,
  transport TEXT NOT NULL, outcome TEXT NOT NULL, ms REAL NOT NULL, tokens INTEGER NOT NULL,
  asked_bytes INTEGER NOT NULL, bytes INTEGER NOT NULL, items INTEGER, attempt INTEGER NOT NULL,
  paginated INTEGER NOT NULL, chunked INTEGER NOT NULL, summarized INTEGER NOT NULL, pruned INTEGER NOT NULL,
  cut INTEGER NOT NULL, index_state TEXT NOT NULL
)
"""
_BY_TIME = "CREATE INDEX request_at ON request (at)"
_INSERT = f"INSERT INTO request VALUES ({', '.join('?' * len(Request._fields))})"


def append(path: Path, requests: Sequence[Request]) -> None:
    """Append requests to the file, which is made if it isn't there. A damaged file is replaced."""
    try:
        _append(path, requests)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):  # locked, read-only, full: not the file's fault
            raise
        for name in (path.name, f"{path.name}-journal"):
            path.with_name(name).unlink(missing_ok=True)
        _append(path, requests)


def _append(path: Path, requests: Sequence[Request]) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # lost figures are no loss; a damaged file is replaced
        connection.execute("BEGIN IMMEDIATE")  # of two processes that find no table, one makes it
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.OperationalError("another version of agtrace made this file")
        if not version:
            for statement in (_TABLE, _BY_TIME, f"PRAGMA user_version = {_VERSION}"):
                connection.execute(statement)
        connection.executemany(_INSERT, requests)
        connection.execute("COMMIT")


def expire(path: Path, now: float, days: int = KEEP_DAYS) -> None:
    """Delete what is older than so many days, and give its room back."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as connection:
        if connection.execute("DELETE FROM request WHERE at < ?", (round(1000 * now) - days * _DAY,)).rowcount:
            connection.execute("VACUUM")


def count(path: Path) -> int:
    """Return the number of recorded requests."""
    with _opened(path) as connection:
        rows: int = 0 if connection is None else connection.execute("SELECT count(*) FROM request").fetchone()[0]
    return rows


def between(path: Path, since: int | None, until: int | None, tool: str | None = None) -> list[Request]:
    """Return the requests of a period, both ends included, in milliseconds since 1970 UTC; the oldest first."""
    with _opened(path) as connection:
        if connection is None:
            return []
        rows = connection.execute(
            "SELECT * FROM request WHERE at >= ? AND at <= ? AND (?3 IS NULL OR tool = ?3) ORDER BY at",
            (since or 0, until if until is not None else 1 << 62, tool),
        ).fetchall()
    return list(map(Request._make, rows))


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the file for reading; None if there is none, or none of this version."""
    if not path.exists():
        yield None
        return
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_READING_PATIENCE)
    ) as connection:
        yield connection if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION else None
