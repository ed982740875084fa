"""The queries for looking after an index: its files' state, what forgetting would delete, sessions to measure by."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.questions.queries import FILES, as_json, pairs, rows, value, values

_NOTIFICATION = TYPE_CODE[EventType.NOTIFICATION]
_USAGE = TYPE_CODE[EventType.TOKEN_USAGE]

_TOTALS = """
SELECT count(*) FILTER (WHERE kind != 'warmup'), coalesce(sum(event_count), 0),
  (SELECT count(*) FROM file WHERE gone),
  (SELECT count(*) FROM file WHERE status = 'forgotten')
FROM session
"""

_BYTES = """
SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1
"""

_PROVIDERS = """
SELECT s.provider, count(DISTINCT s.file_id), count(*) FILTER (WHERE s.kind != 'warmup'),
  count(*) FILTER (WHERE s.kind = 'warmup'), group_concat(DISTINCT s.version)
FROM session s GROUP BY s.provider ORDER BY s.provider
"""

_GONE = """
SELECT s.provider, count(*) FROM session s JOIN file f ON f.id = s.file_id
WHERE f.gone AND s.kind NOT IN ('subagent', 'warmup') AND NOT instr(f.path, '#replaced-') GROUP BY s.provider
"""

_LOGS = """
SELECT f.path, f.provider, f.gone, f.size, f.lines, f.records, f.unreadable_lines, f.pending_bytes,
  count(s.id), coalesce(sum(s.event_count), 0), coalesce(sum(s.tool_calls), 0), coalesce(sum(s.failed_calls), 0)
FROM file f LEFT JOIN session s ON s.file_id = f.id WHERE f.status = 'log' GROUP BY f.id ORDER BY f.path
"""

_NOT_READ = """
SELECT path, status, reason, size FROM file WHERE status NOT IN ('log', 'container', 'forgotten') ORDER BY status, path
"""

_PARTLY_READ = """
SELECT path, reason, pending_bytes FROM file WHERE status = 'log' AND reason IS NOT NULL ORDER BY path
"""

_UNREADABLE_LINES = f"""
SELECT f.path, e.line, e.offset, e.length, n.text, s.uid, e.event_index
FROM name n JOIN event e ON e.name_id = n.id
  JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE n.text IN ('unreadable_line', 'oversized_line') AND e.type = {_NOTIFICATION} AND e.superseded_by IS NULL
ORDER BY f.path, e.line
"""

_RECORD_TYPES = """
SELECT type, provider, sum(count) AS records, count(*), max(CASE WHEN number = 1 THEN path END),
  max(CASE WHEN number = 1 THEN first_line END)
FROM (
  SELECT t.type, f.provider, t.count, f.path, t.first_line,
    row_number() OVER (PARTITION BY f.provider, t.type ORDER BY f.id) AS number
  FROM record_type t JOIN file f ON f.id = t.file_id WHERE t.status = ?) numbered
GROUP BY provider, type ORDER BY records DESC, type
"""

_HELD = f"""
SELECT s.kind, s.title, s.snippet, s.started_at, s.ended_at, s.event_count, f.path, f.gone
FROM session s JOIN file f ON f.id = s.file_id WHERE s.file_id IN {FILES} ORDER BY s.started_at NULLS FIRST, s.id
"""

_ALSO_IN = f"""
SELECT o.uid, count(DISTINCT e.identity) AS events FROM session s JOIN kin k ON k.session_id = s.id
JOIN session o ON o.id = k.other_id JOIN event e ON e.session_id = s.id
JOIN event c ON c.identity = e.identity AND c.session_id = o.id
WHERE s.file_id IN {FILES} AND o.file_id NOT IN {FILES}
  AND e.identity > 0 AND c.identity > 0 AND e.type != {_USAGE}
GROUP BY o.id ORDER BY events DESC, o.uid
"""

_TOLD_IN = f"""
SELECT DISTINCT p.uid FROM session s JOIN session p ON p.id = s.parent_session
WHERE s.file_id IN {FILES} AND p.file_id NOT IN {FILES} AND s.kind IN ('subagent', 'warmup') ORDER BY p.uid
"""


class Totals(NamedTuple):
    """The totals of an index."""

    sessions: int
    """Without warm-ups, as lists count them."""
    events: int
    archived_files: int
    forgotten_files: int


class TableSize(NamedTuple):
    """A table of the file, those in which FTS5 keeps its words included."""

    name: str
    rows: int
    bytes: int | None
    """Of its pages, with those of its SQL indexes; None if SQLite can't tell (`dbstat`)."""


class ProviderTotals(NamedTuple):
    """The totals of one agent in an index."""

    provider: str
    files: int
    sessions: int
    """Without warm-ups, as lists count them."""
    warmups: int
    """What mere starts of the agent left."""
    versions: str | None
    """The versions that wrote the logs, separated by commas, in no particular order."""


class LogFile(NamedTuple):
    """A log, and the figures of what was read from it."""

    path: str
    provider: str | None
    gone: int
    size: int
    lines: int
    records: int
    unreadable_lines: int
    pending_bytes: int
    sessions: int
    events: int
    tool_calls: int
    failed_calls: int


class UnreadFile(NamedTuple):
    """A file that is not a log, or can't be read."""

    path: str
    status: str
    reason: str | None
    size: int


class PartlyReadFile(NamedTuple):
    """A log that wasn't read to the end."""

    path: str
    reason: str
    pending_bytes: int


class UnreadableLine(NamedTuple):
    """A line of a log that was kept as it is, and the event that contains it."""

    path: str
    line: int
    offset: int
    length: int
    kind: str
    """`unreadable_line` or `oversized_line`."""
    uid: str
    event_index: int


class RecordType(NamedTuple):
    """A type of records that were left out or not understood."""

    type: str
    provider: str | None
    records: int
    files: int
    path: str
    """One of the files."""
    line: int
    """The first line of that file with such a record."""


class HeldSession(NamedTuple):
    """A session in a log."""

    kind: str
    title: str | None
    snippet: str | None
    started_at: int | None
    ended_at: int | None
    event_count: int
    path: str
    gone: int


class SharedEvents(NamedTuple):
    """Another session with some of the same events in a log of its own."""

    uid: str
    events: int


# -- what `agtrace doctor` shows -------------------------------------------------------------------


def totals(connection: sqlite3.Connection) -> Totals:
    """Return the totals of the index."""
    return next(rows(connection, Totals, _TOTALS))


def tables(connection: sqlite3.Connection) -> list[TableSize]:
    """Return the tables that have rows, largest first."""
    from sqlite_utils import Database  # takes 0.2 s

    try:
        sizes = dict(connection.execute(_BYTES).fetchall())
    except sqlite3.OperationalError:
        sizes = {}
    stored = (table for table in Database(connection, execute_plugins=False).tables if not table.virtual_table_using)
    found = [TableSize(table.name, table.count, sizes.get(table.name)) for table in stored]
    return sorted((table for table in found if table.rows), key=lambda table: (-(table.bytes or 0), -table.rows))


def roots(connection: sqlite3.Connection) -> list[str]:
    """Return the paths that are kept fresh."""
    return values(connection, "SELECT path FROM root ORDER BY path")


def providers(connection: sqlite3.Connection) -> list[ProviderTotals]:
    """Return the totals of each agent."""
    return list(rows(connection, ProviderTotals, _PROVIDERS))


def sessions_gone(connection: sqlite3.Connection) -> dict[str, int]:
    """Return, by agent, how many sessions, no sub-agents, the index holds whose logs were deleted."""
    return pairs(connection, _GONE)


def logs(connection: sqlite3.Connection) -> list[LogFile]:
    """Return all logs, by path."""
    return list(rows(connection, LogFile, _LOGS))


def files_not_read(connection: sqlite3.Connection) -> list[UnreadFile]:
    """Return the files that are not logs, or can't be read."""
    return list(rows(connection, UnreadFile, _NOT_READ))


def logs_partly_read(connection: sqlite3.Connection) -> list[PartlyReadFile]:
    """Return the logs that weren't read to the end."""
    return list(rows(connection, PartlyReadFile, _PARTLY_READ))


def unreadable_lines(connection: sqlite3.Connection) -> list[UnreadableLine]:
    """Return the lines that couldn't be parsed, by file and position."""
    return list(rows(connection, UnreadableLine, _UNREADABLE_LINES))


def record_types(connection: sqlite3.Connection, status: str) -> list[RecordType]:
    """Return the types of records with status `unknown` or `skipped`, the most frequent first."""
    return list(rows(connection, RecordType, _RECORD_TYPES, (status,)))


# -- what `agtrace forget` shows -------------------------------------------------------------------


def held_by(connection: sqlite3.Connection, files: Collection[int]) -> list[HeldSession]:
    """Return the sessions of these files, oldest first."""
    return list(rows(connection, HeldSession, _HELD, {"files": as_json(files)}))


def also_in(connection: sqlite3.Connection, files: Collection[int]) -> list[SharedEvents]:
    """Return the sessions of other files that contain some of the same events, those with most first."""
    return list(rows(connection, SharedEvents, _ALSO_IN, {"files": as_json(files)}))


def told_in(connection: sqlite3.Connection, files: Collection[int]) -> list[str]:
    """Return the ids of the sessions in other files that started sub-agents in these and report on them."""
    return values(connection, _TOLD_IN, {"files": as_json(files)})


def has_session(connection: sqlite3.Connection, uid: str) -> bool:
    """Whether there is a session with exactly this id."""
    return value(connection, "SELECT 1 FROM session WHERE uid = ?", (uid,)) is not None


def head_of(connection: sqlite3.Connection, file: int) -> str | None:
    """Return the id of a log's main session; others in the same file are its sub-agents."""
    uid: str | None = value(connection, "SELECT uid FROM session WHERE file_id = ? AND thread = ''", (file,))
    return uid


def files_of_project(connection: sqlite3.Connection, project: int) -> set[int]:
    """Return the log files of a project."""
    return set(values(connection, "SELECT file_id FROM session WHERE project_id = ? AND thread = ''", (project,)))
