"""Making rows from a damaged index consistent, and listing what is lost.

Only consistent rows are kept: an event with the block that has its text, and nothing that refers to a lost event.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from msgspec import Struct, field

from agtrace_indexer.index.names import Interning
from agtrace_indexer.index.table_roles import BESIDE, TABLES, Role, delete_session, of_role, pointers, unused
from agtrace_indexer.index.tombstones import hidden
from agtrace_indexer.repair.damage import (
    EVENT_IS_SOUND,
    EVENTS_WITHOUT_FIGURES,
    IMPOSSIBLE_ACCESS,
    OF_ITS_EVENTS,
    OTHER_THAN_EVENTS,
)

_LOST_NAME = "(lost)"

LOST_FILE = "a log whose path is lost, number {}"
"""The path of a file whose row is lost."""

_WITHOUT_BLOCK = """
SELECT e.id FROM event e WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.session_id = e.session_id
  AND b.first_index <= e.event_index AND e.event_index < b.first_index + b.event_count)
"""

_UNEVEN = """
SELECT b.id FROM block b WHERE b.event_count != (SELECT count(*) FROM event e WHERE e.session_id = b.session_id
  AND e.event_index >= b.first_index AND e.event_index < b.first_index + b.event_count)
"""

# Logs whose path is lost and that were read again: (file, session, the same session as read now).
_TWINS = """
SELECT f.id, s.id, min(o.id) FROM file f JOIN session s ON s.file_id = f.id
JOIN session o ON o.own_id = s.own_id AND o.provider = s.provider AND o.thread = s.thread
JOIN file there ON there.id = o.file_id AND NOT there.gone
WHERE f.path LIKE ? GROUP BY f.id, s.id
"""

_COPIES_OF_TWIN = """
UPDATE event SET copy_of = coalesce((SELECT n.id FROM event o JOIN event n ON n.event_index = o.event_index
  AND n.session_id = :twin WHERE o.id = event.copy_of), 0)
WHERE copy_of IN (SELECT id FROM event WHERE session_id = :session)
"""

_WITHOUT_PATH = "SELECT DISTINCT session_id FROM touched WHERE path_id NOT IN (SELECT id FROM path)"
_WITHOUT_NAME = "FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM name)"
_NAMED = tuple((table, column) for table, column, other in pointers() if other == "name")
"""What has a name: the tables, and the columns with its number."""

_WITHOUT_PROJECT = """
SELECT id, cwd FROM session WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM project)
"""


class Lost(NamedTuple):
    """A session that couldn't be saved completely."""

    session: str
    """Its id."""
    title: str | None
    events: int
    """The number of its events that are lost; 0 if only related rows are, such as the files that they name."""
    kept: int
    """The number of its events that are there."""


class Salvage(Struct):
    """What was carried over, and what remains to be settled once the logs are read."""

    lost: dict[int, Lost] = field(default_factory=dict)
    """By the session's row."""
    unread: set[str] = field(default_factory=set)
    """Tables with pages that can't be read."""
    incomplete: set[int] = field(default_factory=set)
    """Sessions for which some rows related to their events can't be read."""
    copies: list[tuple[int, str, str, int]] = field(default_factory=list)
    """Events whose originals will be read from a log: (event, path, thread, event_index of the original)."""
    parents: list[tuple[int, str, str]] = field(default_factory=list)
    """(session, path and thread of its parent)."""
    orphans: list[int] = field(default_factory=list)
    """Sessions whose parent is known only by its id."""
    pending: list[tuple[int, int]] = field(default_factory=list)
    """The state of the families of sessions whose logs existed: (`pending`, session)."""
    left: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Sessions that logs should bring back, with the paths of these."""


def settle(target: sqlite3.Connection, done: Salvage) -> None:
    """Make the rows that were carried over refer to those read from logs since; within the open transaction."""
    find = "SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.path = ? AND s.thread = ?"
    for event, path, thread, index in done.copies:
        target.execute(
            f"UPDATE event SET copy_of = coalesce((SELECT id FROM event WHERE session_id = ({find}) "
            "AND event_index = ?), 0) WHERE id = ?",
            (path, thread, index, event),
        )
    for session, path, thread in done.parents:
        target.execute(f"UPDATE session SET parent_session = ({find}) WHERE id = ?", (path, thread, session))
    target.executemany(
        "UPDATE session AS s SET parent_session = (SELECT o.id FROM session o JOIN file f ON f.id = o.file_id "
        "WHERE o.own_id = s.parent_id AND o.provider = s.provider ORDER BY f.gone, o.id LIMIT 1) WHERE id = ?",
        [(session,) for session in done.orphans],
    )
    for file, session, twin in target.execute(_TWINS, (LOST_FILE.format("%"),)).fetchall():
        done.lost.pop(session, None)
        target.execute("UPDATE session SET parent_session = ? WHERE parent_session = ?", (twin, session))
        target.execute(_COPIES_OF_TWIN, {"session": session, "twin": twin})
        _drop_file(target, file)
    target.executemany(
        "UPDATE session SET pending = ? WHERE id = ? AND file_id IN (SELECT id FROM file WHERE gone)", done.pending
    )
    for session, row in done.left.items():
        if not _came_back(target, row):
            count = number(row["event_count"]) + number(row.get("copied_events"))
            done.lost[session] = Lost(str(row["uid"]), row["title"], count, 0)
    for table in of_role(Role.SHARED):
        target.execute(f"DELETE FROM {table} WHERE {unused(table)}")


def _came_back(target: sqlite3.Connection, row: dict[str, Any]) -> bool:
    """Whether a session was read from a log again, or isn't read because it was forgotten."""
    query = "SELECT 1 FROM session WHERE provider = :provider AND own_id = :own_id AND thread = :thread"
    hid = "SELECT 1 FROM file WHERE path = ?"
    return (
        target.execute(query, row).fetchone() is not None
        or target.execute(hid, (hidden(str(row["path"])),)).fetchone() is not None
    )


def _drop_file(target: sqlite3.Connection, file: int) -> None:
    """Delete a file and all rows of its sessions."""
    for (session,) in target.execute("SELECT id FROM session WHERE file_id = ?", (file,)).fetchall():
        delete_session(target, session)
    target.execute("DELETE FROM record_type WHERE file_id = ?", (file,))
    target.execute("DELETE FROM file WHERE id = ?", (file,))


def at_least_as_blocks_say(target: sqlite3.Connection, expected: dict[int, int]) -> dict[int, int]:
    """Return the number of events that each session had at least, according to the rows that are left."""
    told = dict(target.execute("SELECT session_id, max(first_index + event_count) FROM block GROUP BY 1").fetchall())
    last = dict(target.execute("SELECT session_id, max(event_index) + 1 FROM event GROUP BY 1").fetchall())
    return {id: max(count, number(told.get(id)), number(last.get(id))) for id, count in expected.items()}


def drop_what_does_not_fit(target: sqlite3.Connection, done: Salvage) -> None:
    """Delete rows that refer to something lost; note the sessions that become incomplete."""
    execute = target.execute
    execute(f"DELETE FROM event WHERE NOT ({EVENT_IS_SOUND})")
    for (block,) in execute(_UNEVEN).fetchall():
        for table, column in (("block", "id"), ("block_data", "block_id"), ("block_tool", "block_id")):
            execute(f"DELETE FROM {table} WHERE {column} = ?", (block,))
    execute(f"DELETE FROM event WHERE id IN ({_WITHOUT_BLOCK})")
    for table in (name for name in BESIDE if TABLES[name].role is Role.EVENT):
        execute(
            f"DELETE FROM {table} AS t WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.session_id = t.session_id "
            "AND e.event_index = t.event_index)"
        )
    without_names = [_WITHOUT_NAME.format(table=table, column=column) for table, column in _NAMED if table == "event"]
    misfits = (*without_names, EVENTS_WITHOUT_FIGURES, OTHER_THAN_EVENTS, IMPOSSIBLE_ACCESS)
    for query in (_WITHOUT_PATH, *(f"SELECT DISTINCT session_id {misfit}" for misfit in misfits)):
        done.incomplete |= {session for (session,) in execute(query)}
    execute(f"UPDATE block AS b SET (t0, t1, types) = {OF_ITS_EVENTS} WHERE id IN (SELECT id {OTHER_THAN_EVENTS})")
    execute(f"DELETE {IMPOSSIBLE_ACCESS}")
    execute(
        "INSERT INTO token_usage (session_id, event_index, complete) "
        f"SELECT session_id, event_index, 0 {EVENTS_WITHOUT_FIGURES}"
    )
    execute("DELETE FROM touched WHERE path_id NOT IN (SELECT id FROM path)")
    execute(
        "UPDATE event AS e SET link = NULL WHERE link IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM event o WHERE o.session_id = e.session_id AND o.event_index = e.link)"
    )
    execute("UPDATE event SET superseded_by = id WHERE superseded_by NOT IN (SELECT id FROM event)")
    interning = Interning(target)
    for session, cwd in execute(_WITHOUT_PROJECT).fetchall():
        project = interning.project(cwd) if isinstance(cwd, str) else None
        if project is None:
            done.incomplete.add(session)
        execute("UPDATE session SET project_id = ? WHERE id = ?", (project, session))
    lost = execute(
        " UNION ".join(
            f"SELECT {column} {_WITHOUT_NAME.format(table=table, column=column)}" for table, column in _NAMED
        )
    ).fetchall()
    target.executemany("INSERT INTO name VALUES (?1, ?2 || ' ' || ?1)", [(name, _LOST_NAME) for (name,) in lost])


def tell_lost(target: sqlite3.Connection, done: Salvage, expected: dict[int, int]) -> None:
    """Note the sessions that lack events; drop those of which nothing is left, and logs without sessions."""
    kept = dict(target.execute("SELECT session_id, count(*) FROM event GROUP BY 1").fetchall())
    for session, count in expected.items():
        row = target.execute("SELECT uid, title FROM session WHERE id = ?", (session,)).fetchone()
        if row is None or (count <= kept.get(session, 0) and session not in done.incomplete):
            continue
        there = kept.get(session, 0)
        done.lost[session] = Lost(str(row[0]), row[1], count - there, there)
        if session not in kept:
            delete_session(target, session)
    target.execute("UPDATE session SET parent_session = NULL WHERE parent_session NOT IN (SELECT id FROM session)")
    target.execute("DELETE FROM file WHERE status = 'log' AND id NOT IN (SELECT file_id FROM session)")
    target.execute("DELETE FROM record_type WHERE file_id NOT IN (SELECT id FROM file)")


def number(value: Any) -> int:
    """Return a stored whole number, or 0 for anything else."""
    return value if isinstance(value, int) else 0
