"""Forgetting sessions: what their logs said leaves every table, and a tombstone keeps it from coming back.

A log goes as a whole, with the logs of the sub-agents that it started and whatever else has its id. The tombstones are
on the disk before anything is deleted, and what is deleted follows from them: a crash in between is made good by the
next run (`finish`). Sessions that hold some of the same events in logs of their own stay, and are told anew as if the
forgotten logs had never been there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from agtrace_indexer.families.belonging import THESE_FILES, Logs, json_ids, lies_beside
from agtrace_indexer.families.id_suffixes import tell_apart
from agtrace_indexer.families.joining import join_families
from agtrace_indexer.index.catalog import Catalog, remove_attempts
from agtrace_indexer.index.lock import WriteLock
from agtrace_indexer.index.maintenance import note_scrub, scrub
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.sums import sum_session, sum_turns
from agtrace_indexer.index.tombstones import AGED, FORGOTTEN, Tombstones, add, stamp
from agtrace_indexer.logs.discovery import REPEATS

_PATIENCE = 10.0
"""Seconds that readers get to end before it is said that the WAL still holds what was forgotten."""

_DAY = 24 * 3600

_OF_FILES = f"(SELECT id FROM session WHERE file_id IN {THESE_FILES})"

# Copies in archived logs of what goes: nothing tells them anew at the end of a run.
_ARCHIVED_COPIES = f"""
SELECT e.copy_of, e.id, e.session_id FROM session s JOIN file f ON f.id = s.file_id JOIN event e ON e.session_id = s.id
WHERE f.gone AND e.copy_of IN (SELECT id FROM event WHERE session_id IN {_OF_FILES})
  AND s.file_id NOT IN {THESE_FILES}
ORDER BY e.copy_of, s.started_at IS NULL, s.started_at, f.path, e.id
"""

_ARCHIVED_TITLES = f"""
UPDATE session SET title = own_title
WHERE title IS NOT own_title AND title IN (SELECT title FROM naming WHERE session_id IN {_OF_FILES})
"""

_CHILDREN = f"""
UPDATE session SET parent_session = NULL, started_by = NULL, pending = 2 WHERE parent_session IN {_OF_FILES}
"""


def forget(database: Path, digests: Iterable[str], *, now: float, patience: float = 0) -> str | None:
    """Forget the sessions with these digests (`Logs.digests`) for good, and all that belongs to them.

    Gives None, or why traces of them are left until the next run (`maintenance.scrub`). Raises `lock.Busy` when
    another process still writes after `patience` seconds and `UnreadableTombstones`; `now` is in seconds since 1970.
    """
    with WriteLock(database, patience), closing(Catalog(database)) as catalog:
        remove_attempts(database)
        Tombstones.of(database)  # nothing is added to a list that can't be used
        add(database, FORGOTTEN, sorted(digests), now)
        _finish(catalog.connection, database, now)
        return scrub(catalog.connection, patience=_PATIENCE)


def finish(catalog: Catalog, now: float) -> None:
    """Do what tombstones ask for that came, or went, beside this program's own writing: after a crash, by hand.

    Called by the writer, between two transactions. Files that were passed over are looked at again.
    """
    catalog.connection.execute("DELETE FROM file WHERE status = 'forgotten'")
    _finish(catalog.connection, catalog.path, now)


def keep_out(catalog: Catalog, digests: Iterable[str], now: float) -> None:
    """Forget sub-agents that a run left unread, as their parents are, and whatever they started.

    Called by the writer, between two transactions.
    """
    add(catalog.path, FORGOTTEN, sorted(set(digests)), now)
    finish(catalog, now)


def expire(connection: sqlite3.Connection, database: Path, days: int, now: float) -> None:
    """Forget sessions whose last event, sub-agents included, is older than so many days before today (UTC).

    Today is the day of the newest event, unless that is still to come: a clock that jumped ahead makes nothing old.
    Called by the writer, between two transactions. They stay out until their logs are written to again.
    """
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('kept_days', ?)", (str(days),))
    newest = connection.execute("SELECT max(ended_at) FROM session WHERE ended_at <= ?", (now * 1000,)).fetchone()[0]
    before = int((newest or 0) // 1000 // _DAY - days) * _DAY * 1000
    if connection.execute("SELECT 1 FROM session WHERE ended_at < ? LIMIT 1", (before,)).fetchone() is None:
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
    if new:  # sub-agents that came since
        add(database, FORGOTTEN, sorted(new), now)
    _carry_out(connection, database, files)


def _carry_out(connection: sqlite3.Connection, database: Path, files: set[int]) -> None:
    """Delete what was read of these files, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    hid = _hide_beside(connection, Tombstones.of(database))
    if files:
        _delete(connection, files)
    if files or hid:
        note_scrub(connection, of_events=bool(files))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('forgotten', ?)", (stamp(database),))
    connection.execute("COMMIT")


def _delete(connection: sqlite3.Connection, files: set[int]) -> None:
    named = {"files": json_ids(files)}
    _inherit(connection, connection.execute(_ARCHIVED_COPIES, named).fetchall())
    connection.execute(_ARCHIVED_TITLES, named)
    store = Store(connection)
    connection.execute(_CHILDREN, named)
    for file in sorted(files):
        _hide(store, file)
    join_families(connection)
    tell_apart(connection)


def _inherit(connection: sqlite3.Connection, copies: list[tuple[int, int, int]]) -> None:
    """Let the oldest archived copy of each event that goes be the original of the others: it counts from now on."""
    first: dict[int, int] = {}
    for original, event, _ in copies:
        heir = first.setdefault(original, event)
        connection.execute("UPDATE event SET copy_of = ? WHERE id = ?", (None if heir == event else heir, event))
    for session in sorted({session for _, _, session in copies}):
        sum_turns(connection, session)
        sum_session(connection, session)


def _hide(store: Store, file: int) -> None:
    """Delete what was read of a file, and remember it by its stamp and a digest of its path, if it is still there."""
    query = "SELECT path, gone, stamp FROM file WHERE id = ?"
    path, gone, mark = store.connection.execute(query, (file,)).fetchone()
    if store.connection.execute("DELETE FROM root WHERE path = ?", (path,)).rowcount:
        store.connection.execute("INSERT OR REPLACE INTO meta VALUES ('root_forgotten', '1')")
    store.connection.execute("DELETE FROM file WHERE status = 'duplicate' AND reason = ?", (REPEATS.format(path),))
    store.hide(path, mark)
    if gone:
        store.show(path)


def _hide_beside(connection: sqlite3.Connection, tombstones: Tombstones) -> bool:
    """Forget the names of files that are no logs and bear a forgotten session's id; whether there were any."""
    rows = connection.execute("SELECT id, path FROM file WHERE status NOT IN ('log', 'forgotten')").fetchall()
    found = [file for file, path in rows if lies_beside(path, tombstones)]
    for file in found:
        _hide(Store(connection), file)
    return bool(found)
