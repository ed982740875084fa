"""Taking rows out of an index whose pages are damaged, as far as they can be read, and telling what is lost.

Rows keep their ids, so that what refers to them goes on to. Only what fits together is kept: an event with the block
that holds its text, and nothing that says something of an event that is lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agtrace_indexer.blocks import unpack
from agtrace_indexer.damage import EVENT_IS_SOUND, is_damage, is_whole
from agtrace_indexer.drafts import SessionFacts
from agtrace_indexer.interning import Interning
from agtrace_indexer.sums import sum_session, sum_turns

IsWanted = Callable[[dict[str, Any]], bool]
"""Whether what was read of a file (its row) is to be taken over."""

_BESIDE = ("token_usage", "request", "touched", "agent_start", "naming")
"""Tables with rows of a session whose keys begin with it."""

TABLES = ("meta", "root", "file", "record_type", "project", "session", "name", "path", "event", "block", "block_data",
          "block_tool", *_BESIDE)  # fmt: skip
"""The tables that are taken over; all others are made of these."""

_OF_EVENTS = ("token_usage", "request", "touched", "agent_start")
_MADE_HERE = ("built", "words_seal", "words_without", "scrub", "forgotten")
"""What `meta` says of an index that isn't true of another one."""

_LARGEST_ID = 1 << 53
_LOST_NAME = "(lost)"

_LOST_FILE = "a log whose path is lost, number {}"

_WITHOUT_BLOCK = """
SELECT e.id FROM event e WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.session_id = e.session_id
  AND b.first_index <= e.event_index AND e.event_index < b.first_index + b.event_count)
"""

_UNEVEN = """
SELECT b.id FROM block b WHERE b.event_count != (SELECT count(*) FROM event e WHERE e.session_id = b.session_id
  AND e.event_index >= b.first_index AND e.event_index < b.first_index + b.event_count)
"""

_WITHOUT_PATH = "SELECT DISTINCT session_id FROM touched WHERE path_id NOT IN (SELECT id FROM path)"
_WITHOUT_NAME = "SELECT DISTINCT session_id FROM event WHERE name_id NOT IN (SELECT id FROM name)"

_WITHOUT_PROJECT = """
SELECT id, cwd FROM session WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM project)
"""

_PLACE = """
SELECT f.path, s.thread, e.event_index FROM event e JOIN session s ON s.id = e.session_id
JOIN file f ON f.id = s.file_id WHERE e.id = ?
"""


class Lost(NamedTuple):
    """A session that could not be saved as a whole."""

    session: str
    """Its id."""
    title: str | None
    events: int
    """How many of its events are lost; 0: only some of what is noted beside them, such as the files that they name."""
    kept: int
    """How many are there."""


@dataclass(slots=True)
class Salvage:
    """What was taken over, and what of it still has to be settled once the logs are read."""

    lost: dict[int, Lost] = field(default_factory=dict)
    """By the session's row."""
    unread: set[str] = field(default_factory=set)
    """Tables with pages that can't be read."""
    incomplete: set[int] = field(default_factory=set)
    """Sessions of which not all that is noted beside their events can be read."""
    copies: list[tuple[int, str, str, int]] = field(default_factory=list)
    """Events whose original is to be read from a log: (event, path, thread, event_index of the original)."""
    parents: list[tuple[int, str, str]] = field(default_factory=list)
    """(session, path and thread of its parent)."""


def salvage(source: sqlite3.Connection, target: sqlite3.Connection, wanted: IsWanted) -> Salvage:
    """Take over the rows of the wanted files into an empty index, within the open transaction of `target`."""
    source.text_factory = lambda data: data.decode("utf-8", "replace")
    source.row_factory = sqlite3.Row
    done = Salvage()
    copying = _Copying(source, target, done)
    copying.facts()
    expected = copying.sessions(wanted)
    copying.events()
    copying.blocks()
    copying.beside()
    expected = _at_least_as_blocks_say(target, expected)
    _drop_what_does_not_fit(target, done)
    copying.references()
    _tell_lost(target, done, expected)
    for (session,) in target.execute("SELECT id FROM session").fetchall():
        sum_turns(target, session)
        sum_session(target, session)
    return done


def settle(target: sqlite3.Connection, done: Salvage) -> None:
    """Point what was taken over at the rows that were read from logs since; within the open transaction."""
    find = "SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.path = ? AND s.thread = ?"
    for event, path, thread, index in done.copies:
        target.execute(
            f"UPDATE event SET copy_of = coalesce((SELECT id FROM event WHERE session_id = ({find}) "
            "AND event_index = ?), 0) WHERE id = ?",
            (path, thread, index, event),
        )
    for session, path, thread in done.parents:
        target.execute(f"UPDATE session SET parent_session = ({find}) WHERE id = ?", (path, thread, session))
    twins = target.execute(
        "SELECT f.id, s.id FROM file f JOIN session s ON s.file_id = f.id WHERE f.path LIKE ? AND EXISTS "
        "(SELECT 1 FROM session o JOIN file there ON there.id = o.file_id WHERE o.own_id = s.own_id "
        "AND o.provider = s.provider AND o.thread = s.thread AND NOT there.gone)",
        (_LOST_FILE.format("%"),),
    ).fetchall()  # their logs were there after all
    for file, session in twins:
        done.lost.pop(session, None)
        drop_file(target, file)
    for table, column, users in (
        ("name", "name_id", ("event", "block_tool")), ("path", "path_id", ("touched",)),
        ("project", "project_id", ("session",)),
    ):  # fmt: skip
        used = " UNION ".join(f"SELECT {column} FROM {user} WHERE {column} IS NOT NULL" for user in users)
        target.execute(f"DELETE FROM {table} WHERE id NOT IN ({used})")


def drop_file(target: sqlite3.Connection, file: int) -> None:
    """Delete a file and all rows of its sessions."""
    for (session,) in target.execute("SELECT id FROM session WHERE file_id = ?", (file,)).fetchall():
        _drop_session(target, session)
    target.execute("DELETE FROM record_type WHERE file_id = ?", (file,))
    target.execute("DELETE FROM file WHERE id = ?", (file,))


@dataclass(slots=True)
class _Copying:
    """Rows on their way from one index to another."""

    source: sqlite3.Connection
    target: sqlite3.Connection
    done: Salvage

    def facts(self) -> None:
        """What belongs to no file."""
        self._take("meta")
        self.target.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in _MADE_HERE])
        self.target.execute("INSERT OR REPLACE INTO meta VALUES ('built', '0')")
        self._take("root")
        for table in ("name", "path", "project"):
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
        """Files and sessions; gives the events that each session counts at least."""
        known: set[int] = set()
        for row in self._scan("file"):
            known.add(row["id"])
            if wanted(row):
                self._insert("file", _with_readable_state(row))
                self._take("record_type", "file_id", row["id"])
        expected: dict[int, int] = {}
        complete = "file" not in self.done.unread
        for row in self._scan("session"):
            if row["file_id"] not in known and not complete:
                self._insert("file", {"id": row["file_id"], "path": _LOST_FILE.format(row["file_id"]), "status": "log",
                                      "provider": row["provider"], "gone": 1, "stamp": "", "size": 0})  # fmt: skip
                self.done.incomplete.add(row["id"])
            elif self._has("file", row["file_id"]) is None:
                continue
            self._insert("session", {**row, "pending": 2, "compared_to": 0} if self._is_there(row["file_id"]) else row)
            expected[row["id"]] = _number(row["event_count"]) + _number(row["copied_events"])
        return expected

    def events(self) -> None:
        """The events of the sessions."""
        sessions = self._ids("session")
        for row in self._scan("event"):
            if row["session_id"] in sessions:
                self._insert("event", row)

    def blocks(self) -> None:
        """The blocks of the sessions, each with its texts, if they are whole."""
        sessions = self._ids("session")
        for row in self._scan("block"):
            if row["session_id"] not in sessions:
                continue
            data = self._one("SELECT ends, text, payload FROM block_data WHERE block_id = ?", row["id"])
            if data is not None and is_whole(row["event_count"], *data):
                self._insert("block", {**row, "words": 0})
                self.target.execute("INSERT OR IGNORE INTO block_data VALUES (?, ?, ?, ?)", (row["id"], *data))
                self._take("block_tool", "block_id", row["id"])

    def beside(self) -> None:
        """What else is noted of the sessions."""
        for session in self._ids("session"):
            for table in _BESIDE:
                if not self._take(table, "session_id", session):
                    self.done.incomplete.add(session)

    def references(self) -> None:
        """Note which rows point at something that a log has, and let none point nowhere."""
        pointing = "SELECT id, copy_of FROM event WHERE copy_of > 0 AND copy_of NOT IN (SELECT id FROM event)"
        for event, original in self.target.execute(pointing).fetchall():
            place = self._one(_PLACE, original)
            if place is not None:
                self.done.copies.append((event, *place))
            self.target.execute("UPDATE event SET copy_of = 0 WHERE id = ?", (event,))
        pointing = (
            "SELECT id, parent_session FROM session WHERE parent_session IS NOT NULL "
            "AND parent_session NOT IN (SELECT id FROM session)"
        )
        for session, parent in self.target.execute(pointing).fetchall():
            named = "SELECT f.path, s.thread FROM session s JOIN file f ON f.id = s.file_id WHERE s.id = ?"
            place = self._one(named, parent)
            if place is not None:
                self.done.parents.append((session, *place))
            self.target.execute("UPDATE session SET parent_session = NULL WHERE id = ?", (session,))

    # -- reading what is damaged -------------------------------------------------------------------

    def _scan(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table by rowid; what can't be read is passed over."""
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
        """The first rowid, about, behind which rows can be read again."""
        step = 1
        while not self._can_read(table, behind + step):
            step *= 2
            if behind + step > _LARGEST_ID:
                return None
        low, high = step // 2, step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can_read(table, behind + middle) else (middle, high)
        return behind + high

    def _can_read(self, table: str, behind: int) -> bool:
        """Whether there is a row behind a rowid that can be read."""
        return (
            self._one(f"SELECT * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT 1", behind) is not None
        )

    def _take(self, table: str, column: str | None = None, value: int = 0) -> bool:
        """Take over the rows of a table, those whose key begins with a value; False where not all can be read."""
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
        """Insert what a row has; one that breaks a rule of the table is damaged, and left out."""
        marks = ", ".join("?" * len(row))
        self.target.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def _ids(self, table: str) -> set[int]:
        return {id for (id,) in self.target.execute(f"SELECT id FROM {table}")}

    def _has(self, table: str, id: int) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self.target.execute(f"SELECT 1 FROM {table} WHERE id = ?", (id,)).fetchone()
        return found

    def _is_there(self, file: int) -> bool:
        return self.target.execute("SELECT 1 FROM file WHERE id = ? AND NOT gone", (file,)).fetchone() is not None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _with_readable_state(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a file; without a stamp if what the parser remembered is lost, so that its log is looked at."""
    try:
        unpack(row["state"] or b"")
    except (sqlite3.DatabaseError, TypeError):
        return {**row, "state": None, "stamp": ""}
    return row


def _at_least_as_blocks_say(target: sqlite3.Connection, expected: dict[int, int]) -> dict[int, int]:
    """How many events each session had, as far as anything tells."""
    told = dict(target.execute("SELECT session_id, max(first_index + event_count) FROM block GROUP BY 1").fetchall())
    last = dict(target.execute("SELECT session_id, max(event_index) + 1 FROM event GROUP BY 1").fetchall())
    return {id: max(count, _number(told.get(id)), _number(last.get(id))) for id, count in expected.items()}


def _drop_what_does_not_fit(target: sqlite3.Connection, done: Salvage) -> None:
    execute = target.execute
    execute(f"DELETE FROM event WHERE NOT ({EVENT_IS_SOUND})")
    for (block,) in execute(_UNEVEN).fetchall():
        for table, column in (("block", "id"), ("block_data", "block_id"), ("block_tool", "block_id")):
            execute(f"DELETE FROM {table} WHERE {column} = ?", (block,))
    execute(f"DELETE FROM event WHERE id IN ({_WITHOUT_BLOCK})")
    for table in _OF_EVENTS:
        execute(
            f"DELETE FROM {table} AS t WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.session_id = t.session_id "
            "AND e.event_index = t.event_index)"
        )
    for query in (_WITHOUT_PATH, _WITHOUT_NAME):
        done.incomplete |= {session for (session,) in execute(query)}
    execute("DELETE FROM touched WHERE path_id NOT IN (SELECT id FROM path)")
    execute(
        "UPDATE event AS e SET link = NULL WHERE link IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM event o WHERE o.session_id = e.session_id AND o.event_index = e.link)"
    )
    execute("UPDATE event SET superseded_by = id WHERE superseded_by NOT IN (SELECT id FROM event)")
    interning = Interning(target)
    for session, cwd in execute(_WITHOUT_PROJECT).fetchall():
        project = interning.project(SessionFacts(cwd=cwd)) if isinstance(cwd, str) else None
        if project is None:
            done.incomplete.add(session)
        execute("UPDATE session SET project_id = ? WHERE id = ?", (project, session))
    lost = execute(
        "SELECT name_id FROM event WHERE name_id NOT IN (SELECT id FROM name) "
        "UNION SELECT name_id FROM block_tool WHERE name_id NOT IN (SELECT id FROM name)"
    ).fetchall()
    target.executemany("INSERT INTO name VALUES (?1, ?2 || ' ' || ?1)", [(name, _LOST_NAME) for (name,) in lost])


def _tell_lost(target: sqlite3.Connection, done: Salvage, expected: dict[int, int]) -> None:
    """Name the sessions that lack events; drop those of which nothing is left, and logs without any."""
    kept = dict(target.execute("SELECT session_id, count(*) FROM event GROUP BY 1").fetchall())
    for session, count in expected.items():
        row = target.execute("SELECT uid, title FROM session WHERE id = ?", (session,)).fetchone()
        if row is None or (count <= kept.get(session, 0) and session not in done.incomplete):
            continue
        there = kept.get(session, 0)
        done.lost[session] = Lost(str(row[0]), row[1], count - there, there)
        if session not in kept:
            _drop_session(target, session)
    target.execute("DELETE FROM file WHERE status = 'log' AND id NOT IN (SELECT file_id FROM session)")
    target.execute("DELETE FROM record_type WHERE file_id NOT IN (SELECT id FROM file)")


def _drop_session(target: sqlite3.Connection, session: int) -> None:
    for table in ("block_data", "block_tool"):
        target.execute(f"DELETE FROM {table} WHERE block_id IN (SELECT id FROM block WHERE session_id = ?)", (session,))
    for table in ("block", "event", *_BESIDE, "turn", "model_usage"):
        target.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))
    target.execute("DELETE FROM session WHERE id = ?", (session,))
