"""What leaves this machine for a team: rows of an index as the team may see them, and how they are written there."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import psycopg
from agtrace_indexer.index.ranking import ranked_events
from agtrace_indexer.index.references import COLUMNS
from agtrace_indexer.index.team_words import grams, stems, tsvector
from agtrace_indexer.redact import redact, redact_json, suspicious
from agtrace_indexer.texts.blocks import BlockText, PackedBlock
from msgspec import Struct, field

AS_THEY_ARE = ("turn", "token_usage", "naming", "request", "landmark", "clue", "model_usage", "agent_start")
"""Tables whose rows only say which session they are of."""

_MASK, _LONGEST_KIND = b"[redacted: ", 80

_OF_SERVER = frozenset({"file_id", "project_id", "parent_session"})
"""Columns of sessions that refer to rows of the server."""

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, NULL)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'team' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

Row = dict[str, Any]
"""A row, by its columns."""


class Masked(Struct):
    """What was masked in the texts that leave."""

    masked: Counter[str] = field(default_factory=Counter)
    """Masks, by the kind of secret that they stand for."""
    masked_again: int = 0
    """Blocks in which today's rules found something more to mask."""
    replaced: int = 0
    """Texts that PostgreSQL can't store as they are: for their characters, or their length where it indexes them."""


_LONGEST_INDEXED = 2_600
"""Bytes of a name or path: PostgreSQL's indexes take no more than 2,704."""

_IDS = frozenset({"uid", "own_id", "parent_id", "thread", "hash"})
"""Columns by which rows are found, which were masked when they were read; in all others texts are masked once more."""


class Columns:
    """The columns that the tables of both engines have: an older server lacks some, and so does an older index."""

    def __init__(self, index: sqlite3.Connection, team: psycopg.Connection[Any]) -> None:
        """Ask both for their columns."""
        self.types: dict[tuple[str, str], str] = {(table, name): kind for table, name, kind in team.execute(_COLUMNS)}
        """(table, column) -> its type in PostgreSQL."""
        self._shared = {
            table: [name for of, name in self.types if of == table and name in self._of(index, table)]
            for table in COLUMNS
        }

    @staticmethod
    def _of(index: sqlite3.Connection, table: str) -> set[str]:
        return {name for (name,) in index.execute("SELECT name FROM pragma_table_info(?)", (table,))}

    def of(self, table: str) -> list[str]:
        """Return the columns of a table that say the same on every machine."""
        return [
            name for name in self._shared[table] if name != "id" and not (table == "session" and name in _OF_SERVER)
        ]

    def stored(self, table: str, row: Row) -> Row:
        """Return a row with its values as PostgreSQL has them: flags are no numbers there."""
        return {
            name: (bool(value) if value is not None and self.types.get((table, name)) == "boolean" else value)
            for name, value in row.items()
        }


class Block(NamedTuple):
    """A block as it leaves."""

    row: Row
    data: Row
    """Its texts, as `block_data` has them."""
    tools: list[int]
    """The names of the tools in it."""


class Export:
    """The rows of a session as they leave. Ids are those of the index."""

    def __init__(
        self, index: sqlite3.Connection, session: int, columns: Columns, mask: Callable[[str], str], done: Masked
    ) -> None:
        """Read all rows of the session with this row id; `mask` masks a short text, `done` counts what is masked."""
        self._index, self._row, self._columns, self._mask, self._done = index, session, columns, mask, done
        self.session = self._rows("session", key="id")[0]
        self.plain = {table: self._rows(table) for table in AS_THEY_ARE}
        self.events = self._rows("event", "id")
        self.touched = self._rows("touched")
        self.paths = self._texts("path", {row["path_id"] for row in self.touched})
        self._masked: dict[int, BlockText] = {}
        """The texts of blocks in which something was masked, by their first event."""
        self.bytes = 0
        """Of its texts, before compression."""
        self.blocks = [self._block(row) for row in self._rows("block", "id")]
        used = {row[key] for row in self.events for key in ("name_id", "program_id")} - {None}
        self.names = self._texts("name", used.union(*(block.tools for block in self.blocks)))
        self.ranked = list(self._ranked())

    def _rows(self, table: str, *more: str, key: str = "session_id") -> list[Row]:
        names = [*more, *self._columns.of(table)]
        listed = ", ".join(f'"{name}"' for name in names)
        found = self._index.execute(f'SELECT {listed} FROM {table} WHERE "{key}" = ?', (self._row,)).fetchall()
        clean = (self.clean(table, dict(zip(names, row, strict=True))) for row in found)
        return [self._columns.stored(table, row) for row in clean]

    def clean(self, table: str, row: Row) -> Row:
        """Return a row with its texts masked once more, in what PostgreSQL can store."""
        return {
            name: self._clean(value if name in _IDS else self._mask(value)) if isinstance(value, str) else value
            for name, value in row.items()
        }

    def _clean(self, text: str) -> str:
        """Return a text without NUL and without halves of surrogate pairs."""
        clean = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
        self._done.replaced += clean != text
        return clean

    def _texts(self, table: str, ids: Iterable[int]) -> dict[int, str]:
        sql = f"SELECT id, text FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        found = self._index.execute(sql, (json.dumps(sorted(ids)),)).fetchall()
        return {id: self.indexed(self._clean(self._mask(text))) for id, text in found}

    def indexed(self, text: str) -> str:
        """Return as much of a text as PostgreSQL's indexes take."""
        cut = text.encode()[:_LONGEST_INDEXED].decode(errors="ignore")
        self._done.replaced += cut != text
        return cut

    def _block(self, row: Row) -> Block:
        sql = "SELECT ends, text FROM block_data WHERE block_id = ?"
        packed = self._index.execute(sql, (row["id"],)).fetchone()
        said = BlockText.of(*packed)
        masked = _masked_block(said)
        if masked is not None:
            self._done.masked_again += 1
            packed, said = masked, BlockText.of(*masked)
            self._masked[row["first_index"]] = said
        data = said.data
        self.bytes += len(data)
        self._done.masked.update(_masks(data))
        tools = self._index.execute("SELECT name_id FROM block_tool WHERE block_id = ?", (row["id"],)).fetchall()
        return Block(
            {**row, "text_size": len(data), "grams": f"{{{','.join(map(str, grams(data.lower())))}}}"},
            dict(zip(("ends", "text"), packed, strict=True)),
            [name for (name,) in tools],
        )

    def _ranked(self) -> Iterator[Row]:
        found = list(ranked_events(self._index, self._row, self._masked))
        of_each = stems(list(enumerate((text for _, text in found), 1)))
        for number, (id, text) in enumerate(found, 1):
            yield {"id": id, "words": len(text.split()), "stems": tsvector(of_each[number])}


def _masks(data: bytes) -> Iterator[str]:
    """Yield the kinds of secrets that the masks of a text stand for."""
    at = data.find(_MASK)
    while at >= 0:
        end = data.find(b"]", at, at + _LONGEST_KIND)
        if end > 0:
            yield data[at + len(_MASK) : end].decode("utf-8", "replace")
        at = data.find(_MASK, at + 1)


def _masked_block(said: BlockText) -> PackedBlock | None:
    """Mask the texts of a block, one by one as when they were read, and the stored rest of its events.

    Return None if there is nothing to mask.
    """
    if not suspicious(said.data.decode("utf-8", "replace")) and not suspicious(said.rests.decode("utf-8", "replace")):
        return None
    texts: list[str] = [said.text(number) for number in range(len(said.ends))]
    rests: Any = said.payloads()
    new_texts, new_rests = [redact(text) for text in texts], cast(Any, redact_json(rests))
    if (new_texts, new_rests) == (texts, rests):
        return None
    return PackedBlock.of([text.encode("utf-8", "replace") for text in new_texts], new_rests)


OWNED = (*AS_THEY_ARE, "event", "touched", "block", "name_use", "ranked_event")
"""The tables with rows that are written anew with a session."""


_AS_TEXT = frozenset({"tsvector", "smallint[]"})
"""Types of which PostgreSQL takes no array that psycopg could make."""


class TeamWriter:
    """A connection that writes rows of one person's machine."""

    def __init__(self, team: psycopg.Connection[Any], columns: Columns) -> None:
        """Write by these columns."""
        self._team, self._columns = team, columns

    def session(
        self,
        rows: Export,
        id: int,
        originals: Mapping[int, int],
        reserved: Callable[[int], int | None],
        *,
        was_there: bool,
    ) -> None:
        """Write what belongs to a session, whose row has this id, in the place of what there is if it `was_there`.

        An event that was there before keeps its id. `originals` are the ids of events that are repeated, by index;
        `reserved` gives the id that is reserved for an event of the index, if one is.
        """
        kept = self._cleared(id) if was_there else {}
        for row in () if kept else rows.events:
            if (own := reserved(row["id"])) is not None:
                kept[row["event_index"]] = own
        for table, found in rows.plain.items():
            self.insert(table, ({**row, "session_id": id} for row in found))
        names = self._names(id, rows.names)
        events = self._events(rows, id, kept, names, originals)
        self._touched(rows, id)
        new = self.new_ids("block", len(rows.blocks))
        blocks = list(zip(new, rows.blocks, strict=True))
        self.insert("block", ({**block.row, "id": number, "session_id": id} for number, block in blocks))
        self.insert("block_data", ({**block.data, "block_id": number} for number, block in blocks))
        tools = ((number, names[tool]) for number, block in blocks for tool in block.tools)
        self.insert("block_tool", ({"block_id": number, "name_id": name} for number, name in dict.fromkeys(tools)))
        self.insert("ranked_event", ({**row, "id": events[row["id"]], "session_id": id} for row in rows.ranked))

    def _cleared(self, id: int) -> dict[int, int]:
        """Delete what belongs to a session; return event index -> the id that the event had."""
        result = dict(self._team.execute("SELECT event_index, id FROM event WHERE session_id = %s", (id,)).fetchall())
        for table in OWNED:
            self._team.execute(f"DELETE FROM {table} WHERE session_id = %s", (id,))
        self._team.execute("DELETE FROM path WHERE owner = %s", (id,))
        return result

    def _events(
        self, rows: Export, id: int, kept: Mapping[int, int], names: Mapping[Any, int], originals: Mapping[int, int]
    ) -> dict[int, int]:
        """Write the events; return their ids in the index -> those on the server."""
        new = iter(self.new_ids("event", sum(row["event_index"] not in kept for row in rows.events)))
        ids = {row["id"]: kept.get(row["event_index"]) or next(new) for row in rows.events}
        self.insert(
            "event",
            (
                {
                    **row,
                    "id": ids[row["id"]],
                    "session_id": id,
                    "name_id": names.get(row["name_id"]),
                    "program_id": names.get(row["program_id"]),
                    "superseded_by": _by(row["superseded_by"], ids),
                    "copy_of": None if row["copy_of"] is None else originals.get(row["event_index"], 0),
                }
                for row in rows.events
            ),
        )
        return ids

    def _touched(self, rows: Export, id: int) -> None:
        sql = "INSERT INTO path (owner, text) SELECT %s, unnest(%s::text[]) RETURNING text, id"
        texts = sorted({*rows.paths.values()})
        ids = dict(self._team.execute(sql, (id, texts)).fetchall()) if texts else {}
        place = ("event_index", "path_id")
        found = ({**row, "session_id": id, "path_id": ids[rows.paths[row["path_id"]]]} for row in rows.touched)
        self.insert("touched", {tuple(row[name] for name in place): row for row in found}.values())

    def new_ids(self, kind: str, number: int) -> range:
        """Reserve row ids of a kind: session, event or block."""
        if not number:
            return range(0)
        row = self._team.execute("SELECT reserve(%s, %s)", (kind, number)).fetchone()
        assert row is not None
        return range(row[0], row[0] + number)

    def _names(self, session: int, texts: Mapping[int, str]) -> dict[Any, int]:
        """Return local id -> the server's, of the names that a session uses."""
        given = (session, sorted({*texts.values()}))
        found = dict(self._team.execute("SELECT text, id FROM names(%s, %s)", given).fetchall())
        return {local: found[text] for local, text in texts.items()}

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows, column by column: PostgreSQL takes no COPY into tables with policies."""
        found = list(rows)
        if not found:
            return
        columns = list(found[0])
        kinds = [self._columns.types[table, name] for name in columns]
        sent = ", ".join(f"%s::{'text' if kind in _AS_TEXT else kind}[]" for kind in kinds)
        cast = ", ".join(f'"{name}"::{kind}' for name, kind in zip(columns, kinds, strict=True))
        names = ", ".join(f'"{name}"' for name in columns)
        sql = f"INSERT INTO {table} ({names}) SELECT {cast} FROM unnest({sent}) given ({names})"
        self._team.execute(sql, [[row[name] for row in found] for name in columns])

    def put(self, table: str, row: Row, key: str, *, but: str = "") -> int:
        """Insert a row, or update all but a column of the one with the same key (of a unique index); return its id."""
        stored = self._columns.stored(table, row)
        names, marks = ", ".join(stored), ", ".join(["%s"] * len(stored))
        changes = ", ".join(f"{name} = excluded.{name}" for name in stored if name != but)
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes} RETURNING id"
        found = self._team.execute(sql, list(stored.values())).fetchone()
        assert found is not None
        return int(found[0])


def _by(local: int | None, ids: Mapping[int, int]) -> int | None:
    """Return the server's id of the event that superseded one: below 0 if that was rolled back."""
    return None if local is None else ids.get(local, 0) if local > 0 else -ids.get(-local, 0)
