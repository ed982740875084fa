"""What looking after an index shows: its files' state, what forgetting would delete, and secrets."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.queries.base import (
    BELOW,
    FILES,
    OF_PROJECTS,
    as_json,
    conditions,
    dicts,
    is_team,
    pairs,
    tuples,
    value,
    values,
)
from agtrace_indexer.providers.unread import store_within

_TOTALS = f"""
SELECT count(*) FILTER (WHERE s.kind != 'warmup' AND NOT {BELOW}) AS sessions,
  count(*) FILTER (WHERE {BELOW}) AS sub_agents, coalesce(sum(event_count), 0) AS events,
  (SELECT count(*) FROM file WHERE gone) AS archived_files,
  (SELECT count(*) FROM file WHERE status = 'forgotten') AS forgotten_files,
  (SELECT count(*) FROM file WHERE status = 'log') AS logs, max(ended_at) AS newest_event
FROM session s
"""

_BYTES = """
SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1
"""

_PROVIDERS = """
SELECT s.provider, count(DISTINCT s.file_id) AS files, count(*) FILTER (WHERE s.kind != 'warmup') AS sessions,
  count(*) FILTER (WHERE s.kind = 'warmup' AND s.copied_events = 0) AS warmups,
  group_concat(DISTINCT s.version) AS versions
FROM session s GROUP BY s.provider ORDER BY s.provider
"""

_GONE = """
SELECT s.provider, count(*) FROM session s JOIN file f ON f.id = s.file_id
WHERE f.gone AND s.kind NOT IN ('subagent', 'warmup') AND NOT instr(f.path, '#replaced-') GROUP BY s.provider
"""

_LOGS = """
SELECT f.path, f.provider, f.gone, f.size, f.lines, f.records, f.unreadable_lines, f.pending_bytes,
  count(s.id) AS sessions, coalesce(sum(s.event_count), 0) AS events, coalesce(sum(s.tool_calls), 0) AS tool_calls,
  coalesce(sum(s.failed_calls), 0) AS failed_calls
FROM file f LEFT JOIN session s ON s.file_id = f.id WHERE f.status = 'log' GROUP BY f.id ORDER BY f.path
"""

_NOT_READ = """
SELECT path, status, reason, size FROM file WHERE status NOT IN ('log', 'container', 'forgotten') ORDER BY status, path
"""

_PARTLY_READ = """
SELECT path, reason, pending_bytes FROM file WHERE status = 'log' AND reason IS NOT NULL ORDER BY path
"""

_UNREADABLE_LINES = f"""
SELECT f.path, e.line, e.offset AS byte_offset, e.length AS byte_length,
  CASE n.text WHEN 'unreadable_line' THEN 'not JSON' ELSE 'too long to parse: its beginning is kept' END AS reason,
  s.uid || ':' || e.event_index AS event
FROM name n JOIN event e ON e.name_id = n.id
  JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE e.type = {TYPE_CODE[EventType.NOTIFICATION]}
  AND (n.text = 'unreadable_line' OR n.text = 'oversized_line' AND e.superseded_by IS NULL)
ORDER BY f.path, e.line
"""

# With one of the files, and the first line of that file with such a record.
_RECORD_TYPES = """
SELECT type, provider, sum(count) AS count, count(*) AS files, max(CASE WHEN number = 1 THEN path END) AS path,
  max(CASE WHEN number = 1 THEN first_line END) AS line
FROM (
  SELECT t.type, f.provider, t.count, f.path, t.first_line,
    row_number() OVER (PARTITION BY f.provider, t.type ORDER BY f.id) AS number
  FROM record_type t JOIN file f ON f.id = t.file_id WHERE t.status = ?) numbered
GROUP BY provider, type ORDER BY 3 DESC, type
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
  AND e.identity > 0 AND c.identity > 0 AND e.type != {TYPE_CODE[EventType.TOKEN_USAGE]}
GROUP BY o.id ORDER BY events DESC, o.uid
"""

_TOLD_IN = f"""
SELECT DISTINCT p.uid FROM session s JOIN session p ON p.id = s.parent_session
WHERE s.file_id IN {FILES} AND p.file_id NOT IN {FILES} AND s.kind IN ('subagent', 'warmup') ORDER BY p.uid
"""

_WHERE = {
    "provider": "s.provider = :provider", "projects": OF_PROJECTS, "session": "s.id = :session",
    "since": "e.ts >= :since", "until": "e.ts <= :until",
}  # fmt: skip
_SECRETS = """
SELECT x.value AS id, x.kind, x.tier, x.session_id AS session_row, s.uid AS session_id,
  min(x.event_index) AS event_index, count(DISTINCT x.event_index) AS events, min(e.ts) AS first, max(e.ts) AS last
FROM secret x JOIN session s ON s.id = x.session_id
JOIN event e ON e.session_id = x.session_id AND e.event_index = x.event_index
WHERE {where} GROUP BY x.value, x.kind, x.tier, x.session_id
ORDER BY x.tier, last DESC, x.session_id DESC, min(x.event_index)
"""


def totals(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the totals of the index: sessions are without warm-ups, as lists count them; times are milliseconds since
    1970 UTC, None if unknown.
    """
    return dicts(connection, _TOTALS)[0]


def tables(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the tables that have rows, with their bytes (None without `dbstat`), those of FTS5 too, largest first."""
    from sqlite_utils import Database  # takes 0.2 s

    try:
        sizes = dict(connection.execute(_BYTES).fetchall())
    except sqlite3.OperationalError:
        sizes = {}
    stored = (table for table in Database(connection, execute_plugins=False).tables if not table.virtual_table_using)
    found = [{"name": table.name, "rows": table.count, "bytes": sizes.get(table.name)} for table in stored]
    return sorted((one for one in found if one["rows"]), key=lambda one: (-(one["bytes"] or 0), -one["rows"]))


def roots(connection: sqlite3.Connection) -> list[str]:
    """Return the paths that are kept fresh."""
    return values(connection, "SELECT path FROM root ORDER BY path")


def providers(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the totals of each agent; `versions` of its logs are separated by commas, in no particular order."""
    return dicts(connection, _PROVIDERS)


def sessions_gone(connection: sqlite3.Connection) -> dict[str, int]:
    """Return, by agent, how many sessions, no sub-agents, the index holds whose logs were deleted."""
    return pairs(connection, _GONE)


def files(connection: sqlite3.Connection) -> dict[str, list[dict[str, Any]]]:
    """Return all logs, the files that are none or can't be read, the logs not read to the end, and unreadable lines."""
    asked = {
        "files": _LOGS, "not_read": _NOT_READ, "partly_read": _PARTLY_READ, "unreadable_lines": _UNREADABLE_LINES,
    }  # fmt: skip
    return {name: dicts(connection, query) for name, query in asked.items()}


def not_read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the files that are not logs, or can't be read."""
    return dicts(connection, _NOT_READ)


def unread(connection: sqlite3.Connection) -> list[str]:
    """Return the logs and stores of agents that can't be read, each with the reason; a team's index has none."""
    found = () if is_team(connection) else tuples(connection, _NOT_READ)
    return [f"{path}: {why}" for path, status, why, _ in found if status == "unreadable" or store_within(path)]


def record_types(connection: sqlite3.Connection, status: str) -> list[dict[str, Any]]:
    """Return the types of records with status `unknown` or `skipped`, the most frequent first."""
    return dicts(connection, _RECORD_TYPES, (status,))


# -- what `agtrace forget` shows -------------------------------------------------------------------


def held_by(connection: sqlite3.Connection, files: Collection[int]) -> list[dict[str, Any]]:
    """Return the sessions of these files, oldest first."""
    return dicts(connection, _HELD, {"files": as_json(files)})


def also_in(connection: sqlite3.Connection, files: Collection[int]) -> list[dict[str, Any]]:
    """Return the sessions of other files that contain some of the same events, those with most first."""
    return dicts(connection, _ALSO_IN, {"files": as_json(files)})


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


# -- secrets ---------------------------------------------------------------------------------------


def secrets(connection: sqlite3.Connection, **where: Any) -> list[dict[str, Any]]:
    """Return the secrets of each session `where` these hold, the surest first, then the latest; times are in ms."""
    if is_team(connection):
        return []
    there, named = conditions(*((sql, name, where.get(name)) for name, sql in _WHERE.items()))
    if "projects" in named:
        named["projects"] = as_json(named["projects"])
    return dicts(connection, _SECRETS.format(where=" AND ".join(["e.copy_of IS NULL", *there])), named)


def secrets_of(connection: sqlite3.Connection, session_row: int, event_index: int, kind: str) -> list[str]:
    """Return the fingerprints of the secrets of this kind in an event, in order."""
    sql = "SELECT value FROM secret WHERE session_id = ? AND event_index = ? AND kind = ? ORDER BY number"
    return values(connection, sql, (session_row, event_index, kind))
