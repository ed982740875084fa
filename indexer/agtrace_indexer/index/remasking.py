"""Masking stored texts with new rules: vanished logs can't be read again, and search must not find their secrets.

Every text of the index is checked, 490 MB of them in 3 s; anything a rule finds is masked in place. Logs that
still exist are read again afterwards, so that they give the same as a fresh index would.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable
from itertools import accumulate, count
from operator import add
from typing import Any, NamedTuple

import orjson

from agtrace_indexer.events.strings import identifier, masked_json, plain_id
from agtrace_indexer.index import meta, repositories
from agtrace_indexer.index.maintenance import note_scrub
from agtrace_indexer.index.projects import told_hash
from agtrace_indexer.index.table_roles import TABLES
from agtrace_indexer.redact import redact, redact_json, suspicious
from agtrace_indexer.texts.blocks import BlockText, PackedBlock, pack, unpack

_IDS = (
    "UPDATE OR IGNORE project SET hash = told_hash(hash) WHERE hash != told_hash(hash)",
    "UPDATE session SET parent_id = plain_id(parent_id) WHERE parent_id != plain_id(parent_id)",
    "UPDATE session SET own_id = plain_id(own_id), uid = plain_id(own_id) || '~new' || id "
    "WHERE typeof(own_id) = 'text' AND own_id != plain_id(own_id)",
    "UPDATE session SET thread = identifier(thread) WHERE thread != identifier(thread)",
    "UPDATE agent_start SET agent_id = plain_id(agent_id) WHERE agent_id != plain_id(agent_id)",
    "UPDATE token_usage SET response_id = identifier(response_id) WHERE response_id != identifier(response_id)",
    "UPDATE token_usage SET model = masked(model), speed = masked(speed) "
    "WHERE model != masked(model) OR speed != masked(speed)",
    "UPDATE OR REPLACE model_usage SET model = masked(model), speed = masked(speed) "
    "WHERE model != masked(model) OR speed != masked(speed)",
)


def mask_again(connection: sqlite3.Connection) -> None:
    """Mask all stored texts with the current rules, in the open transaction; the end of the run scrubs the old ones."""
    before = connection.total_changes
    for table, described in TABLES.items():
        for column in described.texts:
            _mask_column(connection, table, column, described.key)
    for table in ("name", "path"):
        _mask_shared(connection, table)
    meta.drop(connection, repositories.JOINED)
    _mask_ids(connection)
    _mask_record_types(connection)
    _mask_states(connection)
    _mask_blocks(connection)
    if connection.total_changes != before:
        note_scrub(connection)


def _mask_column(connection: sqlite3.Connection, table: str, column: str, key: tuple[str, ...]) -> None:
    there = f"SELECT {column}, {', '.join(key)} FROM {table} WHERE {column} IS NOT NULL"
    rows = connection.execute(there).fetchall()
    changed = [(masked, *row) for text, *row in rows if (masked := redact(text)) != text]
    found = " AND ".join(f"{name} = ?" for name in key)
    connection.executemany(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {found}", changed)


def _mask_shared(connection: sqlite3.Connection, table: str) -> None:
    for row, text in connection.execute(f"SELECT id, text FROM {table}").fetchall():
        masked = redact(text)
        if masked == text:
            continue
        same = connection.execute(f"SELECT id FROM {table} WHERE text = ?", (masked,)).fetchone()
        if same is None:
            connection.execute(f"UPDATE {table} SET text = ? WHERE id = ?", (masked, row))
        elif table == "path":
            connection.execute("UPDATE OR REPLACE touched SET path_id = ? WHERE path_id = ?", (same[0], row))
            connection.execute("DELETE FROM path WHERE id = ?", (row,))
        else:
            connection.execute("UPDATE event SET name_id = ? WHERE name_id = ?", (same[0], row))
            connection.execute("UPDATE OR REPLACE block_tool SET name_id = ? WHERE name_id = ?", (same[0], row))
            connection.execute("DELETE FROM name WHERE id = ?", (row,))


def _mask_record_types(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT file_id, status, type, count, first_line FROM record_type").fetchall()
    for file_id, status, kind, number, first in rows:
        masked = redact(kind)
        if masked != kind:
            connection.execute(
                "DELETE FROM record_type WHERE file_id = ? AND status = ? AND type = ?", (file_id, status, kind)
            )
            connection.execute(
                "INSERT INTO record_type VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET count = count + excluded.count",
                (file_id, status, masked, number, first),
            )


def _mask_ids(connection: sqlite3.Connection) -> None:
    """Mask the ids of sessions and responses, and the models; they still tie the same things together."""
    for name, function in (
        ("plain_id", plain_id), ("identifier", identifier), ("told_hash", told_hash), ("masked", redact),
    ):  # fmt: skip
        connection.create_function(name, 1, _or_null(function), deterministic=True)
    for statement in _IDS:
        connection.execute(statement)


def _or_null(function: Callable[[str], str | None]) -> Callable[[str | None], str | None]:
    """Return a function of texts that SQL may also call with NULL."""
    return lambda text: None if text is None else function(text)


def _mask_states(connection: sqlite3.Connection) -> None:
    """Mask the parser states of vanished logs; nothing more is read from these, so nothing depends on their states."""
    rows = connection.execute("SELECT id, state FROM file WHERE state IS NOT NULL AND gone").fetchall()
    for row, packed in rows:
        state = unpack(packed)
        if suspicious(state.decode("utf-8", "replace")):
            masked = pack(orjson.dumps(masked_json(orjson.loads(state))))
            connection.execute("UPDATE file SET state = ? WHERE id = ?", (masked, row))


def _mask_blocks(connection: sqlite3.Connection) -> None:
    last = -1
    while row := connection.execute(
        "SELECT block_id, ends, text, payload FROM block_data WHERE block_id > ? ORDER BY block_id LIMIT 1", (last,)
    ).fetchone():
        last, ends, text, payload = row
        masked = masked_block(BlockText.of(ends, text), unpack(payload))
        if masked is not None:
            connection.execute(
                "UPDATE block_data SET ends = ?, text = ?, payload = ? WHERE block_id = ?", (*masked.packed, last)
            )
            connection.execute("UPDATE block SET text_size = ? WHERE id = ?", (len(masked.data), last))


class MaskedBlock(NamedTuple):
    """A block with its texts masked."""

    packed: PackedBlock
    data: bytes
    """Its texts, each followed by NUL."""


def masked_block(said: BlockText, payload: bytes) -> MaskedBlock | None:
    """Mask the texts of a block, one by one as when they were read, and the stored rest of its events.

    Return None if there is nothing to mask.
    """
    if not suspicious(said.data.decode("utf-8", "replace")) and not suspicious(payload.decode("utf-8", "replace")):
        return None
    texts = [said.text(number) for number in range(len(said.ends))]
    rests: list[Any] = orjson.loads(payload)
    new_texts, new_rests = [redact(text) for text in texts], redact_json(rests)
    if (new_texts, new_rests) == (texts, rests):
        return None
    encoded = [text.encode("utf-8", "replace") for text in new_texts]
    ends = array("I", map(add, accumulate(map(len, encoded)), count()))
    data = b"\0".join([*encoded, b""])
    return MaskedBlock(PackedBlock(ends.tobytes(), pack(data), pack(orjson.dumps(new_rests))), data)
