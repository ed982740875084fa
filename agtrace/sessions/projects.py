"""Breadth: the projects that have sessions."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_schema.answers import ProjectItem

from agtrace.sessions.listing import MODELS_SHOWN, SHORT_HASH
from agtrace.sessions.query import iso
from agtrace.text.lines import shown_path
from agtrace.usage.prices import PriceTable
from agtrace.usage.usage import Usage, usage_by


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
    connection: sqlite3.Connection,
    limit: int,
    *,
    snapshot: int,
    behind: tuple[int, int] | None,
    prices: PriceTable,
) -> ProjectPage:
    """The projects of the snapshot's sessions.

    A start doesn't change while a session goes on (but a fork's, with its first own event), so pages stay disjoint.
    """
    newest, row = behind or (1 << 62, 1 << 62)
    named = {"newest": newest, "row": row, "limit": limit + 1, "snapshot": snapshot}
    rows = connection.execute(_PROJECTS, named).fetchall()
    ids = ", ".join(str(row["id"]) for row in rows[:limit])
    condition = f"s.project_id IN ({ids}) AND s.id <= :snapshot"
    used = usage_by(connection, prices, "s.project_id", condition, {"snapshot": snapshot})
    items = [_project_item(row, used.get(row["id"], Usage())) for row in rows[:limit]]
    places = [(row["newest"], row["id"]) for row in rows[:limit]]
    return ProjectPage(items, places, rows[0]["total"] if rows else 0, len(rows) > limit)


def _project_item(row: sqlite3.Row, usage: Usage) -> ProjectItem:
    return ProjectItem(
        hash=row["hash"][:SHORT_HASH],
        root_path=row["root_path"] and shown_path(row["root_path"]),
        session_count=row["sessions"],
        providers=sorted(row["providers"].split(",")),
        failed_calls=row["failed"],
        responses=usage.responses,
        total_tokens=usage.total,
        tokens=usage.known_tokens,
        tokens_made=usage.tokens_made,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        models=usage.by_model(MODELS_SHOWN) or None,
        total_models=len(usage.models) if len(usage.models) > MODELS_SHOWN else None,
        last_activity=iso(row["last"]),
    )
