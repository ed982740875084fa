"""Breadth: lists of sessions and projects, and what is known of one session."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from agtrace_schema.answers import ProjectItem, SessionHead, SessionItem, SessionStats
from agtrace_schema.events import Provider

from agtrace.cutting import LABEL, USER_MESSAGE, one_line
from agtrace.query import PROJECTS_BY_HASH, iso, sessions_where, short_id

SHORT_HASH = 8
"""Characters of a project's hash that answers show and accept."""

_CHILDREN = 10


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """What restricts a list of sessions; times are milliseconds since 1970 UTC."""

    provider: str | None = None
    project_hash: str | None = None
    since: int | None = None
    until: int | None = None


class SessionPage(NamedTuple):
    """A page of sessions, newest first."""

    items: list[SessionItem]
    places: list[tuple[int, int]]
    """(start, row) of each item: the position behind it."""
    total: int
    failures: int
    """How many of `total` have failed tool calls."""
    more: bool


def list_sessions(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    limit: int,
    *,
    snapshot: int,
    behind: tuple[int, int] | None,
) -> SessionPage:
    """The sessions that were active in the window, by start, newest first; warm-ups are no sessions."""
    condition, arguments = _session_condition(filters, snapshot)
    start, row = behind or (1 << 62, 0)
    rows = sessions_where(
        connection,
        f"{condition} AND (coalesce(s.started_at, 0), s.id) < (:start, :row) "
        "ORDER BY coalesce(s.started_at, 0) DESC, s.id DESC LIMIT :limit",
        {**arguments, "start": start, "row": row, "limit": limit + 1},
    )
    total, failures = connection.execute(
        f"SELECT count(*), coalesce(sum(s.failed_calls > 0), 0) FROM session s WHERE {condition}", arguments
    ).fetchone()
    page = rows[:limit]
    places = [(row["started_at"] or 0, row["id"]) for row in page]
    return SessionPage([session_item(connection, row) for row in page], places, total, failures, len(rows) > limit)


def newest_session_row(connection: sqlite3.Connection) -> int:
    """The mark of which sessions the index holds now."""
    return connection.execute("SELECT coalesce(max(id), 0) FROM session").fetchone()[0]  # type: ignore[no-any-return]


def session_item(connection: sqlite3.Connection, row: sqlite3.Row) -> SessionItem:
    """A session as a list shows it."""
    title, snippet = row["title"], row["snippet"]
    return SessionItem(
        id=short_id(connection, row["uid"]),
        provider=Provider(row["provider"]),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        kind=None if row["kind"] == "main" else row["kind"],
        parent_id=_shown_parent(connection, row),
        title=title and one_line(title, LABEL * 2),
        snippet=snippet and one_line(snippet, USER_MESSAGE),
        start_time=iso(row["started_at"]),
        duration_seconds=_duration(row["started_at"], row["ended_at"]),
        turn_count=row["turn_count"],
        tool_calls=row["tool_calls"],
        failed_calls=row["failed_calls"],
        total_tokens=row["total_tokens"],
        tokens_incomplete=True if row["incomplete_usage"] else None,
    )


class ProjectPage(NamedTuple):
    """A page of projects, by the start of their newest session, newest first."""

    items: list[ProjectItem]
    places: list[tuple[int, int]]
    """(newest start, row) of each item: the position behind it."""
    total: int
    more: bool


_PROJECTS = """
WITH active AS (
  SELECT p.id, p.hash, p.root_path, count(*) AS sessions, group_concat(DISTINCT s.provider) AS providers,
    sum(s.failed_calls) AS failed, coalesce(max(s.ended_at), 0) AS last, coalesce(max(s.started_at), 0) AS newest
  FROM project p JOIN session s ON s.project_id = p.id
  WHERE s.kind != 'warmup' AND s.id <= :snapshot GROUP BY p.id)
SELECT *, (SELECT count(*) FROM active) AS total FROM active
WHERE (newest, id) < (:newest, :row) ORDER BY newest DESC, id DESC LIMIT :limit
"""


def list_projects(
    connection: sqlite3.Connection, limit: int, *, snapshot: int, behind: tuple[int, int] | None
) -> ProjectPage:
    """The projects of the snapshot's sessions. A start never changes, so pages stay disjoint while sessions go on."""
    newest, row = behind or (1 << 62, 1 << 62)
    named = {"newest": newest, "row": row, "limit": limit + 1, "snapshot": snapshot}
    rows = connection.execute(_PROJECTS, named).fetchall()
    items = [
        ProjectItem(
            hash=row["hash"][:SHORT_HASH],
            root_path=row["root_path"],
            session_count=row["sessions"],
            providers=sorted(map(Provider, row["providers"].split(","))),
            failed_calls=row["failed"],
            last_activity=iso(row["last"]),
        )
        for row in rows[:limit]
    ]
    places = [(row["newest"], row["id"]) for row in rows[:limit]]
    return ProjectPage(items, places, rows[0]["total"] if rows else 0, len(rows) > limit)


def session_head(connection: sqlite3.Connection, row: sqlite3.Row) -> SessionHead:
    """What every level says about a session."""
    children, parent = _children(connection, row), _shown_parent(connection, row)
    return SessionHead(
        session_id=row["uid"],
        provider=Provider(row["provider"]),
        kind=row["kind"],
        parent_id=parent,
        parent_missing=True if row["parent_id"] and parent is None else None,
        children=[short_id(connection, child) for child in children[:_CHILDREN]] or None,
        total_children=len(children) if len(children) > _CHILDREN else None,
        title=row["title"] and one_line(row["title"], USER_MESSAGE),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        root_path=row["root_path"],
        model=row["model"],
        version=row["version"],
        branch=row["branch"],
        start_time=iso(row["started_at"]),
        end_time=iso(row["ended_at"]),
        log=row["path"].partition("#replaced-")[0],
        log_gone=True if row["gone"] else None,
        stats=_stats(row),
    )


def _stats(row: sqlite3.Row) -> SessionStats:
    return SessionStats(
        total_turns=row["turn_count"],
        total_events=row["event_count"],
        tool_calls=row["tool_calls"],
        failed_calls=row["failed_calls"],
        total_tokens=row["total_tokens"],
        tokens_incomplete=True if row["incomplete_usage"] else None,
        duration_seconds=_duration(row["started_at"], row["ended_at"]),
    )


def _session_condition(filters: SessionFilters, snapshot: int) -> tuple[str, dict[str, Any]]:
    conditions, arguments = ["s.kind != 'warmup'", "s.id <= :snapshot"], {"snapshot": snapshot}
    wanted: list[tuple[str, str, Any]] = [
        ("s.provider = :provider", "provider", filters.provider),
        (f"s.project_id IN ({PROJECTS_BY_HASH})", "hash",
         filters.project_hash and filters.project_hash.lower()),
        ("coalesce(s.ended_at, 0) >= :since", "since", filters.since),
        ("coalesce(s.started_at, 0) <= :until", "until", filters.until),
    ]  # fmt: skip
    for condition, name, value in wanted:
        if value is not None:
            conditions.append(condition)
            arguments[name] = value
    return " AND ".join(conditions), arguments


def _children(connection: sqlite3.Connection, row: sqlite3.Row) -> list[str]:
    """The ids of the sessions that this one started, oldest first."""
    found = connection.execute(
        "SELECT uid FROM session WHERE parent_id = ? AND id != ? AND kind != 'warmup' ORDER BY started_at, id",
        (row["own_id"], row["id"]),
    )
    return [child["uid"] for child in found]


def _shown_parent(connection: sqlite3.Connection, row: sqlite3.Row) -> str | None:
    """The id of the parent where it is indexed: every id that is shown can be opened.

    Of several that share the id it is the one in the same file, else the one without a suffix.
    """
    if row["parent_id"] is None:
        return None
    found = connection.execute(
        "SELECT uid FROM session WHERE own_id = ? AND id != ? ORDER BY file_id = ? DESC, uid LIMIT 1",
        (row["parent_id"], row["id"], row["file_id"]),
    ).fetchone()
    return short_id(connection, found["uid"]) if found else None


def _duration(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else (end - start) // 1000
