"""The projects that sessions belong to."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions.conditions import PROJECTS_BY_HASH
from agtrace_indexer.index.questions.queries import pairs, rows, value

_ACTIVE = """
WITH active AS (
  SELECT p.id, p.hash, p.root_path, count(*) AS sessions, group_concat(DISTINCT s.provider) AS providers,
    sum(s.failed_calls) AS failed, coalesce(max(s.ended_at), 0) AS last, coalesce(max(s.started_at), 0) AS newest
  FROM project p JOIN session s ON s.project_id = p.id
  WHERE s.kind != 'warmup' AND s.id <= :snapshot GROUP BY p.id)
SELECT *, (SELECT count(*) FROM active) FROM active
WHERE (newest, id) < (:newest, :row) ORDER BY newest DESC, id DESC LIMIT :most
"""


class Project(NamedTuple):
    """A project with its sessions. Times are milliseconds since 1970 UTC; 0 is unknown."""

    id: int
    """Its row id."""
    hash: str
    root_path: str | None
    """None if logs name only the hash."""
    sessions: int
    providers: tuple[str, ...]
    failed_calls: int
    last: int
    """The time of the last activity in its sessions."""
    newest: int
    """The start of its newest session."""
    total: int
    """The number of projects in the whole list."""


def _project(
    id: int, hash: str, root: str | None, sessions: int, providers: str, failed: int, last: int, newest: int, total: int
) -> Project:
    return Project(id, hash, root, sessions, tuple(providers.split(",")), failed, last, newest, total)


def page(connection: sqlite3.Connection, *, snapshot: int, behind: tuple[int, int] | None, most: int) -> list[Project]:
    """Return the projects after a (newest, row), those with the newest sessions first, at most `most`.

    `snapshot` marks the sessions that existed when the list was begun (`sessions.newest_row`).
    """
    newest, row = behind or (1 << 62, 1 << 62)
    named = {"newest": newest, "row": row, "most": most, "snapshot": snapshot}
    return list(rows(connection, _project, _ACTIVE, named))


def named(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the row and the root path of every project whose path is known."""
    return list(pairs(connection, "SELECT id, root_path FROM project WHERE root_path IS NOT NULL").items())


def has_hash(connection: sqlite3.Connection, beginning: str) -> bool:
    """Whether any project's hash begins with this text."""
    return value(connection, PROJECTS_BY_HASH, {"hash": beginning}) is not None
