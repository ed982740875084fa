"""Overview: the projects that have sessions."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions import projects
from agtrace_indexer.index.questions.projects import Project
from agtrace_indexer.index.questions.usage import Among
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
    """(newest start, row) of each item, as the position after it."""
    total: int
    more: bool


def list_projects(
    connection: sqlite3.Connection,
    limit: int,
    *,
    snapshot: int,
    behind: tuple[int, int] | None,
    prices: PriceTable,
) -> ProjectPage:
    """Return the projects of the snapshot's sessions.

    The start of a session doesn't change while it continues, so pages stay disjoint; only that of a fork does, with
    its first event of its own.
    """
    found = projects.page(connection, snapshot=snapshot, behind=behind, most=limit + 1)
    shown = found[:limit]
    ids = tuple(project.id for project in shown)
    used = usage_by(connection, prices, Among("project", projects=ids, newest=snapshot))
    items = [_project_item(project, used.get(project.id, Usage())) for project in shown]
    places = [(project.newest, project.id) for project in shown]
    return ProjectPage(items, places, found[0].total if found else 0, len(found) > limit)


def _project_item(project: Project, usage: Usage) -> ProjectItem:
    return ProjectItem(
        hash=project.hash[:SHORT_HASH],
        root_path=project.root_path and shown_path(project.root_path),
        session_count=project.sessions,
        providers=sorted(project.providers),
        failed_calls=project.failed_calls,
        responses=usage.responses,
        total_tokens=usage.total,
        tokens=usage.known_tokens,
        tokens_made=usage.tokens_made,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        models=usage.by_model(MODELS_SHOWN) or None,
        total_models=len(usage.models) if len(usage.models) > MODELS_SHOWN else None,
        last_activity=iso(project.last),
    )
