"""Putting the index in order when nobody waits for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agtrace_indexer.index import meta, ranking, word_index
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.lock import WriteLock
from agtrace_indexer.index.tables import Role, of_role, unused

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
        word_index.cover(connection)
        word_index.put_in_order(connection)
        ranking.cover(connection)
        ranking.put_in_order(connection)
        connection.execute("COMMIT")
        if _free(connection) >= _FREE:
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Optimized(before, _size(database))


def note_scrub(connection: sqlite3.Connection, *, of_events: bool = True) -> None:
    """Say, in the transaction that deletes or masks texts, that no trace of them may stay: the run then scrubs.

    What never stood in an event, such as the path of a file, left no words: those are not made anew then.
    """
    if of_events or _left(connection) != _WORDS:
        where = _WORDS if of_events else _PAGES
        meta.put(connection, "scrub", where)


def scrub_is_due(connection: sqlite3.Connection) -> bool:
    """Whether traces of deleted texts are left."""
    return _left(connection) is not None


def scrub(connection: sqlite3.Connection, *, patience: float = 1) -> str | None:
    """Leave no trace of what was deleted: delete orphans, make the words anew, write the file anew, empty the WAL.

    Called by the writer, not within a transaction. Gives None when it is done, or nothing was due (`note_scrub`), else
    why traces are left, as a sentence: a reader still needs the pages as they were after `patience` seconds, or there
    is no room. What is done is noted: the next call goes on with the rest.
    """
    left = _left(connection)
    (waits,) = connection.execute("PRAGMA busy_timeout").fetchone()
    try:
        if left == _WORDS:
            connection.execute("BEGIN IMMEDIATE")
            delete_orphans(connection)
            word_index.make_anew(connection)
            ranking.make_anew(connection)
            _note_left(connection, _PAGES)
            connection.execute("COMMIT")
        if left in (_WORDS, _PAGES):
            connection.execute("VACUUM")
            _note_left(connection, _WAL)
        if left is not None:
            connection.execute(f"PRAGMA busy_timeout={round(1000 * patience)}")
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return "another process still reads the index as it was before"
            meta.drop(connection, "scrub")
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return str(error)
    finally:
        connection.execute(f"PRAGMA busy_timeout={waits}")
    return None


_ORPHANS = (
    *(f"DELETE FROM {table} WHERE {unused(table)}" for table in of_role(Role.SHARED)),
    "UPDATE project SET root_path = NULL WHERE id NOT IN "
    "(SELECT project_id FROM session WHERE project_id IS NOT NULL AND cwd IS NOT NULL)",
)
"""What only sessions that are deleted named."""


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete the names, paths and projects that no session has any more, in the open transaction."""
    for orphans in _ORPHANS:
        connection.execute(orphans)


_WORDS, _PAGES, _WAL = "words", "pages", "wal"
"""Where traces are left, in `meta` under 'scrub': in the word index and all that follows, in free pages, in the WAL."""


def _left(connection: sqlite3.Connection) -> str | None:
    return meta.get(connection, "scrub")


def _note_left(connection: sqlite3.Connection, where: str) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = 'scrub'", (where,))


def _free(connection: sqlite3.Connection) -> int:
    """Per cent of the pages that hold nothing."""
    free, pages = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    return int(100 * free // pages)


def _size(database: Path) -> int:
    """Bytes of the index, its WAL included."""
    files = (database, database.with_name(database.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
