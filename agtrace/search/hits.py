"""Hits, their order, and which of them are kept for a page."""

from __future__ import annotations

import heapq
from collections import Counter
from enum import StrEnum
from typing import NamedTuple, Protocol

from agtrace_indexer.index.questions.matches import Block, FoundEvent
from msgspec import Struct

_END_OF_TIME = 1 << 62


class Place(NamedTuple):
    """The end of a page: right after the event with this time and id."""

    ts: int
    event_id: int


class Order(StrEnum):
    """The order of hits: by (time, event id), newest or oldest first.

    Whatever the order, the hit that comes first has the larger rank, so both are processed the same way.
    """

    NEWEST = "newest"
    OLDEST = "oldest"

    @property
    def start(self) -> Place:
        """The place before all hits."""
        return Place(self.sign * _END_OF_TIME, 0)

    @property
    def sign(self) -> int:
        """1 if later hits come first, otherwise -1."""
        return 1 if self is Order.NEWEST else -1

    def rank(self, ts: int, event_id: int) -> tuple[int, int]:
        """Return the rank of a hit: the larger, the earlier in the results."""
        return self.sign * ts, self.sign * event_id

    def first_of(self, block: Block) -> int:
        """Return the highest rank in time that a hit in this block or a later one can have."""
        return self.sign * (block.t1 if self is Order.NEWEST else block.t0)


class Hit(Struct, frozen=True):
    """An event that matches the query."""

    session_row: int
    event_index: int
    event_id: int
    ts: int

    @property
    def place(self) -> Place:
        """Its place in the order of results."""
        return Place(self.ts, self.event_id)


class Kept(Protocol):
    """The hits kept out of those that a scan has seen."""

    most: int
    """The number of hits that fill the page."""

    @property
    def found(self) -> int:
        """The number of hits seen."""

    def add(self, rows: list[FoundEvent]) -> None:
        """Add hits."""

    def settled(self, rank: int) -> bool:
        """Whether hits of at most this rank in time can no longer change the page."""


class _Ranked(NamedTuple):
    ts: int
    """Multiplied by the sign of the order, as is the id."""
    event_id: int
    session_row: int
    event_index: int

    def hit(self, order: Order) -> Hit:
        return Hit(self.session_row, self.event_index, order.sign * self.event_id, order.sign * self.ts)


def _ranked(order: Order, row: FoundEvent) -> _Ranked:
    return _Ranked(*order.rank(row.ts, row.id), row.session, row.event_index)


class First:
    """The first hits in an order."""

    def __init__(self, order: Order, most: int) -> None:
        self.most, self.found = most, 0
        self._order = order
        self._heap: list[_Ranked] = []

    def add(self, rows: list[FoundEvent]) -> None:
        """Add hits."""
        for row in rows:
            hit = _ranked(self._order, row)
            heapq.heappush(self._heap, hit) if len(self._heap) < self.most else heapq.heappushpop(self._heap, hit)
        self.found += len(rows)

    def settled(self, rank: int) -> bool:
        """Whether the page is full of hits that come before any of this rank in time."""
        return len(self._heap) == self.most and self._heap[0].ts > rank

    @property
    def hits(self) -> list[Hit]:
        """The kept hits, in order."""
        return [hit.hit(self._order) for hit in sorted(self._heap, reverse=True)]


class FirstOfSessions:
    """The first hit of every session seen, and its number of hits; the page holds the first hits after a place."""

    def __init__(self, order: Order, most: int, behind: Place, seen: int) -> None:
        self.most = most + seen
        self._size = most
        self.counts: Counter[int] = Counter()
        """Session row -> number of its hits seen so far."""
        self._order, self._behind = order, order.rank(*behind)
        self._first: dict[int, _Ranked] = {}
        self._page: list[_Ranked] | None = None

    @property
    def found(self) -> int:
        """The number of sessions seen, including those before the place."""
        return len(self._first)

    def add(self, rows: list[FoundEvent]) -> None:
        """Add hits."""
        for row in rows:
            hit = _ranked(self._order, row)
            self.counts[hit.session_row] += 1
            if hit.session_row not in self._first or hit > self._first[hit.session_row]:
                self._first[hit.session_row] = hit
                self._page = None

    def settled(self, rank: int) -> bool:
        """Whether the page is full of sessions whose first hit comes before any of this rank in time."""
        page = self._in_order()
        return len(page) == self._size and page[-1].ts > rank

    @property
    def hits(self) -> list[Hit]:
        """The first hit of each session on the page, in order."""
        return [hit.hit(self._order) for hit in self._in_order()]

    def _in_order(self) -> list[_Ranked]:
        if self._page is None:
            behind = (hit for hit in self._first.values() if hit[:2] < self._behind)
            self._page = heapq.nlargest(self._size, behind)
        return self._page
