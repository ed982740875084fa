"""The seal of the word index: a checksum over the tables in which SQLite stores it.

SQLite has no checksums of its own, and a flipped bit in a list of rows gives a list of other rows: search would find
less, and nobody would know. So whoever writes the word index seals it, and whoever searches with it checks the seal
once: for 48 MB, the word index of a gigabyte of logs, that takes 80 ms.
"""

from __future__ import annotations

import sqlite3
import zlib

from agtrace_indexer.index import meta

_KEY = "words_seal"

_SEALED = (
    "SELECT id, block FROM words_data ORDER BY id",
    "SELECT segid, CAST(term AS BLOB), pgno FROM words_idx ORDER BY 1, 2",
    "SELECT id, words FROM vocabulary ORDER BY id",
    "SELECT id, block FROM vocabulary_part_data ORDER BY id",
    "SELECT segid, CAST(term AS BLOB), pgno FROM vocabulary_part_idx ORDER BY 1, 2",
)


def put(connection: sqlite3.Connection) -> None:
    """Seal the word index as it is, in the open transaction."""
    connection.execute("SAVEPOINT sealed")  # makes FTS5 write what it still has in memory
    connection.execute("RELEASE sealed")
    meta.put(connection, _KEY, _checksum(connection))


def take_off(connection: sqlite3.Connection) -> None:
    """Mark the word index as being written, in the open transaction."""
    meta.drop(connection, _KEY)


def of(connection: sqlite3.Connection) -> str | None:
    """Return the seal; None if nothing was sealed, or the word index is being written."""
    return meta.get(connection, _KEY)


def is_unbroken(connection: sqlite3.Connection) -> bool:
    """Whether the word index matches its seal, if it has one."""
    seal = of(connection)
    try:
        return seal is None or seal == _checksum(connection)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY):
            raise
        return False


def _checksum(connection: sqlite3.Connection) -> str:
    checksum = 0
    for query in _SEALED:
        for row in connection.execute(query):
            for value in row:
                checksum = zlib.crc32(value if isinstance(value, bytes) else f"{value};".encode(), checksum)
    return f"{checksum:08x}"
