"""Salvaging the readable rows of an index with damaged pages.

Rows keep their ids, so that references to them remain valid.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.index.session_sums import sum_session
from agtrace_indexer.index.table_roles import BESIDE, TABLES, Role, of_role
from agtrace_indexer.index.turn_sums import sum_turns
from agtrace_indexer.repair.consistency import (
    LOST_FILE,
    Salvage,
    at_least_as_blocks_say,
    drop_what_does_not_fit,
    number,
    tell_lost,
)
from agtrace_indexer.repair.damage import holds_all_texts
from agtrace_indexer.texts.blocks import unpack

IsWanted = Callable[[dict[str, Any]], bool]
"""Whether what was read of a file, given by its row, is to be carried over."""

SAVED = tuple(name for name, table in TABLES.items() if table.role not in (Role.DERIVED, Role.JOINED, Role.WORDS))
"""The tables that are carried over; all others are derived from these."""

_MADE_HERE = ("built", "words_seal", "words_without", "ranked_to", "ranked_size", "repositories", "scrub", "forgotten")
"""The keys of `meta` that don't apply to another index."""

_LARGEST_ID = 1 << 53

_PLACE = """
SELECT f.path, s.thread, e.event_index FROM event e JOIN session s ON s.id = e.session_id
JOIN file f ON f.id = s.file_id WHERE e.id = ?
"""


def salvage(source: sqlite3.Connection, target: sqlite3.Connection, wanted: IsWanted, *, sums: bool = True) -> Salvage:
    """Carry over the rows of the wanted files into an empty index, within the open transaction of `target`.

    `sums` is whether the sums in the rows reliably say how many events there were.
    """
    source.text_factory = lambda data: data.decode("utf-8", "replace")
    source.row_factory = sqlite3.Row
    done = Salvage()
    copying = _Copying(source, target, done)
    copying.facts()
    expected = copying.sessions(wanted)
    copying.events()
    copying.blocks()
    copying.beside()
    expected = at_least_as_blocks_say(target, expected if sums else dict.fromkeys(expected, 0))
    drop_what_does_not_fit(target, done)
    copying.references()
    tell_lost(target, done, expected)
    for (session,) in target.execute("SELECT id FROM session").fetchall():
        sum_turns(target, session)
        sum_session(target, session)
    return done


class _Copying(Struct):
    """Rows on their way from one index to another."""

    source: sqlite3.Connection
    target: sqlite3.Connection
    done: Salvage

    def facts(self) -> None:
        """Copy what doesn't belong to a file."""
        self._take("meta")
        self.target.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in _MADE_HERE])
        self.target.execute("INSERT OR REPLACE INTO meta VALUES ('built', '0')")
        self._take("root")
        for table in of_role(Role.SHARED):
            for row in self._scan(table):
                self._insert(table, row)
        for row in self._scan("sqlite_sequence"):
            if (
                row["name"] in ("session", "event", "block")
                and isinstance(row["seq"], int)
                and row["seq"] < _LARGEST_ID
            ):
                self.target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (row["name"],))
                self.target.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (row["name"], row["seq"]))

    def sessions(self, wanted: IsWanted) -> dict[int, int]:
        """Copy files and sessions; return the number of events that each session had at least."""
        known: dict[int, str] = {}
        uncounted: set[int] = set()
        for row in self._scan("file"):
            known[row["id"]] = row["path"]
            if wanted(row):
                self._insert("file", _with_readable_state(row))
                if not self._take("record_type", "file_id", row["id"]):
                    uncounted.add(row["id"])
        expected: dict[int, int] = {}
        complete = "file" not in self.done.unread
        for row in self._scan("session"):
            if row["file_id"] not in known and not complete:
                self._insert("file", {"id": row["file_id"], "path": LOST_FILE.format(row["file_id"]), "status": "log",
                                      "provider": row["provider"], "gone": 1, "stamp": "", "size": 0})  # fmt: skip
                self.done.incomplete.add(row["id"])
            elif not self._has("file", row["file_id"]):
                self.done.left[row["id"]] = row | {"path": known.get(row["file_id"], "")}
                continue
            if self._has("file", row["file_id"], "AND NOT gone"):
                self.done.pending.append((number(row.get("pending")), row["id"]))
                row |= {"pending": 2, "compared_to": 0}
            self._insert("session", row)
            if row["file_id"] in uncounted:
                self.done.incomplete.add(row["id"])
            expected[row["id"]] = number(row["event_count"]) + number(row.get("copied_events"))
        return expected

    def events(self) -> None:
        """Copy the events of the sessions."""
        sessions = self._ids("session")
        for row in self._scan("event"):
            if row["session_id"] in sessions:
                self._insert("event", row)

    def blocks(self) -> None:
        """Copy the blocks of the sessions, each with its texts if they are intact."""
        sessions = self._ids("session")
        for row in self._scan("block"):
            if row["session_id"] not in sessions:
                continue
            data = self._one("SELECT ends, text, payload FROM block_data WHERE block_id = ?", row["id"])
            if data is not None and holds_all_texts(row["event_count"], *data):
                self._insert("block", {**row, "words": 0})
                self.target.execute("INSERT OR IGNORE INTO block_data VALUES (?, ?, ?, ?)", (row["id"], *data))
                self._take("block_tool", "block_id", row["id"])

    def beside(self) -> None:
        """Copy the other rows of the sessions."""
        for session in self._ids("session"):
            for table in BESIDE:
                if not self._take(table, "session_id", session):
                    self.done.incomplete.add(session)

    def references(self) -> None:
        """Note the rows that refer to something in a log, and remove references to missing rows."""
        pointing = (
            "SELECT id, copy_of, session_id FROM event WHERE copy_of > 0 AND copy_of NOT IN (SELECT id FROM event)"
        )
        for event, original, session in self.target.execute(pointing).fetchall():
            place = self._one(_PLACE, original)
            if place is not None:
                self.done.copies.append((event, *place))
            else:
                self.done.incomplete.add(session)
            self.target.execute("UPDATE event SET copy_of = 0 WHERE id = ?", (event,))
        pointing = (
            "SELECT id, parent_session, parent_id FROM session WHERE parent_session IS NOT NULL "
            "AND parent_session NOT IN (SELECT id FROM session)"
        )
        for session, parent, parent_id in self.target.execute(pointing).fetchall():
            named = "SELECT f.path, s.thread FROM session s JOIN file f ON f.id = s.file_id WHERE s.id = ?"
            place = self._one(named, parent)
            if place is not None:
                self.done.parents.append((session, *place))
            elif parent_id is not None:
                self.done.orphans.append(session)
            else:
                self.done.incomplete.add(session)
            self.target.execute("UPDATE session SET parent_session = NULL WHERE id = ?", (session,))

    # -- reading what is damaged -------------------------------------------------------------------

    def _scan(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table by rowid, skipping those that can't be read."""
        behind = -1
        while True:
            try:
                query = f"SELECT rowid AS at, * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
                for row in self.source.execute(query, (behind,)):
                    behind = row["at"]
                    yield {name: row[name] for name in row.keys()[1:]}
                return
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
            self.done.unread.add(table)
            following = self._readable_behind(table, behind)
            if following is None:
                return
            behind = following

    def _readable_behind(self, table: str, behind: int) -> int | None:
        """Return about the first rowid after which rows can be read again."""
        step = 1
        while not self._can_read(table, behind + step):
            step *= 2
            if behind + step > _LARGEST_ID:
                return None
        steps = range(step // 2 + 1, step + 1)
        return behind + steps[bisect_left(steps, True, key=lambda step: self._can_read(table, behind + step))]

    def _can_read(self, table: str, behind: int) -> bool:
        """Whether there are rows after a rowid, and the first of them can be read."""
        return (
            self._one(f"SELECT * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT 1", behind) is not None
        )

    def _take(self, table: str, column: str | None = None, value: int = 0) -> bool:
        """Carry over the rows of a table, or those with a value in a column; return False if some can't be read."""
        condition, values = ("", ()) if column is None else (f"WHERE {column} = ?", (value,))
        try:
            for row in self.source.execute(f"SELECT * FROM {table} {condition}", values):
                self._insert(table, dict(row))
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.done.unread.add(table)
            return False
        return True

    def _one(self, query: str, value: int) -> tuple[Any, ...] | None:
        try:
            row = self.source.execute(query, (value,)).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return None
        return None if row is None else tuple(row)

    # -- writing -----------------------------------------------------------------------------------

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        """Insert a row; one that violates a constraint of the table is damaged, and left out."""
        marks = ", ".join("?" * len(row))
        self.target.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def _ids(self, table: str) -> set[int]:
        return {id for (id,) in self.target.execute(f"SELECT id FROM {table}")}

    def _has(self, table: str, id: int, condition: str = "") -> bool:
        return self.target.execute(f"SELECT 1 FROM {table} WHERE id = ? {condition}", (id,)).fetchone() is not None


def _with_readable_state(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a file, without a stamp if the parser's state is lost, so that its log is examined again."""
    try:
        unpack(row["state"] or b"")
    except (sqlite3.DatabaseError, TypeError):
        return {**row, "state": None, "stamp": ""}
    return row
