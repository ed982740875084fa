"""Repairing a damaged index: a new one is made next to it, checked, and put in its place.

If only what is derived from the tables is damaged, all rows are carried over and the rest is rebuilt. Otherwise the
logs are read again, and only what these no longer have (`rereadable.py`) is carried over from the damaged file, if it
can be read. That file is then kept. Nothing is changed until the new index is complete: whatever interrupts a repair,
the damaged index is still there, or a copy of it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from agtrace_indexer.index import ranking, repositories, word_index
from agtrace_indexer.index.catalog import Catalog, make_tables, open_database, remove_attempts
from agtrace_indexer.index.lock import WriteLock, reach_disk
from agtrace_indexer.index.opening import is_damage, open_to_read, refuse_newer
from agtrace_indexer.repair.consistency import Lost, Salvage, settle
from agtrace_indexer.repair.damage import Damage, afresh, look
from agtrace_indexer.repair.rereadable import Logs
from agtrace_indexer.repair.salvage import SAVED, IsWanted, salvage
from agtrace_indexer.run import index, refuse_newer_reading

_NOT_AS_IT_LIES = "the file can't be read as it is: its header, its end or the write-ahead log is damaged"


_OLDEST_SAVED = 3
"""The oldest version of the tables whose rows can be carried over."""


class NotRepaired(Exception):
    """A repair didn't result in a sound index; the text says why. The damaged index is unchanged."""


class Repaired(Struct, frozen=True):
    """The result of a repair."""

    found: Damage
    sessions: int
    """In the new index."""
    events: int
    archived: int
    """Logs that have vanished and whose sessions are kept."""
    lost: tuple[Lost, ...]
    """Archived sessions that couldn't be saved completely."""
    unread: tuple[str, ...]
    """Tables with pages that couldn't be read."""
    damaged: Path | None
    """The new path of the damaged file; None if nothing in it is missing from the new index."""

    @property
    def others_lost(self) -> bool:
        """Whether archived sessions may be lost that aren't in `lost`."""
        return "session" in self.unread


def repair(
    database: Path,
    otherwise: Iterable[str] = (),
    *,
    patience: float = 0,
) -> Repaired:
    """Make the index sound again. `otherwise` are the roots for an index without any, or without any readable ones.

    Raises `NotRepaired`, `lock.Busy` if another process is still writing after `patience` seconds, `OSError` and
    `sqlite3.Error` for trouble other than damage: a locked file, a full disk, no permission, a newer agtrace's index.
    """
    if not stat.S_ISREG(database.lstat().st_mode):
        raise NotRepaired(f"{database} is not a file: move it away and run agtrace index")
    with WriteLock(database, patience):
        building = database.with_name("index.repairing.sqlite3")
        remove_attempts(database)
        try:
            with _readable(database) as source:
                if source is not None:
                    _refuse_newer_reading(source)
                found = _look_at(source)
                done = _build(source, building, found, list(otherwise))
            left = examine(building)
            if left:
                raise NotRepaired(f"the repaired index isn't sound ({left}): the damaged one is unchanged")
            with closing(Catalog(building)) as catalog:
                sessions, events, archived = _counts(catalog.connection)
            damaged = _name_for_damaged(database, datetime.now())
            _put_in_place(building, database, damaged)
            if not found.tables:  # everything in it is in the new one
                for path in (damaged, damaged.with_name(damaged.name + "-wal")):
                    path.unlink(missing_ok=True)
        finally:
            remove_attempts(database)
    return Repaired(found, sessions, events, archived, tuple(done.lost.values()), tuple(sorted(done.unread)),
                    damaged if found.tables else None)  # fmt: skip


def examine(database: Path) -> Damage:
    """Return the damage in an index, confirmed by a second examination with a connection of its own.

    Raises `sqlite3.Error` or `OSError` if it can't be read for another reason.
    """
    return _examined(database) and afresh(_examined, database)


def _examined(database: Path) -> Damage:
    try:
        with closing(_open(database)) as connection:
            return look(connection)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return Damage((str(error),))


def damaged_copies(database: Path) -> list[Path]:
    """Return the damaged files that repairs have kept, which still contain what the index contained then."""
    return sorted(path for path in database.parent.glob("index.damaged-*.sqlite3*") if path.is_file())


# -- reading what is damaged -----------------------------------------------------------------------


def _open(database: Path, *, leniently: bool = False) -> sqlite3.Connection:
    """Open an index for reading; a lenient connection reads the remaining tables even if others are lost."""
    connection, _ = open_to_read(database, isolation_level=None)
    connection.executescript(f"PRAGMA writable_schema={int(leniently)}; PRAGMA cache_size=-65536;")
    try:
        refuse_newer(connection)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _refuse_newer_reading(source: sqlite3.Connection) -> None:
    """Raise `NewerIndex` if the index still shows that a newer agtrace read its logs."""
    try:
        found = source.execute("SELECT value FROM meta WHERE key = 'reading'").fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return
    refuse_newer_reading(str(found[0]) if found else None)


@contextmanager
def _readable(database: Path) -> Iterator[sqlite3.Connection | None]:
    """Yield the connection with which most tables can be read; None if none can.

    Tried are the file as it is; without its WAL, which may belong to another file; with a new header.
    """
    best, most = None, 0
    try:
        for path in _forms(database):
            connection = _opened(path)
            readable = 0 if connection is None else sum(_can_be_read(connection, table) for table in SAVED)
            if connection is not None and readable > most:
                best, connection, most = connection, best, readable
            if connection is not None:
                connection.close()
            if most == len(SAVED):
                break
        yield best
    finally:
        if best is not None:
            best.close()


def _forms(database: Path) -> Iterator[Path]:
    yield database
    for name, prepare in (("index.repairing.without-wal", None), ("index.repairing.header", _renew_header)):
        copy = database.with_name(name)
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(database, copy)
        if prepare is not None:
            prepare(copy)
        yield copy


def _renew_header(copy: Path) -> None:
    """Write a new header into a copy of a damaged index. The format: https://sqlite.org/fileformat2.html, 1.3."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_tables(connection)
        header = bytearray(connection.serialize()[:100])
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    header[18:20] = b"\x01\x01"  # no WAL belongs to the copy
    header[28:40] = (copy.stat().st_size // page_size).to_bytes(4, "big") + bytes(8)  # none of its pages are free
    with copy.open("r+b") as file:
        file.write(header)


def _opened(database: Path) -> sqlite3.Connection | None:
    try:
        return _open(database, leniently=True)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return None


def _can_be_read(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT * FROM {table} NOT INDEXED LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def _look_at(source: sqlite3.Connection | None) -> Damage:
    if source is None:
        return Damage(("nothing of it can be read",))
    try:
        found = look(source)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found = Damage((str(error),))
    name = Path(source.execute("PRAGMA database_list").fetchone()[2]).name
    if "repairing" in name:
        return Damage((_NOT_AS_IT_LIES, *found.tables), found.derived)
    return found


# -- building --------------------------------------------------------------------------------------


def _build(
    source: sqlite3.Connection | None,
    building: Path,
    found: Damage,
    otherwise: list[str],
) -> Salvage:
    done = Salvage(unread=set(SAVED))
    with closing(open_database(building)) as target:
        target.execute("BEGIN IMMEDIATE")
        if source is not None:
            logs = Logs(target, otherwise)
            done = salvage(source, target, _wanted(source, found, logs), sums=not found.derived)
        target.execute("COMMIT")
    index(building, (), otherwise=otherwise)
    with closing(open_database(building)) as target:
        target.execute("BEGIN IMMEDIATE")
        settle(target, done)
        word_index.cover(target)
        ranking.cover(target)
        repositories.join(target, anew=True)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return done


def _wanted(source: sqlite3.Connection, found: Damage, logs: Logs) -> IsWanted:
    """Return which files' rows are carried over: none from tables too old to have all columns that are required now."""
    (version,) = source.execute("PRAGMA user_version").fetchone()
    if 0 < version < _OLDEST_SAVED:
        return lambda file: False
    return (lambda file: not logs.back(file)) if found.tables else lambda file: True


def _counts(connection: sqlite3.Connection) -> tuple[int, int, int]:
    row: tuple[int, int, int] = connection.execute(
        "SELECT count(*), coalesce(sum(event_count), 0), (SELECT count(*) FROM file WHERE gone) FROM session"
    ).fetchone()
    return row


# -- putting in place ------------------------------------------------------------------------------


def _name_for_damaged(database: Path, now: datetime) -> Path:
    path = database.with_name(f"index.damaged-{now:%Y%m%d-%H%M%S}.sqlite3")
    number = 1
    while path.exists():
        number += 1
        path = database.with_name(f"index.damaged-{now:%Y%m%d-%H%M%S}-{number}.sqlite3")
    return path


def _put_in_place(building: Path, database: Path, damaged: Path) -> None:
    """Put the new index in the place of the damaged one, which is kept with its WAL under another name."""
    beside = [database.with_name(database.name + end) for end in ("-wal", "-shm")]
    _keep(database, damaged)
    if beside[0].exists() and beside[0].stat().st_size:
        _keep(beside[0], damaged.with_name(damaged.name + "-wal"))
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
