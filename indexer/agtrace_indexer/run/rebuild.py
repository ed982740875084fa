"""A damaged or older index, set aside and made anew from the logs and the archive.

The new index is built next to the old one, checked, and put in its place; the old file is kept under another name.
Nothing of the old one is changed until the new one is complete, so a rebuild that is interrupted loses nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_schema.database import TABLES as DEFINITIONS
from agtrace_schema.database import VERSION
from msgspec import Struct
from sqlite_utils import Database

from agtrace_indexer.index.catalog import Catalog, NotRebuilt, remove_attempts
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.index.opening import (
    OlderIndex,
    is_damage,
    open_to_read,
    reach_disk,
    refuse_newer,
    version_of,
    write_lock,
)
from agtrace_indexer.index.tombstones import Tombstones, digest_of
from agtrace_indexer.logs.discovery import ARCHIVE
from agtrace_indexer.run import index
from agtrace_indexer.run.versions import refuse_newer_reading
from agtrace_indexer.texts.blocks import BlockText

_MOST_TOLD = 20

_FACTS = "SELECT key, value FROM meta WHERE key IN ('reading', 'root_forgotten', 'removed_roots')"
_ROOTS = "SELECT path FROM root"
_SESSIONS = "SELECT provider, own_id, title FROM session WHERE typeof(own_id) = 'text'"


class Lost(NamedTuple):
    """A session that the old index had, and neither the logs nor the archive."""

    session: str
    """Its id."""
    title: str | None


class Rebuilt(Struct, frozen=True):
    """The result of a rebuild."""

    damage: tuple[str, ...]
    """What was damaged, as sentences."""
    sessions: int
    """In the new index."""
    events: int
    archived: int
    """Logs that only the archive has."""
    lost: tuple[Lost, ...]
    unread: tuple[str, ...]
    """Tables of the old index, of `root` and `session`, that couldn't be read: what they alone said is unknown."""
    old: Path
    """The old file, under its new name."""


# -- finding damage --------------------------------------------------------------------------------


def damage_in(database: Path) -> tuple[str, ...]:
    """Return what is damaged in an index, as sentences, after reading all of it (2 s for a gigabyte of logs).

    Raise `opening.NewerIndex`; `sqlite3.Error` or `OSError` if it can't be read for a reason other than damage.
    """
    found: list[str] = []
    try:
        with closing(open_to_read(database, isolation_level=None)) as connection:
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
        elif f"CREATE TABLE {table.name} (" in DEFINITIONS:
            yield from _strange(connection, table.name, table.columns_dict)
    for what, query in _TORN.items():
        if connection.execute(f"{query} LIMIT 1").fetchone():
            yield what
    unreadable = sum(not _is_whole(*row) for row in connection.execute("SELECT ends, text FROM block_data"))
    if unreadable:
        yield f"{unreadable} blocks of texts can't be read"
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5vocab%'").fetchall():
        connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # reads the whole word index
    connection.execute("SELECT rowid FROM ranked('a') LIMIT 1").fetchone()


_TORN = {
    "a session is of no file": "SELECT 1 FROM session WHERE file_id NOT IN (SELECT id FROM file)",
    "events of a session are missing": "SELECT 1 FROM event GROUP BY session_id HAVING max(event_index) >= count(*)",
}
_NUMBER = "typeof(max({0})) NOT IN ('null', 'integer', 'real')"  # what isn't a number is larger
_TYPED = "max(typeof({{0}}) NOT IN ('null', '{}'))"
_OTHER = {int: _NUMBER, float: _NUMBER, bytes: _TYPED.format("blob"), str: _TYPED.format("text")}


def _strange(connection: sqlite3.Connection, table: str, columns: dict[str, type]) -> Iterator[str]:
    """Yield the columns of a table that have values of other types than theirs, or texts that aren't UTF-8."""
    others = ", ".join(_OTHER[kind].format(name) for name, kind in columns.items())
    found = connection.execute(f"SELECT {others} FROM {table}").fetchone()
    for name, other in zip(columns, found, strict=True):
        if other:
            yield f"{table}.{name} has values of another type"
    texts = ", ".join(name for name, kind in columns.items() if kind is str)
    try:
        deque(connection.execute(f"SELECT {texts or 1} FROM {table}"), maxlen=0)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        yield f"{table} has a text that isn't UTF-8"


def _is_whole(ends: bytes, text: bytes) -> bool:
    """Whether a row of `block_data` has the texts and payloads that it says, which have a checksum."""
    try:
        texts = BlockText.of(ends, text)
        return len(texts.ends) == len(texts.payloads()) and len(texts.data) == texts.ends[-1] + 1
    except (sqlite3.DatabaseError, ValueError, TypeError, IndexError):
        return False


# -- the new index ---------------------------------------------------------------------------------


def rebuild(database: Path, otherwise: Iterable[str] = (), *, patience: float = 0, archive: bool = True) -> Rebuilt:
    """Make the index anew and put it in place. `otherwise` are the roots for an index without any, or readable ones.

    Raises `NotRebuilt`, `lock.Busy` if another process is still writing after `patience` seconds, `OSError` and
    `sqlite3.Error` for trouble other than damage: a locked file, a full disk, no permission, a newer agtrace's index.
    """
    if not stat.S_ISREG(database.lstat().st_mode):
        raise NotRebuilt(f"{database} is not a file: move it away and run agtrace index")
    with write_lock(database, patience):
        building = database.with_name("index.repairing.sqlite3")
        remove_attempts(database)
        try:
            damage = damage_in(database)
            (facts, _), (roots, all_roots), (before, all_before) = (
                _rows(database, query) for query in (_FACTS, _ROOTS, _SESSIONS)
            )
            whole = [path for (path,) in roots if "\ufffd" not in path]
            _begin(building, dict(facts), whole)
            index(building, (), otherwise=list(otherwise), archive=archive)
            optimize(building)
            if left := damage_in(building):
                raise NotRebuilt(f"the new index isn't sound ({'; '.join(left)}): the old one is unchanged")
            with closing(Catalog(building)) as catalog:
                totals = catalog.totals()
                kept = archive and catalog.has_archive  # with the log of each session that its agent may delete
                archived = sum(not os.path.lexists(row.path) for row in catalog.gone_files())
            lost = tuple(_missing(database, before, _rows(building, _SESSIONS)[0]))
            old = _name_for_old(database, datetime.now())
            _put_in_place(building, database, old)
        finally:
            remove_attempts(database)
    unread = ["root"] * (not all_roots or len(whole) < len(roots)) + ["session"] * (not (all_before or kept))
    return Rebuilt(damage, totals.sessions, totals.events, archived, lost, tuple(unread), old)


def rebuild_if_unusable(database: Path, error: Exception, patience: float) -> tuple[str, ...]:
    """Rebuild an index that an older agtrace made, or that is damaged, has an archive, and still says what it held.

    `error` is that of using it. Return why it was rebuilt and what became of it, as sentences; none if it wasn't.
    """
    why: tuple[str, ...] = (str(error),)
    if not isinstance(error, OlderIndex):
        why = damage_in(database) if database.with_name(ARCHIVE).exists() else ()
        (roots, all_roots), (_, all_sessions) = (_rows(database, query) for query in (_ROOTS, _SESSIONS))
        if not (why and all_roots and all_sessions) or any("\ufffd" in path for (path,) in roots):
            return ()
    done = rebuild(database, patience=patience)
    lost = (f"neither the logs nor the archive have session {one.session}" for one in done.lost)
    archived = f"read from the archive: {done.archived} log{'s' * (done.archived != 1)} whose files are gone"
    if not (done.damage or done.lost or done.unread):  # an older one, all of which is in the new one
        for path in (done.old, done.old.with_name(done.old.name + "-wal")):
            path.unlink(missing_ok=True)
        return (*why, archived)
    return (
        *why,
        archived,
        *lost,
        f"the old index is now {done.old}: delete it once you are sure that nothing is missing",
    )


def _rows(database: Path, query: str) -> tuple[list[Any], bool]:
    """Return the rows of an index that can be read, and whether these are all. Raise `sqlite3.Error`."""
    rows: list[Any] = []
    try:
        with closing(open_to_read(database, cut_off=True, isolation_level=None)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            rows.extend(connection.execute(query))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return rows, False
    return rows, True


def _begin(building: Path, facts: dict[str, str], roots: list[str]) -> None:
    """Make the new index, without logs, with what the old one says of its roots. Raise `opening.NewerIndex`."""
    refuse_newer_reading(facts.pop("reading", None))
    with closing(Catalog(building)) as catalog:
        catalog.add_roots(roots)
        for key, value in facts.items():
            catalog.set_meta(key, value)


def _missing(database: Path, before: Iterable[Any], now: Iterable[Any]) -> Iterator[Lost]:
    """Yield the sessions that there were and aren't any more, but for those that are forgotten."""
    there, forgotten = {(provider, own_id) for provider, own_id, _ in now}, Tombstones.of(database)
    for provider, own_id, title in before:
        if (provider, own_id) not in there and digest_of(provider, own_id) not in forgotten:
            yield Lost(own_id, title)


# -- putting it in place ---------------------------------------------------------------------------


def _name_for_old(database: Path, now: datetime) -> Path:
    names = (f"index.damaged-{now:%Y%m%d-%H%M%S}{more}.sqlite3" for more in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(path for name in names if not (path := database.with_name(name)).exists())


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
