"""Shards: the small indexes in memory that workers fill and the writer merges into the index.

Merged rows get new ids in the index, and shared strings the ids that they have there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

from agtrace_schema import database

from agtrace_indexer.index import ranking
from agtrace_indexer.index.references import COLUMNS, OWNED, REFERENCES, SHARED
from agtrace_indexer.index.store import Store

_ATTACHED = "shard"

_NEEDED = ("event_place", "event_identity", "block_place", "session_file", "session_uid")
"""The SQL indexes that are of use while logs are read; the index that receives the rows has its own."""


def begin() -> sqlite3.Connection:
    """Create an index in memory without rows."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(_empty())
    connection.executescript("PRAGMA journal_mode=OFF; PRAGMA cache_size=-65536;")
    return connection


@cache
def _empty() -> bytes:
    """Return an empty index as SQLite would write it to a file: copying it is faster than creating its tables."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(database.TABLES + ranking.OF_WORKER)
        made = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        for (name,) in connection.execute(made).fetchall():
            if name not in _NEEDED:
                connection.execute(f"DROP INDEX {name}")
        connection.execute("VACUUM")
        return connection.serialize()


@contextmanager
def attached(connection: sqlite3.Connection) -> Iterator[None]:
    """Attach a database for the workers' indexes. Not within a transaction."""
    connection.execute(f"ATTACH ':memory:' AS {_ATTACHED}")
    try:
        yield
    finally:
        connection.execute(f"DETACH {_ATTACHED}")


def take_in(store: Store, index: bytes) -> list[str]:
    """Merge everything in a worker's index, in one transaction, which stays open; called between two.

    A log that is known already is read anew in this way, and what was read of it before is deleted. If a file is no
    longer a log, nothing changes and its path is returned: what becomes of it is decided outside the shard.
    """
    connection = store.connection
    connection.deserialize(index, name=_ATTACHED)
    store.begin()
    left = _known_paths(connection, "s.status != 'log'")
    connection.executemany(f"DELETE FROM {_ATTACHED}.file WHERE path = ?", [(path,) for path in left])
    for path in _known_paths(connection, "1"):
        (known,) = connection.execute("SELECT id FROM main.file WHERE path = ?", (path,)).fetchone()
        store.forget_contents(known)
        connection.execute("DELETE FROM main.file WHERE id = ?", (known,))
    _share_strings(connection)
    behind = {table: _last_id(connection, table) for table in ("file", "session", "event", "block")}
    for table in OWNED:
        values = ", ".join(_value(table, column, behind) for column in COLUMNS[table])
        connection.execute(f"INSERT INTO main.{table} SELECT {values} FROM {_ATTACHED}.{table} t")
    if ranking.prepared(connection):
        events = f"SELECT rowid + ?, words FROM {_ATTACHED}.ranked ORDER BY rowid"
        ranking.add(connection, connection.execute(events, (behind["event"],)).fetchall())
    return left


def _known_paths(connection: sqlite3.Connection, condition: str) -> list[str]:
    query = f"SELECT s.path FROM {_ATTACHED}.file s JOIN main.file f ON f.path = s.path WHERE {condition}"
    return [path for (path,) in connection.execute(query).fetchall()]


def _share_strings(connection: sqlite3.Connection) -> None:
    connection.execute(f"INSERT OR IGNORE INTO main.name (text) SELECT text FROM {_ATTACHED}.name ORDER BY id")
    connection.execute(f"INSERT OR IGNORE INTO main.path (text) SELECT text FROM {_ATTACHED}.path ORDER BY id")
    connection.execute(
        "INSERT INTO main.project (hash, root_path) "
        f"SELECT hash, root_path FROM {_ATTACHED}.project WHERE 1 ORDER BY id "
        "ON CONFLICT (hash) DO UPDATE SET root_path = coalesce(root_path, excluded.root_path)"
    )


def _last_id(connection: sqlite3.Connection, table: str) -> int:
    """Return the largest id that a table has ever had."""
    highest: int = connection.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}").fetchone()[0]
    ever = connection.execute("SELECT seq FROM main.sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return max(highest, ever[0] if ever else 0)


def _value(table: str, column: str, behind: dict[str, int]) -> str:
    """Return the SQL for the new value of a column: ids are moved beyond those that are taken."""
    other = table if column == "id" else REFERENCES[table].get(column)
    if other in SHARED:
        there = f"SELECT s.{SHARED[other]} FROM {_ATTACHED}.{other} s WHERE s.id = t.{column}"
        return f"(SELECT m.id FROM main.{other} m WHERE m.{SHARED[other]} = ({there}))"
    if other is not None:
        return f"t.{column} + CASE WHEN t.{column} < 0 THEN -{behind[other]} ELSE {behind[other]} END"
    if (table, column) == ("session", "uid"):  # unique until twins get their suffixes
        known = "EXISTS (SELECT 1 FROM main.session m WHERE m.uid = t.uid)"
        return (
            f"CASE WHEN t.uid != t.own_id OR {known} THEN t.own_id || '~new' || (t.id + {behind[table]}) ELSE t.uid END"
        )
    return f"t.{column}"
