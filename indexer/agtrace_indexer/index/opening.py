"""Opening an index for reading, even where nothing can be written next to it; refusing one of another version.

One writer at a time holds a lock file next to the index, released by the system when its holder dies.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agtrace_schema.database import VERSION

from agtrace_indexer.index.queries.base import is_team

_LARGE_WAL = 24 * 1024 * 1024
"""Bytes of a write-ahead log from which it is emptied; the next transaction writes up to 20 MB."""

_MOST_VERSIONS = 1000
"""The limit for a plausible version: versions increase by one, so a larger number was never written and is damage."""


_LAST_PUSH = "SELECT coalesce((extract(epoch FROM max(pushed_at)) * 1000000)::bigint, 0) FROM session"
"""PostgreSQL's: microseconds."""


class Reading(sqlite3.Connection):
    """A connection that reads an index."""

    is_still: bool = False
    """Whether the index is assumed to be a file that nobody writes, so that later changes go unnoticed."""


class NewerIndex(sqlite3.OperationalError):
    """The index was made by a newer agtrace, and its contents may mean something else here."""

    def __init__(self, what: str, version: int, known: int) -> None:
        super().__init__(f"a newer agtrace made the index ({what} {version}, this one knows {known}): update agtrace")


class OlderIndex(sqlite3.OperationalError):
    """The index was made by an older agtrace."""

    def __init__(self, version: int) -> None:
        super().__init__(f"an older agtrace made the index (tables {version}, this one needs {VERSION})")


def open_to_read(path: Path, *, cut_off: bool = False, **options: Any) -> Reading:
    """Return a connection that reads an index. `options` are those of `sqlite3.connect`. Raise `sqlite3.Error`.

    With `cut_off` it also opens a file whose end is missing, to read what there is.

    While an index is read, SQLite keeps a small file next to it. If that can't be created (a full disk, a read-only
    folder), nobody can write the index either, and it is read as it is: later changes then go unnoticed.
    """
    refuse_empty(path)
    try:
        return _connected(path, "mode=ro", options, cut_off)
    except sqlite3.OperationalError as error:
        wal = path.with_name(f"{path.name}-wal")
        is_in_wal = wal.exists() and wal.stat().st_size > 0
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or is_in_wal:
            raise
    connection = _connected(path, "mode=ro&immutable=1", options, cut_off)
    connection.is_still = True
    return connection


def _connected(path: Path, how: str, options: dict[str, Any], cut_off: bool) -> Reading:
    uri = f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(uri, uri=True, timeout=5, factory=Reading, **options)
    if cut_off:
        connection.execute("PRAGMA writable_schema=1")  # else SQLite compares the file's size with what its header says
    connection.execute("PRAGMA user_version").fetchone()  # opens the file, which connecting does not
    return connection


def open_read_only(path: Path) -> Reading:
    """Return a connection that only reads an index, for any thread, with the index mapped into memory.

    Raise `sqlite3.Error`; for an index of another version, `NewerIndex` or `OlderIndex`.
    """
    connection = open_to_read(path, check_same_thread=False)
    refuse_other_tables(connection)
    connection.executescript("PRAGMA query_only=1; PRAGMA cache_size=-65536; PRAGMA mmap_size=2147418112;")
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return connection


def refuse_empty(path: Path) -> None:
    """Raise `sqlite3.DatabaseError` for an empty file: SQLite would take a lost index for a new one."""
    if path.exists() and path.stat().st_size == 0:
        raise sqlite3.DatabaseError("the file is empty")


def refuse_newer(connection: sqlite3.Connection) -> None:
    """Raise `NewerIndex` if the tables are newer than those that this agtrace knows."""
    version = version_of(connection)
    if VERSION < version < _MOST_VERSIONS:
        raise NewerIndex("tables", version, VERSION)


def refuse_other_tables(connection: sqlite3.Connection) -> None:
    """Raise `NewerIndex` or `OlderIndex` if the tables aren't those that this agtrace knows."""
    refuse_newer(connection)
    version = version_of(connection)
    if 0 < version < VERSION:
        raise OlderIndex(version)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables that the file names."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_damage(error: BaseException) -> bool:
    """Whether an error of SQLite, or of ours about its data, means that the file is damaged or isn't an index."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if code is None:
        return not isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError)) or "decode" in str(error)
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_CONSTRAINT)
    if code & 0xFF in damage:
        return True
    missing = re.match(
        "no such (table|column|index)|malformed|unknown tokenizer|vtable constructor|invalid fts5", str(error)
    )
    return code == sqlite3.SQLITE_ERROR and missing is not None


@contextmanager
def one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Make all queries within this context see the index as it is at one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.rollback()  # even if SQLite ended the transaction itself


def state_of(connection: sqlite3.Connection) -> int:
    """Return a number that changes with another connection's commit, for as long as this connection is open."""
    sql = _LAST_PUSH if is_team(connection) else "PRAGMA data_version"
    return int(connection.execute(sql).fetchone()[0])


class Wal:
    """The write-ahead log of an index that is written: emptied when it is large, so that it stays below 50 MB.

    That waits for those who read, in all for half a minute: whoever reads for longer has it grow, and stops no run.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._patience = connection, 30.0
        self._path = f"{path_of(connection)}-wal"

    def empty_if_large(self) -> None:
        """Write its contents into the index, between two transactions, and leave it empty."""
        with suppress(OSError):  # an index in memory has none
            if self._patience <= 0 or os.path.getsize(self._path) < _LARGE_WAL:
                return
            (waits,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
            self._connection.execute("PRAGMA busy_timeout=250")  # one that waits for longer may miss that they are done
            began = time.monotonic()
            emptying, is_busy = "PRAGMA wal_checkpoint(TRUNCATE)", 1
            while is_busy and self._patience > time.monotonic() - began:
                is_busy = self._connection.execute(emptying).fetchone()[0]
            self._connection.execute(f"PRAGMA busy_timeout={waits}")
            self._patience -= time.monotonic() - began


def bytes_on_disk(path: Path) -> int:
    """Return the size of an index, including its write-ahead log."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())


def path_of(connection: sqlite3.Connection) -> Path:
    """Return the file that a connection has opened."""
    return next(Path(path) for _, name, path in connection.execute("PRAGMA database_list") if name == "main")


# -- one writer at a time -----------------------------------------------------------------------------

_PAUSE = 0.02


class Busy(Exception):
    """Another process is writing the index."""

    def __init__(self, lock: Path) -> None:
        super().__init__(f"another agtrace is indexing (it holds {lock}): wait for it, or search what is indexed")


@contextmanager
def write_lock(database: Path, patience: float = 0) -> Iterator[None]:
    """Hold the lock of an index. Raise `Busy` if another process still holds it after `patience` seconds."""
    path = database.with_suffix(".lock")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    end = time.monotonic() + patience
    try:
        while True:
            try:
                _lock(descriptor)
                break
            except OSError:
                if time.monotonic() >= end:
                    raise Busy(path) from None
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


def reach_disk(folder: Path) -> None:
    """Make a new name in a folder survive a power cut; does nothing on Windows, which has no such call for folders."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
