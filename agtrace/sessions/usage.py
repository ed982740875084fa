"""Token usage of sessions, by kind and model, and its cost.

All totals come from `model_usage`, whose rows leave out superseded figures and copies: a response
counts once, in one session. Each total says how it was made: `exact`; `partial` if the logs have no
figures (or no price is known) for some responses, or have something
that wasn't understood and may be usage; `estimated` if list prices were used, or if logs
that are gone share responses with logs that still exist, which then count in both.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from agtrace_indexer.index.queries import sessions, usage
from agtrace_indexer.index.queries.sessions import Session, SessionFilters, people_of
from agtrace_indexer.index.queries.turns import TokenCounts
from agtrace_indexer.index.queries.usage import MEASURES, Among, ModelSums
from agtrace_schema.answers import Made, ModelTotals
from agtrace_schema.requests import Sort
from msgspec import Struct, field
from msgspec.structs import replace

from agtrace.sessions.prices import SEARCHES, ModelUsage, PriceTable
from agtrace.text.lines import LABEL, one_line

KINDS = TokenCounts._fields
"""The kinds of tokens; reasoning is part of the output, the others add up to the total."""

_ADDED = KINDS[:-1]
_DEARER = {"fast", "us", "sum"}


class Usage(Struct):
    """Sums over responses."""

    responses: int = 0
    figures: int = 0
    """Responses, and sums over several of them that the log has besides."""
    incomplete: int = 0
    """Responses with only placeholder figures in the log, or none."""
    tokens: dict[str, int] = field(default_factory=dict)
    """By kind; a kind that no log records is absent."""
    dollars: float = 0.0
    priced: int = 0
    """Responses that have a cost."""
    unpriced: int = 0
    """Tokens whose price isn't known."""
    faster: int = 0
    """Tokens of faster processing whose price isn't known: they are in the dollars at the standard one, the least."""
    told: int = 0
    """Responses whose cost is recorded in the log."""
    within: int = 0
    """Those of them whose cost is part of another's: of the whole session's, or of the one that started it."""
    untold: int = 0
    """Sessions in which a model answered but whose log has no figures at all."""
    obscure: int = 0
    """Sessions in whose logs something wasn't understood that may be usage."""
    models: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> int | None:
        """All tokens; None if no log has figures."""
        return sum(self.tokens.get(kind, 0) for kind in _ADDED) if self.tokens else None

    @property
    def tokens_made(self) -> Made | None:
        """How the total of tokens was made; None if no model answered."""
        if not self.tokens:
            return "unknown" if self.figures or self.untold else None
        if self.incomplete or self.untold or self.obscure:
            return "partial"
        return "exact"

    @property
    def cost(self) -> float | None:
        """US dollars; None if no response has a price."""
        return round(self.dollars, 4) if self.priced > self.within or self.faster else None

    @property
    def cost_made(self) -> Made | None:
        """How the cost was made; None if no model answered."""
        if self.cost is None:
            return "unknown" if self.figures or self.untold else None
        if self.priced < self.figures or self.incomplete or self.untold or self.obscure:
            return "partial"
        return "exact" if self.told == self.figures else "estimated"

    @property
    def totals(self) -> dict[str, Any]:
        """The total of tokens and the cost, by the names that answers have for them."""
        return {
            "total_tokens": self.total, "tokens_made": self.tokens_made,
            "cost_usd": self.cost, "cost_made": self.cost_made,
        }  # fmt: skip

    def by_model(self, most: int) -> list[ModelTotals]:
        """Return the models with the most tokens, largest first."""
        ranked = sorted(self.models.items(), key=lambda item: -(item[1].total or 0))
        return [model_totals(name, usage) for name, usage in ranked[:most]]

    def add(self, used: ModelSums, prices: PriceTable) -> None:
        """Add responses with the same rates."""
        for sums in (self, self.models.setdefault(used.model or "unknown", Usage())):
            sums.figures += used.responses
            sums.responses += 0 if "sum" in used.speed.split() else used.responses
            sums.incomplete += used.incomplete
            for kind, tokens in used.tokens._asdict().items():
                if tokens is not None:
                    sums.tokens[kind] = sums.tokens.get(kind, 0) + tokens
            sums._add_cost(used, prices)

    def include(self, other: Usage) -> None:
        """Add the usage of another session."""
        for name in self.__struct_fields__:
            if not isinstance(getattr(self, name), dict):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, tokens in other.tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + tokens
        for model, sums in other.models.items():
            self.models.setdefault(model, Usage()).include(sums)

    def _add_cost(self, used: ModelSums, prices: PriceTable) -> None:
        """Add the cost recorded in the log, if any, else list prices."""
        if used.told:
            self.dollars += used.cost_usd or 0
            self.priced += used.responses
            self.told += used.responses
            self.within += used.responses if used.cost_usd is None else 0
            return
        added = used.tokens[: len(_ADDED)]
        if all(tokens is None for tokens in added):
            return
        figures = [tokens or 0 for tokens in added]
        usage = ModelUsage(used.model or None, used.speed or None, used.context_class, used.responses, *figures)
        cost = prices.cost(usage)
        if cost is not None:
            self.dollars += cost
            self.priced += used.responses
        elif {*SEARCHES.sub("", used.speed).split()} <= _DEARER and (
            least := prices.cost(replace(usage, speed=None))
        ) is not None:
            self.dollars += least
            self.faster += sum(figures)
        else:
            self.unpriced += sum(figures)


def model_totals(name: str, usage: Usage) -> ModelTotals:
    """Return the usage of one model."""
    return ModelTotals(
        model=one_line(name, LABEL),
        responses=usage.responses,
        total_tokens=usage.total,
        tokens={kind: usage.tokens[kind] for kind in KINDS if usage.tokens.get(kind)} or None,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
    )


def usage_by(connection: sqlite3.Connection, prices: PriceTable, among: Among) -> dict[int, Usage]:
    """Return the usage of some sessions, summed by `among.by`."""
    result: dict[int, Usage] = defaultdict(Usage)
    for used in usage.by_model(connection, among):
        result[used.key].add(used, prices)
    for key, number in usage.without_figures(connection, among).items():
        result[key].untold += number
    for key, number in usage.not_understood(connection, among).items():
        result[key].obscure += number
    return result


def usage_of(connection: sqlite3.Connection, prices: PriceTable, sessions: Iterable[int]) -> dict[int, Usage]:
    """Return the usage of each of these sessions."""
    return usage_by(connection, prices, Among("session", sessions=tuple(sessions)))


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


def snapshot_now(connection: sqlite3.Connection) -> Snapshot:
    """Return the present state of the index."""
    return Snapshot(sessions.newest_row(connection), sessions.newest_event(connection))


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
    if sort in ("newest", "oldest"):
        oldest, most = sort == "oldest", limit + 1
        found = sessions.page(
            connection, filters, newest=snapshot.session, behind=behind, most=most, oldest_first=oldest
        )
        page = found[:limit]
        return SortedPage(page, [Place(one.started_at or 0, one.id) for one in page], len(found) > limit, {})
    starts = sessions.starts(connection, filters, newest=snapshot.session)
    among = Among("session", sessions=tuple(starts), newest_event=snapshot.event)
    used = usage_by(connection, prices, among) if sort == "cost" else {}
    measured = _costs(used) if sort == "cost" else _measured(connection, starts, sort, snapshot)
    keys = ((row, measured.get(row)) for row in starts)
    ranked = sorted(((-1 if key is None else key, starts[row], row) for row, key in keys), reverse=True)
    if behind is not None:
        last = (behind.key, starts.get(behind.row, _NEWEST), behind.row)
        ranked = [one for one in ranked if one < last]
    places = [Place(key, row) for key, _, row in ranked[:limit]]
    by_row = {session.id: session for session in sessions.in_rows(connection, (place.row for place in places))}
    more = len(ranked) > limit
    together = Usage()
    for usage_of_one in used.values():
        together.include(usage_of_one)
    at_least = together.cost_made in ("partial", "unknown")
    total = together.cost if sort == "cost" else _total(measured, sort)
    shown = [by_row[place.row] for place in places]
    return SortedPage(shown, places, more, measured, total, at_least)


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
    return usage.of_sessions(connection, rows, sort, newest_event=snapshot.event)


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
    return sum(known)
