"""Everything in a data folder: the texts of every table, the blocks decompressed, and the bytes of every file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import zstandard
from agtrace_indexer.logs.discovery import ARCHIVE
from agtrace_indexer.redact import COMPILED_FILE

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
_FRAME = b"\x28\xb5\x2f\xfd"
"""The beginning of a zstd frame (RFC 8878)."""


def bytes_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (where, bytes as Latin-1) of every file in a data folder but the archive and what our rules are made to."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != COMPILED_FILE and ARCHIVE not in path.relative_to(folder).parts:
            yield f"bytes of {path.name}", path.read_bytes().decode("latin-1")


def texts_of_sessions(database: Path) -> dict[str, str]:
    """Return everything that the tables have about each session, by the provider's own id."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT s.own_id, d.text FROM session s JOIN block b ON b.session_id = s.id "
            "JOIN block_data d ON d.block_id = b.id ORDER BY b.id"
        )
        texts: dict[str, str] = {}
        for session, *packed in rows:
            texts[session] = texts.get(session, "") + "".join(_unpacked(value) for value in packed)
        return texts


def rows_of(database: Path) -> Iterator[tuple[str, str]]:
    """Yield (table, texts of its rows)."""
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute(_TABLES)]
        for table in tables:
            yield f"table {table}", "\n".join(map(_text, connection.execute(f'SELECT * FROM "{table}"')))


def _text(row: tuple[object, ...]) -> str:
    return " ".join(_unpacked(value) if isinstance(value, bytes) else str(value) for value in row)


def _unpacked(value: bytes) -> str:
    if value.startswith(_FRAME):
        value = zstandard.ZstdDecompressor().decompress(value)
    return value.decode("utf-8", "replace")
