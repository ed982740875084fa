"""Writing the rows of a session into a team's database, in the transaction that the pusher has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psycopg

from agtrace_team.leaving import AS_THEY_ARE, Columns, Leaving, Row

OWNED = (*AS_THEY_ARE, "event", "touched", "block", "name_use", "ranked_event")
"""The tables with rows that are written anew with a session."""


_AS_TEXT = frozenset({"tsvector", "smallint[]"})
"""Types of which PostgreSQL takes no array that psycopg could make."""


class Writing:
    """A connection that writes rows of one person's machine."""

    def __init__(self, team: psycopg.Connection[Any], columns: Columns) -> None:
        """Write by these columns."""
        self._team, self._columns = team, columns

    def session(
        self,
        rows: Leaving,
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
        kept = dict(self._team.execute("SELECT event_index, id FROM event WHERE session_id = %s", (id,)).fetchall())
        for table in OWNED:
            self._team.execute(f"DELETE FROM {table} WHERE session_id = %s", (id,))
        self._team.execute("DELETE FROM path WHERE owner = %s", (id,))
        return kept

    def _events(
        self, rows: Leaving, id: int, kept: Mapping[int, int], names: Mapping[Any, int], originals: Mapping[int, int]
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

    def _touched(self, rows: Leaving, id: int) -> None:
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
