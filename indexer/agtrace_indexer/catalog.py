"""Opening the index, and what it knows about files and roots: all that a run without changes needs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from agtrace_schema.database import MIGRATIONS, VERSION


def open_database(path: Path) -> sqlite3.Connection:
    """Open the index for writing; create or migrate it first where that is needed.

    The folder and the file are readable by their owner only. Raises `sqlite3.DatabaseError` for a
    file that is no index, or one of a newer version.
    """
    if not path.exists():
        _create(path)
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    connection.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536; PRAGMA wal_autocheckpoint=8192;"
    )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        connection.close()
        raise sqlite3.DatabaseError(f"the index has version {version}, this agtrace knows {VERSION}: update agtrace")
    if version < VERSION:
        _migrate(connection)
    return connection


def _create(path: Path) -> None:
    """Make an empty index beside its place and put it there whole: no reader sees one without tables."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        _migrate(connection)
    fresh.replace(path)


def _migrate(connection: sqlite3.Connection) -> None:
    import sqlite_utils  # 100 ms to import, needed once in the life of an index

    migrations = sqlite_utils.Migrations("agtrace")
    for name, sql in MIGRATIONS:
        migrations(name=name)(_migration(sql))
    migrations.apply(sqlite_utils.Database(connection))
    connection.execute(f"PRAGMA user_version={VERSION}")


def _migration(sql: str) -> Callable[[Any], None]:
    def run(database: Any) -> None:
        statement = ""
        for line in sql.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                database.conn.execute(statement)  # one by one: executescript would end the transaction
                statement = ""

    return run


class Catalog:
    """The index, open: its files, roots and facts. `Store` writes what is in the files."""

    def __init__(self, path: Path) -> None:
        self.connection = open_database(path)

    def close(self) -> None:
        """Close the connection; what isn't committed is rolled back."""
        self.connection.close()

    def files(self) -> dict[str, sqlite3.Row]:
        """All rows of `file` by path, without their state."""
        cursor = self.connection.cursor()
        cursor.row_factory = sqlite3.Row
        columns = "id, path, status, reason, provider, gone, stamp, size, read_to, lines, records, unreadable_lines, "
        columns += "pending_bytes, head, head_size, anchor, anchor_size"
        return {row["path"]: row for row in cursor.execute(f"SELECT {columns} FROM file")}

    def is_unfinished(self) -> bool:
        """Whether a run ended before it told which sessions belong together."""
        pending = "SELECT 1 FROM session s JOIN file f ON f.id = s.file_id WHERE s.pending AND NOT f.gone LIMIT 1"
        return self.meta("built") == "0" or self.connection.execute(pending).fetchone() is not None

    def meta(self, key: str) -> str | None:
        """A fact about the index."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact about the index."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def roots(self) -> list[str]:
        """The paths that are kept fresh."""
        return [row[0] for row in self.connection.execute("SELECT path FROM root ORDER BY path")]

    def add_roots(self, paths: Iterable[str]) -> None:
        """Keep these paths fresh from now on."""
        self.connection.executemany("INSERT OR IGNORE INTO root VALUES (?)", [(path,) for path in paths])
