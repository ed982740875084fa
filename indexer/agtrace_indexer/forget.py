"""Forgetting sessions: everything from their logs leaves the tables and the archive, and a tombstone keeps it out.

A log is forgotten as a whole, together with the logs of the sub-agents that it started and any others with its id. The
tombstones reach the disk before anything is deleted, and they determine what is deleted: after a crash in between, the
next run completes the work (`finish`). Sessions that contain some of the same events in logs of their own stay, and
are attributed anew as if the forgotten logs had never existed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from agtrace_indexer.families.belonging import Logs, lies_beside
from agtrace_indexer.families.joining import assign_unique_ids, join_families
from agtrace_indexer.index import meta
from agtrace_indexer.index.catalog import Catalog, remove_attempts
from agtrace_indexer.index.maintenance import note_scrub, scrub
from agtrace_indexer.index.opening import write_lock
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.tombstones import AGED, FORGOTTEN, Tombstones, add, stamp
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.discovery import REPEATS, LogFile, known_as
from agtrace_indexer.logs.files import restamped
from agtrace_indexer.providers.registry import FORMS

_PATIENCE = 10.0
"""Seconds that readers get to finish before the WAL is reported as still holding forgotten text."""

_DAY = 24 * 3600


def forget(database: Path, digests: Iterable[str], *, now: float, patience: float = 0) -> str | None:
    """Forget the sessions with these digests (`Logs.digests`), and everything that belongs to them, for good.

    Return None, or why traces of them remain until the next run (`maintenance.scrub`). Raise `lock.Busy` if another
    process is still writing after `patience` seconds, and `UnreadableTombstones`; `now` is in seconds since 1970.
    """
    with write_lock(database, patience), closing(Catalog(database)) as catalog:
        remove_attempts(database)
        Tombstones.of(database)  # nothing is added to an unusable list
        add(database, FORGOTTEN, sorted(digests), now)
        _finish(catalog.connection, database, now)
        return scrub(catalog.connection, patience=_PATIENCE)


def forget_older(database: Path, *, patience: float = 0) -> str | None:
    """Forget what logs said before they were rewritten, in the archive and in what the index has deleted.

    Return and raise as `forget` does; raise `OSError` if the archive can't be changed.
    """
    with write_lock(database, patience), closing(Catalog(database)) as catalog:
        Archive(database).remove_older()
        note_scrub(catalog.connection)
        return scrub(catalog.connection, patience=_PATIENCE)


def finish(catalog: Catalog, now: float) -> None:
    """Carry out tombstones that were added or removed outside a normal run: before a crash, or by hand.

    Called by the writer, between two transactions. Files that were passed over are looked at again.
    """
    catalog.connection.execute("DELETE FROM file WHERE status = 'forgotten'")
    _finish(catalog.connection, catalog.path, now)


def keep_out(catalog: Catalog, digests: Iterable[str], now: float) -> None:
    """Forget sub-agents that a run left unread because their parents are forgotten, and everything they started.

    Called by the writer, between two transactions.
    """
    add(catalog.path, FORGOTTEN, sorted(set(digests)), now)
    finish(catalog, now)


def expire(connection: sqlite3.Connection, database: Path, days: int, now: float) -> None:
    """Forget sessions whose last event, sub-agents included, is more than this many days before today (UTC).

    Today is the day of the newest event that isn't in the future, so a clock that jumped ahead makes nothing old.
    Called by the writer, between two transactions. The sessions stay out until their logs are written to again.
    """
    meta.put(connection, "kept_days", str(days))
    sql = "SELECT coalesce(max(ended_at), 0), min(ended_at) FROM session WHERE ended_at <= ?"
    newest, oldest = connection.execute(sql, (now * 1000,)).fetchone()
    before = int(newest // 1000 // _DAY - days) * _DAY * 1000
    if oldest is None or oldest >= before:
        return
    logs = Logs(connection)
    old = logs.with_all_of(logs.ended_before(before))
    if old:
        add(database, AGED, sorted(logs.digests(old)), now)
        _carry_out(connection, database, old)


def _finish(connection: sqlite3.Connection, database: Path, now: float) -> None:
    tombstones, logs = Tombstones.of(database), Logs(connection)
    files = logs.with_all_of(logs.kept_out(tombstones))
    new = {digest for digest in logs.digests(files) if not tombstones.has(digest)}
    if new:  # sub-agents that have appeared since
        add(database, FORGOTTEN, sorted(new), now)
    _carry_out(connection, database, files)


def _carry_out(connection: sqlite3.Connection, database: Path, files: set[int]) -> None:
    """Delete everything read from these files, in a separate transaction."""
    store = Store(connection)
    store.begin()
    archive = Archive(database)
    hid = _hide_beside(store, archive, Tombstones.of(database))
    for file in sorted(files):
        _hide(store, archive, file)
    if files:
        join_families(connection)
        assign_unique_ids(connection)
    if files or hid:
        note_scrub(connection, of_events=bool(files))
    meta.put(connection, "forgotten", stamp(database))
    store.commit()


def _hide(store: Store, archive: Archive, file: int) -> None:
    """Delete everything read from a file; if it still exists, remember it by its stamp and a digest of its path."""
    connection = store.connection
    path, gone, mark = connection.execute("SELECT path, gone, stamp FROM file WHERE id = ?", (file,)).fetchone()
    names = known_as(path, FORMS)
    for other in [path, *(other.path for other in archive.logs() if names and names & known_as(other.path, FORMS))]:
        archive.remove(other)
    if connection.execute("DELETE FROM root WHERE path = ?", (path,)).rowcount:
        meta.put(connection, "root_forgotten", "1")
    repeats = "DELETE FROM file WHERE status = 'duplicate' AND reason = ?"
    connection.execute(repeats, (REPEATS.format(path),))
    store.hide(path, restamped(LogFile(path, mark, 0, 0)).stamp)
    if gone:
        store.show(path)


def _hide_beside(store: Store, archive: Archive, tombstones: Tombstones) -> bool:
    """Forget the names of files that aren't logs but bear a forgotten session's id; return whether there were any."""
    no_logs = store.connection.execute("SELECT id, path FROM file WHERE status NOT IN ('log', 'forgotten')")
    found = [file for file, path in no_logs if lies_beside(path, tombstones)]
    for file in found:
        _hide(store, archive, file)
    return bool(found)
