"""The lists: sessions, with who worked where, when and for how much; projects; what was spent."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_schema.answers import ProjectItem, SessionItem
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from agtrace_schema.requests import CostBy

from agtrace.report.costs import OVER_TIME, costs, lacking
from agtrace.report.page.visible_text import fit_for_the_page
from agtrace.report.selection import Selection
from agtrace.report.wording import AGENTS
from agtrace.sessions.listing import list_sessions
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import list_projects
from agtrace.sessions.sorting import Order, Place, Snapshot, snapshot_now

PAGE = 50
"""The sessions of a page of a list."""

SORTS: dict[str, str] = {
    "active": "last active", "newest": "started, newest first", "oldest": "started, oldest first", "cost": "cost",
    "failed_calls": "failed calls", "duration": "length", "turns": "turns", "total_tokens": "tokens",
    "tool_calls": "tool calls",
}  # fmt: skip
"""The orders of a list of sessions, and what they are called."""

GROUPS: tuple[CostBy, ...] = get_args(CostBy)
_PROJECTS = 500
_BEHIND = later(r"-?[0-9]{1,18}(?:\.[0-9]{1,18}){3}")


class Behind(NamedTuple):
    """Where a page of a list ended: after a session, in a list that was begun on a snapshot."""

    place: Place
    snapshot: Snapshot

    @property
    def written(self) -> str:
        """As an address has it."""
        return ".".join(map(str, (*self.place, *self.snapshot)))


class Listed(NamedTuple):
    """A page of a list of sessions."""

    rows: list[dict[str, Any]]
    """The fields of `SessionItem`, with `agent` and `ended_at`."""
    total: int
    failures: int
    behind: str | None
    """Where the next page begins; None if this is the last one."""
    rows_at: list[tuple[int, str]]
    """Row id and shown id of each session."""
    state: Snapshot
    """Of which state of the index the list tells, as an open page is told of a later one."""


class Bar(NamedTuple):
    """A group of what was spent, and how long its bar is, from 0 to 1."""

    spent: dict[str, Any]
    share: float


class Ledger(NamedTuple):
    """What was spent, by group."""

    costs: dict[str, Any]
    """The fields of `Costs`."""
    bars: list[Bar]
    in_time: bool
    lacking: list[str]
    """Which figures the logs lack or have twice, as phrases."""


def behind_in(written: str) -> Behind | None:
    """Read where a page ended; None for what isn't such a place."""
    if not _BEHIND.fullmatch(written):
        return None
    key, row, session, event = map(int, written.split("."))
    return Behind(Place(key, row), Snapshot(session, event))


def listed(
    connection: sqlite3.Connection, filters: SessionFilters, sort: Order, behind: Behind | None, prices: PriceTable
) -> Listed:
    """Return a page of the sessions that these filters leave."""
    snapshot = snapshot_now(connection) if behind is None else behind.snapshot
    page = list_sessions(
        connection, filters, PAGE, sort=sort, snapshot=snapshot, behind=None if behind is None else behind.place,
        prices=prices,
    )  # fmt: skip
    rows: Any = fit_for_the_page([_row(item) for item in page.items])
    following = Behind(page.places[-1], snapshot).written if page.more else None
    rows_at = [(place.row, item.id) for place, item in zip(page.places, page.items, strict=True)]
    return Listed(rows, page.total, page.failures, following, rows_at, snapshot)


def _row(item: SessionItem) -> dict[str, Any]:
    return dump(item) | {"agent": AGENTS[item.provider]}


def projects(connection: sqlite3.Connection, prices: PriceTable) -> list[dict[str, Any]]:
    """Return the projects, the most recently active first, with the fields of `ProjectItem` and `agents`."""
    page = list_projects(connection, _PROJECTS, snapshot=snapshot_now(connection), behind=None, prices=prices)
    rows: Any = fit_for_the_page([_project(item) for item in page.items])
    found: list[dict[str, Any]] = rows
    return found


def _project(item: ProjectItem) -> dict[str, Any]:
    return dump(item) | {"agents": [AGENTS[name] for name in item.providers]}


def ledger(
    connection: sqlite3.Connection, selection: Selection, by: CostBy, prices: PriceTable, *, dollars: bool
) -> Ledger:
    """Return what was spent in a selection, by group; bars are as long as costs, or tokens without dollars."""
    found = costs(connection, selection, by, prices=prices, dollars=dollars)
    told: Any = fit_for_the_page(dump(found))
    groups: Sequence[dict[str, Any]] = told["groups"]
    measure = "cost_usd" if any(group.get("cost_usd") for group in groups) else "total_tokens"
    most = max((group.get(measure) or 0 for group in groups), default=0) or 1
    bars = [Bar(_named(group, by), (group.get(measure) or 0) / most) for group in groups]
    return Ledger(told, bars, by in OVER_TIME, list(lacking(found)))


def _named(group: dict[str, Any], by: CostBy) -> dict[str, Any]:
    return group | ({"group": AGENTS.get(group["group"], group["group"])} if by == "agent" else {})
