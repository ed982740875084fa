"""The events whose text matches a query, newest or oldest first: the result equals a scan of all stored events.

Blocks are read in an order that lets it stop early. The first ones in time are read first: a common text fills its page
there. Then the word index names the blocks that may hold the text, and those are read in the same order; if it can't,
all blocks are read. Reading stops when no remaining block can hold a hit that belongs on the page.
"""

from __future__ import annotations

import heapq
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, islice
from typing import NamedTuple

from agtrace_indexer.index.queries import matches
from agtrace_indexer.index.queries.candidates import candidates_of_all
from agtrace_indexer.index.queries.matches import Block, EventFilters, FoundEvent, Span
from agtrace_indexer.index.queries.sessions import newest_event
from msgspec import Struct
from msgspec.structs import replace

from agtrace.search.matching import Deadline, Matcher
from agtrace.settings.limits import STEPS_BETWEEN_LOOKS, stopped

_END_OF_TIME = 1 << 62

_PROBED = 16
"""Blocks read before the word index is consulted: common texts fill their page there, in 2 ms."""

_FEW = 64
"""Blocks beyond the first that are read without the word index if there are no more."""

_COUNTED_ON = 32
"""Blocks that may be read beyond a full page if that makes the count of hits exact."""


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


class Scan(Struct):
    """The blocks that can hold hits, and the hits of each."""

    connection: sqlite3.Connection
    matcher: Matcher
    filters: EventFilters
    snapshot: int
    order: Order
    behind: Place
    deadline: Deadline

    def blocks(self) -> Iterator[tuple[Block, int | None]]:
        """Yield the blocks that can hold hits, in order, each with the number of blocks left if that is known."""
        ordered = matches.blocks(self.connection, self.filters, self._span, newest_first=self._newest_first)
        first = list(islice(ordered, _PROBED + _FEW))
        known: list[Block] | None = first
        if len(first) == _PROBED + _FEW:
            yield from ((block, None) for block in first[:_PROBED])
            known = self._narrowed({block.id for block in first[:_PROBED]})
        if known is None:
            yield from ((block, None) for block in chain(first[_PROBED:], ordered))
        else:
            yield from ((block, len(known) - number) for number, block in enumerate(known))

    def _narrowed(self, seen: Set[int]) -> list[Block] | None:
        """Return the blocks that may contain the query, without some, in order; None if the word index can't tell."""
        literals = self.matcher.literals
        named = candidates_of_all(self.connection, literals) if literals else None
        if named is None:
            return None
        newest_first, among = self._newest_first, named - seen
        found = matches.blocks(self.connection, self.filters, self._span, newest_first=newest_first, among=among)
        return list(found)

    def hits(self, block: Block) -> list[FoundEvent]:
        """Return the events of a block that match the query, pass the filters and come after the place."""
        rows = self._events(block) if self.filters.are_of_events else None
        if rows == []:
            return []  # without opening the block
        numbers = self.matcher.numbers(matches.text(self.connection, block.id), self.deadline)
        if not numbers:
            return []
        if rows is None:
            rows = self._events(block, numbers)
        else:
            rows = [row for row in rows if row.event_index - block.first_index in numbers]
        return [row for row in rows if self.order.rank(row.ts, row.id) < self.order.rank(*self.behind)]

    def _events(self, block: Block, numbers: Set[int] | None = None) -> list[FoundEvent]:
        """Return the events of a block that pass the filters, or those of them with certain numbers.

        A few of them may come before the place.
        """
        return matches.events(self.connection, self.filters, block, self.snapshot, self._span, numbers)

    @property
    def _newest_first(self) -> bool:
        return self.order is Order.NEWEST

    @property
    def _span(self) -> Span:
        """The span of time in which hits after the place can be."""
        if self.order is Order.NEWEST:
            return Span(self._since, min(self._until, self.behind.ts))
        return Span(max(self._since, self.behind.ts), self._until)

    @property
    def _since(self) -> int:
        return -_END_OF_TIME if self.filters.since is None else self.filters.since

    @property
    def _until(self) -> int:
        return _END_OF_TIME if self.filters.until is None else self.filters.until


def snapshot_of(connection: sqlite3.Connection) -> int:
    """Return the current snapshot of the index: the id of its newest event."""
    return newest_event(connection)


class Hits(Struct, frozen=True):
    """A page of hits, in order."""

    hits: list[Hit]
    more: bool
    found: int
    """The number of hits after the given place that the scan has seen."""
    complete: bool
    """Whether `found` counts all of them."""


class SessionHits(Struct, frozen=True):
    """A page of sessions with hits, ordered by the first hit of each."""

    hits: list[Hit]
    """The first hit of each session."""
    more: bool
    found: int
    """The number of sessions with hits that the scan has seen, including those before the given place."""
    complete: bool
    counts: dict[int, int]
    """Session row -> number of its hits."""


class Question(Struct, frozen=True):
    """A query on one snapshot of the index, for use inside one read transaction.

    Its methods raise `SearchTimeout` when the deadline passes.
    """

    connection: sqlite3.Connection
    matcher: Matcher
    filters: EventFilters
    snapshot: int
    order: Order = Order.NEWEST

    def page(self, limit: int, behind: Place | None, deadline: Deadline) -> Hits:
        """Return the first `limit` hits after a place."""
        kept = First(self.order, limit + 1)
        complete = self._read(kept, behind or self.order.start, deadline)
        return Hits(kept.hits[:limit], len(kept.hits) > limit, kept.found, complete)

    def sessions(self, limit: int, behind: Place | None, seen: int, deadline: Deadline) -> SessionHits:
        """Return the first `limit` sessions whose first hit comes after a place; `seen` sessions come before it.

        A session is placed by its first hit, so everything before the place is scanned again.
        """
        kept = FirstOfSessions(self.order, limit + 1, behind or self.order.start, seen)
        complete = self._read(kept, self.order.start, deadline)
        hits = kept.hits[:limit]
        counts = kept.counts if complete else self._counts(hits, deadline)
        shown = {hit.session_row: counts[hit.session_row] for hit in hits}
        return SessionHits(hits, len(kept.hits) > limit, kept.found, complete, shown)

    def _counts(self, hits: list[Hit], deadline: Deadline) -> Counter[int]:
        of_page = replace(self.filters, sessions=tuple(hit.session_row for hit in hits))
        kept = FirstOfSessions(self.order, sys.maxsize, self.order.start, 0)
        replace(self, filters=of_page)._read(kept, self.order.start, deadline)
        return kept.counts

    def _read(self, kept: First | FirstOfSessions, behind: Place, deadline: Deadline) -> bool:
        """Add hits to `kept` until the page is settled; return whether all blocks were read."""
        scan = Scan(self.connection, self.matcher, self.filters, self.snapshot, self.order, behind, deadline)
        with interrupted(self.connection, deadline):
            for block, left in scan.blocks():
                highest = self.order.sign * (block.t1 if self.order is Order.NEWEST else block.t0)
                if kept.settled(highest) and (left is None or left > _COUNTED_ON):
                    return False
                deadline.check()
                kept.add(scan.hits(block))
        return True


@contextmanager
def interrupted(connection: sqlite3.Connection, deadline: Deadline) -> Iterator[None]:
    """Make SQLite give up at a deadline, whatever it is doing, and raise `SearchTimeout`."""
    connection.set_progress_handler(lambda: deadline.passed, STEPS_BETWEEN_LOOKS)
    try:
        yield
    except sqlite3.OperationalError:
        deadline.check()
        raise
    finally:
        connection.set_progress_handler(stopped, STEPS_BETWEEN_LOOKS)
