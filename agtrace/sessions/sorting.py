"""Lists of sessions in an order: by their start, by a measure, the largest first, or by who pushed them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias

from agtrace_indexer.index.questions import matches, measures, sessions
from agtrace_indexer.index.questions.measures import MEASURES
from agtrace_indexer.index.questions.sessions import Session, SessionFilters, people_of
from agtrace_indexer.index.questions.usage import Among
from agtrace_schema.requests import Sort
from msgspec import Struct

from agtrace.sessions.prices import PriceTable
from agtrace.sessions.usage import Usage, usage_by

FIELDS: dict[str, str] = {
    **{name: name for name in MEASURES},
    "turns": "turn_count",
    "duration": "duration_seconds",
    "cost": "cost_usd",
}
"""Measure -> the field of a `SessionItem` that has it."""

Order: TypeAlias = Sort | Literal["active"]
"""An order of a list: by start, by a measure, or by when something happened last."""

_WITHOUT_SUM = frozenset({"active", "user"})
"""Orders by something that can't be added."""

_PARTS_OF_DOLLAR = 10_000
"""Costs are compared as precisely as answers show them."""

_NEWEST = 1 << 62


class Snapshot(NamedTuple):
    """The state of the index when a list was begun, by the row ids of its newest session and event."""

    session: int
    event: int


class Place(NamedTuple):
    """The position after a session in a list."""

    key: int
    """Its start, or its measure; -1 if its measure isn't known."""
    row: int


class SortedPage(Struct, frozen=True):
    """A page of a sorted list."""

    sessions: list[Session]
    places: list[Place]
    """The position after each of them."""
    more: bool
    measured: dict[int, int | None]
    """The measure by row id, costs in parts of a dollar; empty if the list is sorted by start."""
    total: float | None = None
    """The sum over the whole list, in dollars for a cost; for failure_run the longest. None if nothing is known."""
    at_least: bool = False
    """Whether the sum is a lower bound, as some sessions have no price for some of their tokens."""


class _Measured(Struct, frozen=True):
    """A session with a measure, in the order of a list."""

    key: int
    started: int
    row: int

    @property
    def rank(self) -> tuple[int, int, int]:
        return -self.key, -self.started, -self.row


def snapshot_now(connection: sqlite3.Connection) -> Snapshot:
    """Return the present state of the index."""
    return Snapshot(sessions.newest_row(connection), matches.newest_event(connection))


def sorted_page(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    sort: Order,
    limit: int,
    *,
    snapshot: Snapshot,
    behind: Place | None,
    prices: PriceTable,
) -> SortedPage:
    """Return the sessions of a list after a place, at most `limit`; of equal ones the newest comes first."""
    if sort in FIELDS or sort in _WITHOUT_SUM:
        return _by_measure(connection, filters, sort, limit, snapshot, behind, prices)
    oldest_first = sort == "oldest"
    found = sessions.page(
        connection, filters, newest=snapshot.session, behind=behind, most=limit + 1, oldest_first=oldest_first
    )
    page = found[:limit]
    return SortedPage(page, [Place(one.started_at or 0, one.id) for one in page], len(found) > limit, {})


def _by_measure(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    sort: Order,
    limit: int,
    snapshot: Snapshot,
    behind: Place | None,
    prices: PriceTable,
) -> SortedPage:
    starts = sessions.starts(connection, filters, newest=snapshot.session)
    used = _used(connection, starts, snapshot, prices) if sort == "cost" else {}
    measured = _costs(used) if sort == "cost" else _measured(connection, starts, sort, snapshot)
    keys = ((row, measured.get(row)) for row in starts)
    ranked = [_Measured(-1 if key is None else key, starts[row], row) for row, key in keys]
    if behind is not None:
        last = _Measured(behind.key, starts.get(behind.row, _NEWEST), behind.row)
        ranked = [one for one in ranked if one.rank > last.rank]
    ranked.sort(key=lambda one: one.rank)
    page = ranked[:limit]
    found = {session.id: session for session in sessions.in_rows(connection, (one.row for one in page))}
    places = [Place(one.key, one.row) for one in page]
    more = len(ranked) > limit
    at_least = any(usage.cost_made in ("partial", "unknown") for usage in used.values())
    return SortedPage([found[one.row] for one in page], places, more, measured, _total(measured, sort), at_least)


def _used(
    connection: sqlite3.Connection, rows: Collection[int], snapshot: Snapshot, prices: PriceTable
) -> dict[int, Usage]:
    return usage_by(connection, prices, Among("session", sessions=tuple(rows), newest_event=snapshot.event))


def _costs(used: Mapping[int, Usage]) -> dict[int, int | None]:
    costs = {row: usage.cost for row, usage in used.items()}
    return {row: None if cost is None else round(cost * _PARTS_OF_DOLLAR) for row, cost in costs.items()}


def _measured(
    connection: sqlite3.Connection, rows: Collection[int], sort: Order, snapshot: Snapshot
) -> dict[int, int | None]:
    if sort == "active":
        return {**sessions.ends(connection, rows)}
    if sort == "user":
        return _places_of_people(people_of(connection, tuple(rows)))
    return measures.of_sessions(connection, rows, sort, newest_event=snapshot.event)


def _places_of_people(people: dict[int, str]) -> dict[int, int | None]:
    """Return a number for each session that is greater the earlier its person's name comes in the alphabet."""
    names = sorted(set(people.values()), key=lambda name: (name.casefold(), name), reverse=True)
    places = {name: place for place, name in enumerate(names)}
    return {row: places[name] for row, name in people.items()}


def _total(measured: dict[int, int | None], sort: Order) -> float | None:
    known = [value for value in measured.values() if value is not None]
    if not known or sort in _WITHOUT_SUM:
        return None
    if sort == "failure_run":
        return max(known)
    return sum(known) / _PARTS_OF_DOLLAR if sort == "cost" else sum(known)
