"""Querying an SQLite database that another program writes, without a trace: nothing in its folder is changed, created
or locked for longer than one query.

How SQLite can open it depends on the files next to it (measured with SQLite 3.40): `mode=ro` creates files if there is
no `-shm`, and `immutable=1` misses rows that are only in the `-wal`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import local
from typing import Any, NamedTuple, TypeAlias

Question: TypeAlias = tuple[str, Sequence[Any] | Mapping[str, Any]]
"""A statement that only reads, and its arguments."""

_State: TypeAlias = tuple[tuple[int, int] | None, ...]

_COLUMNS = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
_MAGIC = b"SQLite format 3\0"
_PATIENCE_MS = 2_000
_ATTEMPTS = 3
_BESIDE = ("", "-wal", "-journal")

_kept = local()
"""`copy`, of each thread: the `_Copy` that it made last."""


def columns_of(path: str) -> dict[str, set[str]]:
    """Return the columns of each table; an empty set for a table that isn't there. Raise `OSError`."""
    (found,) = ask(path, (_COLUMNS, ()))
    columns: dict[str, set[str]] = defaultdict(set)
    for table, column in found:
        columns[table].add(column)
    return columns


def tables_of(path: str, needed: Mapping[str, set[str]], whose: str) -> dict[str, set[str]]:
    """Return the columns of each table. Raise `OSError` if needed ones are missing, or the file can't be read."""
    columns = columns_of(path)
    if any(not names <= columns[table] for table, names in needed.items()):
        raise OSError(0, f"its tables are not those of {whose}")
    return columns


def as_bytes(value: Any) -> bytes:
    """Return a value of a row as bytes: a text may have any characters."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def ask(path: str, *questions: Question) -> list[list[tuple[Any, ...]]]:
    """Return the rows for each question, all from the same moment.

    Raise `OSError` if the file is not a database, is damaged or locked, or is written faster than it can be read.
    """
    _check(path)
    for _ in range(_ATTEMPTS):
        before = _state(path)
        try:
            with _opened(path, before) as (connection, shared):
                answers = _answers(connection, questions)
        except sqlite3.Error as error:
            trouble = str(error)
            continue
        if shared or _state(path) == before:
            return answers
        trouble = "it keeps changing while it is read"
    raise OSError(0, trouble)


def _check(path: str) -> None:
    """Refuse a file that isn't a database. It is closed before SQLite opens it: closing drops a process's locks."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(0, "not a regular file")
    with open(path, "rb", buffering=0) as file:
        if file.read(len(_MAGIC)) not in (_MAGIC, b""):
            raise OSError(0, "not an SQLite database")


def _state(path: str) -> _State:
    """Return size and time of the database, its `-wal` and its `-journal`; None for a missing or empty one."""
    return tuple(map(_state_of, (path + name for name in _BESIDE)))


def _state_of(path: str) -> tuple[int, int] | None:
    with suppress(FileNotFoundError):
        status = os.stat(path)
        return (status.st_size, status.st_mtime_ns) if status.st_size else None
    return None


@contextmanager
def _opened(path: str, state: _State) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """Open a database in this state; the second value says whether SQLite keeps writers from disturbing the reader.

    Where it doesn't, what was read holds only if nothing has changed meanwhile.
    """
    _, log, journal = state
    if log is None and journal is None:
        _forget_copy()
        with closing(_connect(path, "immutable=1")) as connection:
            yield connection, False
    elif log is not None and os.path.exists(path + "-shm"):
        _forget_copy()
        with closing(_connect(path, "mode=ro")) as connection:
            yield connection, True
    else:
        yield _copy(path, state), False


class _Copy(NamedTuple):
    """An open copy of a database whose writer was killed. Its files have no names any more (except on Windows), so that
    its end leaves none of them behind, whatever it is.
    """

    of: tuple[str, _State]
    connection: sqlite3.Connection


def _copy(path: str, state: _State) -> sqlite3.Connection:
    """Return this thread's copy of a database in this state, made at the first question about it."""
    kept: _Copy | None = getattr(_kept, "copy", None)
    if kept is None or kept.of != (path, state):
        _forget_copy()
        kept = _kept.copy = _Copy((path, state), _copied(path))
    return kept.connection


def _forget_copy() -> None:
    """Give back the space of this thread's copy, if there is one."""
    kept: _Copy | None = _kept.__dict__.pop("copy", None)
    if kept is not None:
        kept.connection.close()


def _copied(path: str) -> sqlite3.Connection:
    """Return a connection to a copy that is what the next writer would find."""
    with tempfile.TemporaryDirectory(prefix="agtrace-", ignore_cleanup_errors=True) as folder:
        copy = os.path.join(folder, "copy.db")
        for name in _BESIDE:
            with suppress(FileNotFoundError):
                shutil.copyfile(path + name, copy + name)
        connection = _connect(copy, "mode=rw")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # it takes up the log or the journal
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _connect(path: str, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?{how}", uri=True, isolation_level=None)
    connection.execute(f"PRAGMA busy_timeout={_PATIENCE_MS}")
    connection.execute("PRAGMA query_only=1")
    connection.execute("PRAGMA trusted_schema=0")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _answers(connection: sqlite3.Connection, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
    connection.execute("BEGIN")
    try:
        return [connection.execute(sql, arguments).fetchall() for sql, arguments in questions]
    finally:
        if connection.in_transaction:  # an error may have ended it
            connection.execute("ROLLBACK")
