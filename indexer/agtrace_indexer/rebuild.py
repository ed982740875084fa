"""A damaged or older index, made anew: from the logs, and from what it has of sessions whose logs are gone.

The new index is built next to the old one, checked, and put in its place; the old file is kept under another name.
Nothing of the old one is changed until the new one is complete, so a rebuild that is interrupted loses nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from agtrace_schema.database import TABLES as DEFINITIONS
from agtrace_schema.database import VERSION
from msgspec import Struct
from sqlite_utils import Database
from sqlite_utils.db import Table

from agtrace_indexer.index.catalog import Catalog, NotRebuilt, remove_attempts
from agtrace_indexer.index.lock import WriteLock, reach_disk
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.opening import is_damage, open_to_read, refuse_newer, version_of
from agtrace_indexer.index.session_sums import sum_session
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.table_roles import BESIDE, TABLES, Role, delete_session, of_role, pointers
from agtrace_indexer.index.turn_sums import sum_turns
from agtrace_indexer.logs.discovery import described, preferred, walk
from agtrace_indexer.providers.registry import FORMS, SIDECARS
from agtrace_indexer.reader.containers import look_into
from agtrace_indexer.reader.taking_back import has_taken_back
from agtrace_indexer.run import index
from agtrace_indexer.texts.blocks import BlockText, unpack

_MOST_TOLD = 20

_FACTS = "key IN ('reading', 'redaction', 'root_forgotten', 'removed_roots')"
"""What applies to the new index, too; everything else in `meta` is about how far the old one was built."""

_LOST = "(lost) "

_WITHOUT_BLOCK = """
DELETE FROM event WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.session_id = event.session_id
  AND b.first_index <= event.event_index AND event.event_index < b.first_index + b.event_count)
"""

_INCOMPLETE_BLOCKS = """
SELECT b.id FROM block b WHERE b.event_count != (SELECT count(*) FROM event e WHERE e.session_id = b.session_id
  AND e.event_index >= b.first_index AND e.event_index < b.first_index + b.event_count)
"""

_BROKEN_LINKS = """
UPDATE event SET link = NULL WHERE link IS NOT NULL AND NOT EXISTS
  (SELECT 1 FROM event o WHERE o.session_id = event.session_id AND o.event_index = event.link)
"""

_FILES_OF_SESSIONS = """
INSERT INTO file (id, path, status, provider, gone, stamp, size)
SELECT DISTINCT file_id, ? || file_id, 'log', provider, 1, '', 0 FROM session
WHERE file_id NOT IN (SELECT id FROM file)
"""
"""Rows for the logs whose own rows are lost."""

_READ_TWICE = """
SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.path LIKE ? || '%' AND EXISTS
  (SELECT 1 FROM session o WHERE (o.provider, o.own_id, o.thread) = (s.provider, s.own_id, s.thread) AND o.id != s.id)
"""

_WITHOUT_SESSIONS = "DELETE FROM file WHERE status = 'log' AND {} AND id NOT IN (SELECT file_id FROM session)"

# Copies in logs that are gone, of events that were read again and have other numbers now.
_ORIGINALS = """
UPDATE event SET copy_of = coalesce((SELECT o.id FROM event o WHERE o.identity = event.identity
  AND (o.identity > 0 OR o.session_id = (SELECT parent_session FROM session s WHERE s.id = event.session_id))
  AND o.copy_of IS NULL ORDER BY o.id LIMIT 1), 0)
WHERE copy_of > 0 AND copy_of NOT IN (SELECT id FROM event)
"""

_LENGTHS = "SELECT id, event_count + copied_events FROM session"


class Lost(NamedTuple):
    """A session that couldn't be copied completely."""

    session: str
    """Its id."""
    title: str | None
    events: int
    """The number of its events that are lost."""
    kept: int
    """The number of its events that are there."""


class Rebuilt(Struct, frozen=True):
    """The result of a rebuild."""

    damage: tuple[str, ...]
    """What was damaged, as sentences."""
    sessions: int
    """In the new index."""
    events: int
    archived: int
    """Logs that have vanished and whose sessions are kept."""
    lost: tuple[Lost, ...]
    """Sessions of vanished logs that couldn't be copied completely."""
    unread: tuple[str, ...]
    """Tables that couldn't be read completely: what only they had is lost, too."""
    old: Path
    """The old file, under its new name."""


# -- finding damage --------------------------------------------------------------------------------


def damage_in(database: Path) -> tuple[str, ...]:
    """Return what is damaged in an index, as sentences, after reading all of it (2 s for a gigabyte of logs).

    Raise `opening.NewerIndex`; `sqlite3.Error` or `OSError` if it can't be read for a reason other than damage.
    """
    found: list[str] = []
    try:
        with closing(open_to_read(database, isolation_level=None)[0]) as connection:
            refuse_newer(connection)
            found.extend(_damage(connection))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found.append(str(error))
    return tuple(dict.fromkeys(found))


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    for (said,) in connection.execute(f"PRAGMA quick_check({_MOST_TOLD})"):
        yield from (line for line in said.splitlines() if line != "ok" and not line.startswith("*** in database"))
    version = version_of(connection)
    if 0 < version < VERSION:
        return  # an older agtrace made it, with other tables
    if version != VERSION:
        yield f"its version number is {version}"
    there, expected = Database(connection, execute_plugins=False), Database(memory=True, execute_plugins=False)
    expected.executescript(DEFINITIONS)
    for table in expected.tables:
        if missing := table.columns_dict.keys() - there.table(table.name).columns_dict.keys():
            yield f"{table.name} lacks {', '.join(sorted(missing))}"
        elif {one.name for one in table.indexes} - {one.name for one in there.table(table.name).indexes}:
            yield f"{table.name} lacks an index"
    unreadable = sum(not _is_whole(*row) for row in connection.execute("SELECT ends, text, payload FROM block_data"))
    if unreadable:
        yield f"{unreadable} blocks of texts can't be read"
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5vocab%'").fetchall():
        connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # reads the whole word index


def _is_whole(ends: bytes, text: bytes, payload: bytes) -> bool:
    """Whether a row of `block_data` has the texts and payloads that it says; both have checksums."""
    try:
        texts, payloads = BlockText.of(ends, text), orjson.loads(unpack(payload))
        return len(texts.ends) == len(payloads) and len(texts.data) == texts.ends[-1] + 1
    except (sqlite3.DatabaseError, ValueError, TypeError, IndexError):
        return False


# -- the new index ---------------------------------------------------------------------------------


def rebuild(database: Path, otherwise: Iterable[str] = (), *, patience: float = 0) -> Rebuilt:
    """Make the index anew and put it in place. `otherwise` are the roots for an index without any, or readable ones.

    Raises `NotRebuilt`, `lock.Busy` if another process is still writing after `patience` seconds, `OSError` and
    `sqlite3.Error` for trouble other than damage: a locked file, a full disk, no permission, a newer agtrace's index.
    """
    if not stat.S_ISREG(database.lstat().st_mode):
        raise NotRebuilt(f"{database} is not a file: move it away and run agtrace index")
    roots = list(otherwise)
    with WriteLock(database, patience):
        building = database.with_name("index.repairing.sqlite3")
        remove_attempts(database)
        try:
            damage = damage_in(database)
            lost, unread = _copied(database, building, roots)
            index(building, (), otherwise=roots)
            sessions, events, archived = _settled(building)
            optimize(building)
            if left := damage_in(building):
                raise NotRebuilt(f"the new index isn't sound ({'; '.join(left)}): the old one is unchanged")
            old = _name_for_old(database, datetime.now())
            _put_in_place(building, database, old)
        finally:
            remove_attempts(database)
    return Rebuilt(damage, sessions, events, archived, tuple(lost), tuple(sorted(unread)), old)


def _copied(database: Path, building: Path, otherwise: list[str]) -> tuple[list[Lost], set[str]]:
    """Copy what no log brings back into a new index; return the sessions that lack events, and what wasn't readable."""
    with closing(Catalog(building)) as catalog:
        try:
            source = open_to_read(database, isolation_level=None)[0]
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return [], {"file", "session", "root"}
        with closing(source):
            source.text_factory = lambda data: data.decode("utf-8", "replace")
            catalog.connection.execute("BEGIN IMMEDIATE")
            copy = _Copy(Database(source, execute_plugins=False), catalog)
            lost = copy.sessions(copy.facts(otherwise))
            catalog.connection.execute("COMMIT")
            return lost, copy.unread


class _Copy:
    """Rows on their way from the old index into the empty new one, where they keep their numbers."""

    def __init__(self, old: Database, catalog: Catalog) -> None:
        self._old, self._catalog, self._new = old, catalog, catalog.connection
        self._tables = Database(catalog.connection, execute_plugins=False)
        self.unread: set[str] = set()
        """Tables that couldn't be read completely."""

    def facts(self, otherwise: list[str]) -> set[str]:
        """Copy what doesn't belong to a session, and the logs that are gone or have changed since they were read.

        Return the paths of all logs that there are now.
        """
        self._take("meta", _FACTS)
        self._catalog.set_meta("built", "0")
        if self._catalog.meta("redaction") is None:
            self._catalog.set_meta("redaction", "")  # so that everything is masked again
        for table in ("root", *of_role(Role.SHARED), "file"):
            self._take(table)
        self._new.execute("DELETE FROM sqlite_sequence")
        self._take("sqlite_sequence", "name IN ('session', 'event', 'block')")  # numbers aren't used again
        listed = self._listed(otherwise)
        for id, state in self._new.execute("SELECT id, state FROM file WHERE state IS NOT NULL").fetchall():
            with suppress(sqlite3.DatabaseError, TypeError):
                unpack(state)
                continue
            self._new.execute("UPDATE file SET state = NULL WHERE id = ?", (id,))
        self._new.executemany(
            "UPDATE file SET status = 'again' WHERE path = ?",
            [(path,) for path in self._catalog.known() if self._is_read_again(path, listed)],
        )
        return set(listed)

    def _listed(self, otherwise: list[str]) -> dict[str, str]:
        """Return the logs that there are, with their stamps."""
        roots = self._catalog.roots() or ([] if self._catalog.meta("root_forgotten") else otherwise)
        found, _ = look_into(described(list(walk(roots, follow=True)), SIDECARS), {})
        left_out = preferred(found, FORMS)
        return {file.path: file.stamp for file in found if file.oddity is None and file.path not in left_out}

    def _is_read_again(self, path: str, listed: dict[str, str]) -> bool:
        """Whether all that was read of a file is read again: it is as it was, or was no log."""
        file = self._catalog.file(path)
        if file is None or file.status != "log":
            return True
        (lost,) = self._new.execute("SELECT state IS NULL FROM file WHERE id = ?", (file.id,)).fetchone()
        if file.gone or path not in listed:
            return False
        return bool(lost) or (
            listed[path] == file.stamp and not has_taken_back(Store(self._new), file)  # which the log no longer has
        )

    def sessions(self, listed: set[str]) -> list[Lost]:
        """Copy the sessions of all logs that aren't read again; return those that lack events and have no log."""
        new = self._new
        again = "+file_id NOT IN (SELECT value FROM json_each(?))"
        self._take("session", again, self._ids("file WHERE status = 'again'"))
        new.execute("DELETE FROM file WHERE status = 'again'")
        new.execute(_FILES_OF_SESSIONS, (_LOST,))
        before = dict(new.execute(_LENGTHS).fetchall())
        self._take("record_type", "file_id IN (SELECT value FROM json_each(?))", self._ids("file"))
        for table in ("event", "block", *BESIDE):
            self._take(table, "+session_id IN (SELECT value FROM json_each(?))", self._ids("session"))
        for table in ("block_data", "block_tool"):
            self._take(table, "block_id IN (SELECT value FROM json_each(?))", self._ids("block"))
        self._drop_what_is_incomplete()
        for (session,) in new.execute("SELECT id FROM session").fetchall():
            sum_turns(new, session)
            sum_session(new, session)
        after = dict(new.execute(_LENGTHS).fetchall())
        lost = [
            one
            for session, count in before.items()
            if count > after[session] and (one := self._lost(session, count, after[session], listed)) is not None
        ]
        new.execute(_WITHOUT_SESSIONS.format("NOT gone"))  # such a log is read from its beginning
        new.execute(
            "UPDATE session SET pending = 2, compared_to = 0 WHERE file_id IN (SELECT id FROM file WHERE NOT gone)"
        )
        return lost

    def _take(self, table: str, where: str | None = None, *given: str) -> None:
        """Copy the rows of a table that can be read, by the columns that both indexes have."""
        try:
            known = self._old.table(table).columns_dict
            columns = [column for column in self._tables.table(table).columns_dict if column in known]
            if not columns:  # an older index may not have this table
                self.unread |= {table} if version_of(self._old.conn) == VERSION else set()
                return
            marks = ", ".join(f":{column}" for column in columns)
            rows = self._rows(self._old.table(table), columns, where, given)
            self._new.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.unread.add(table)

    def _rows(
        self, table: Table, columns: list[str], where: str | None, given: tuple[str, ...]
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows that can be read: from the first on, and where that breaks off, from the last on."""
        for order in ("", " DESC"):
            try:
                by = ", ".join(key + order for key in table.pks)
                yield from table.rows_where(where, given, by, ", ".join(columns))
                return
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.unread.add(table.name)

    def _ids(self, table: str) -> str:
        return orjson.dumps([id for (id,) in self._new.execute(f"SELECT id FROM {table}")]).decode()

    def _drop_what_is_incomplete(self) -> None:
        """Keep the blocks that have all of their events and texts, and what belongs to these events."""
        new = self._new
        rows = "SELECT b.id, d.ends, d.text, d.payload FROM block b LEFT JOIN block_data d ON d.block_id = b.id"
        bad = {id for id, *data in new.execute(rows) if not _is_whole(*data)}
        bad |= {id for (id,) in new.execute(_INCOMPLETE_BLOCKS)}
        for table, column in (("block", "id"), ("block_data", "block_id"), ("block_tool", "block_id")):
            new.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(id,) for id in bad])
        new.execute(_WITHOUT_BLOCK)
        for table in (name for name in BESIDE if TABLES[name].role is Role.EVENT):
            new.execute(
                f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM event e "
                f"WHERE e.session_id = {table}.session_id AND e.event_index = {table}.event_index)"
            )
        new.execute(_BROKEN_LINKS)
        new.execute("UPDATE block SET words = 0")
        for table, column, other in pointers():
            if TABLES[other].role is Role.SHARED and TABLES[table].role is not Role.JOINED:
                new.execute(
                    f"INSERT OR IGNORE INTO {other} (id, {TABLES[other].told_by}) SELECT DISTINCT {column}, "
                    f"'{_LOST}' || {column} FROM {table} WHERE {column} NOT IN (SELECT id FROM {other})"
                )

    def _lost(self, session: int, count: int, kept: int, listed: set[str]) -> Lost | None:
        """Drop a session that lacks events if its log is there to be read, else return what is lost of it."""
        found = self._new.execute(
            "SELECT f.id, f.path, s.uid, s.title FROM session s JOIN file f ON f.id = s.file_id WHERE s.id = ?",
            (session,),
        ).fetchone()
        if found is None:
            return None
        file, path, uid, title = found
        if path in listed:
            Store(self._new).forget_contents(file)
            return None
        if not kept:
            delete_session(self._new, session)
        return Lost(str(uid), title, count - kept, kept)


def _settled(building: Path) -> tuple[int, int, int]:
    """Join what was copied with what was read since; return the numbers of sessions, events and vanished logs."""
    with closing(Catalog(building)) as catalog:
        connection = catalog.connection
        connection.execute("BEGIN IMMEDIATE")
        for (session,) in connection.execute(_READ_TWICE, (_LOST,)).fetchall():
            delete_session(connection, session)
        connection.execute(_WITHOUT_SESSIONS.format("path LIKE ? || '%'"), (_LOST,))
        connection.execute(_ORIGINALS)
        connection.execute("COMMIT")
        totals = catalog.totals()
        return totals.sessions, totals.events, len(catalog.gone_files())


# -- putting it in place ---------------------------------------------------------------------------


def _name_for_old(database: Path, now: datetime) -> Path:
    path = database.with_name(f"index.damaged-{now:%Y%m%d-%H%M%S}.sqlite3")
    number = 1
    while path.exists():
        number += 1
        path = database.with_name(f"index.damaged-{now:%Y%m%d-%H%M%S}-{number}.sqlite3")
    return path


def _put_in_place(building: Path, database: Path, old: Path) -> None:
    """Put the new index in the place of the old one, which is kept with its WAL under another name."""
    beside = [database.with_name(database.name + end) for end in ("-wal", "-shm")]
    _keep(database, old)
    if beside[0].exists() and beside[0].stat().st_size:
        _keep(beside[0], old.with_name(old.name + "-wal"))
    reach_disk(database.parent)
    for path in beside:  # or SQLite would apply the old WAL to the new file
        path.unlink(missing_ok=True)
    os.replace(building, database)
    reach_disk(database.parent)


def _keep(path: Path, name: Path) -> None:
    """Give a file a second name, readable only by its owner; copy it if that isn't possible."""
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)
    with suppress(OSError):
        name.chmod(0o600)
