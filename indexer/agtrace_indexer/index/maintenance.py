"""Putting the index in order while nobody is waiting for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from agtrace_indexer.index import meta, ranking, repositories, word_index
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import bytes_on_disk, write_lock
from agtrace_indexer.index.references import SHARED, unused

_FREE = 10
"""Percentage of free pages from which the file is rewritten: that takes 2 s a gigabyte and its size once more."""
_SWOLLEN, _SWOLLEN_PAGES = 25, 4_000
"""Percentage and number of free pages that show that most logs were read again: what they were before has its room."""


class Optimized(Struct, frozen=True):
    """The result of putting the index in order."""

    bytes_before: int
    bytes_after: int


def optimize(database: Path, *, patience: float = 0) -> Optimized:
    """Index the words of all blocks, merge the word index, release free pages and empty the WAL.

    Readers go on meanwhile. Raise `lock.Busy` if another process is still writing after `patience` seconds.
    """
    with write_lock(database, patience), closing(Catalog(database)) as catalog:
        before = bytes_on_disk(database)
        _compact(catalog.connection)
        return Optimized(before, bytes_on_disk(database))


def compact_if_swollen(connection: sqlite3.Connection) -> None:
    """Put the index in order if much of it was read again; called by the writer, not within a transaction.

    Without room for a second file, or while a reader needs the old pages, the index stays as it is.
    """
    free, pages = _free_pages(connection)
    if (free >= _SWOLLEN_PAGES and 100 * free >= _SWOLLEN * pages) or word_index.is_stale(connection):
        try:
            _compact(connection)
        except sqlite3.OperationalError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _compact(connection: sqlite3.Connection) -> None:
    from sqlite_utils import Database  # takes 0.2 s

    database = Database(connection, execute_plugins=False)
    connection.execute("BEGIN IMMEDIATE")
    word_index.cover(connection)
    for table in ("words", "ranked"):
        database.table(table).optimize()  # nothing if SQLite has no FTS5
    word_index.put_in_order(connection)
    ranking.put_in_order(connection)
    connection.execute("COMMIT")
    free, pages = _free_pages(connection)
    if 100 * free >= _FREE * pages:
        database.vacuum()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def note_scrub(connection: sqlite3.Connection, *, of_events: bool = True) -> None:
    """Note, in the transaction that deletes or masks texts, that no trace of them may stay; the run then scrubs.

    Text that was never part of an event, such as a file's path, left no words, so the word index isn't rebuilt for it.
    """
    if of_events or meta.get(connection, "scrub") != _WORDS:
        meta.put(connection, "scrub", _WORDS if of_events else _PAGES)


def scrub_is_due(connection: sqlite3.Connection) -> bool:
    """Whether there are still traces of deleted texts."""
    return meta.get(connection, "scrub") is not None


def scrub(connection: sqlite3.Connection, *, patience: float = 1) -> str | None:
    """Remove all traces of deleted texts: delete orphans, rebuild the word index, rewrite the file, empty the WAL.

    Called by the writer, not within a transaction. Return None when it is done or nothing was due (`note_scrub`), else
    why traces remain, as a phrase: a reader still needs the old pages after `patience` seconds, or there is no room.
    Completed steps are noted, so that the next call continues with the rest.
    """
    left = meta.get(connection, "scrub")
    (waits,) = connection.execute("PRAGMA busy_timeout").fetchone()
    try:
        if left == _WORDS:
            connection.execute("BEGIN IMMEDIATE")
            delete_orphans(connection)
            word_index.make_anew(connection)
            ranking.make_anew(connection)
            repositories.join(connection, anew=True)
            meta.put(connection, "scrub", _PAGES)
            connection.execute("COMMIT")
        if left in (_WORDS, _PAGES):
            connection.execute("VACUUM")
            meta.put(connection, "scrub", _WAL)
        if left is not None:
            connection.execute(f"PRAGMA busy_timeout={round(1000 * patience)}")
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return "another process is still reading the old contents of the index"
            meta.drop(connection, "scrub")
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return str(error)
    finally:
        connection.execute(f"PRAGMA busy_timeout={waits}")
    return None


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete, in the open transaction, names, paths and projects that no session refers to any more."""
    for table in SHARED:
        connection.execute(f"DELETE FROM {table} WHERE {unused(table)}")
    connection.execute(
        "UPDATE project SET root_path = NULL WHERE id NOT IN "
        "(SELECT project_id FROM session WHERE project_id IS NOT NULL AND cwd IS NOT NULL)"
    )


_WORDS, _PAGES, _WAL = "words", "pages", "wal"
"""Where traces remain, in `meta` under 'scrub': in the word index and all that follows, in free pages, in the WAL."""


def _free_pages(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of free pages, and of all."""
    free, pages = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    return free, pages
