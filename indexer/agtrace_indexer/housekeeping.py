"""Putting the index in order when nobody waits for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agtrace_indexer import words
from agtrace_indexer.catalog import Catalog
from agtrace_indexer.lock import WriteLock

_FREE = 10
"""Per cent of free pages from which on the file is written anew: it takes 2 s a gigabyte and its size once more."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """What putting in order has brought."""

    bytes_before: int
    bytes_after: int


def optimize(database: Path, *, patience: float = 0) -> Optimized:
    """Cover all blocks by words, merge the word index, give free pages back and empty the WAL.

    Readers go on meanwhile. Raises `lock.Busy` when another process still writes after `patience` seconds.
    """
    with WriteLock(database, patience), closing(Catalog(database)) as catalog:
        connection, before = catalog.connection, _size(database)
        connection.execute("BEGIN IMMEDIATE")
        words.cover(connection)
        words.put_in_order(connection)
        connection.execute("COMMIT")
        if _free(connection) >= _FREE:
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Optimized(before, _size(database))


def _free(connection: sqlite3.Connection) -> int:
    """Per cent of the pages that hold nothing."""
    free, pages = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    return int(100 * free // pages)


def _size(database: Path) -> int:
    """Bytes of the index, its WAL included."""
    files = (database, database.with_name(database.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
