"""Search: the events whose searchable text matches the query, newest or oldest first.

Reading stops when no remaining block can hold a hit that belongs on the page (`scan` describes the order in which
blocks are read). The result equals a scan of all stored events, ordered by (time, event id).
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.matches import newest_event
from msgspec import Struct
from msgspec.structs import replace

from agtrace.problems import SearchTimeout
from agtrace.search.deadline import Deadline
from agtrace.search.hits import First, FirstOfSessions, Hit, Kept, Order, Place
from agtrace.search.matching import Contains, ContainsInTurn, Matcher
from agtrace.search.scan import Scan
from agtrace.search.turn_scan import TurnScan, sessions_with

_COUNTED_ON = 32
"""Blocks that may be read beyond a full page if that makes the count of hits exact."""

_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 50_000
"""Steps of SQLite's virtual machine: about 1 ms."""

_FOR_COUNTS = 2.0
"""Seconds for counting the hits of the sessions on a page."""

__all__ = ["EventFilters", "Hit", "Hits", "Order", "Place", "Question", "SessionHits", "search", "snapshot_of"]


class Hits(Struct, frozen=True):
    """A page of hits, in order."""

    hits: list[Hit]
    more: bool
    found: int
    """The number of hits after the given place that the scan has seen."""
    complete: bool
    """Whether `found` counts all of them."""
    left_out: int = 0
    """The number of calls to agtrace itself, and of their results, that the scan has seen and left out."""


class SessionHits(Struct, frozen=True):
    """A page of sessions with hits, ordered by the first hit of each."""

    hits: list[Hit]
    """The first hit of each session."""
    more: bool
    found: int
    """The number of sessions with hits that the scan has seen, including those before the given place."""
    complete: bool
    left_out: int
    counts: dict[int, int]
    """Session row -> number of its hits."""
    counts_exact: bool


def snapshot_of(connection: sqlite3.Connection) -> int:
    """Return the current snapshot of the index: the id of its newest event."""
    return newest_event(connection)


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
        scan, complete = self._read(kept, behind or self.order.start, deadline)
        return Hits(kept.hits[:limit], len(kept.hits) > limit, kept.found, complete, len(scan.left_out))

    def sessions(self, limit: int, behind: Place | None, seen: int, deadline: Deadline) -> SessionHits:
        """Return the first `limit` sessions whose first hit comes after a place; `seen` sessions come before it.

        A session is placed by its first hit, so everything before the place is scanned again.
        """
        kept = FirstOfSessions(self.order, limit + 1, behind or self.order.start, seen)
        scan, complete = self._read(kept, self.order.start, deadline)
        hits = kept.hits[:limit]
        counts, exact = (kept.counts, True) if complete else self._counts(hits, deadline)
        shown = {hit.session_row: max(counts[hit.session_row], kept.counts[hit.session_row]) for hit in hits}
        return SessionHits(hits, len(kept.hits) > limit, kept.found, complete, len(scan.left_out), shown, exact)

    def count(self, most: int, deadline: Deadline) -> tuple[int, bool]:
        """Return about how many hits there are, and whether that is exact.

        It may not be beyond `most`, or if time runs out.
        """
        kept, complete = First(self.order, most), False
        with suppress(SearchTimeout):
            _, complete = self._read(kept, self.order.start, deadline)
        return kept.found, complete

    def _counts(self, hits: list[Hit], deadline: Deadline) -> tuple[Counter[int], bool]:
        """Count the hits of some sessions; also return whether there was time for all of them."""
        of_page = replace(self.filters, sessions=tuple(hit.session_row for hit in hits))
        kept, complete = FirstOfSessions(self.order, sys.maxsize, self.order.start, 0), False
        with suppress(SearchTimeout):
            within = deadline.at_most(min(_FOR_COUNTS, deadline.left / 2))
            _, complete = replace(self, filters=of_page)._read(kept, self.order.start, within)
        return kept.counts, complete

    def _read(self, kept: Kept, behind: Place, deadline: Deadline) -> tuple[Scan, bool]:
        """Add hits to `kept` until the page is settled; return the scan, and whether it read to the end."""
        filters = self.filters
        with _interrupted(self.connection, deadline):
            if isinstance(self.matcher, ContainsInTurn):
                sessions = sessions_with(self.connection, self.matcher, filters.sessions)
                filters = replace(filters, sessions=sessions)
            kind = TurnScan if isinstance(self.matcher, ContainsInTurn) else Scan
            scan = kind(self.connection, self.matcher, filters, self.snapshot, self.order, behind, deadline, kept)
            for block, left in scan.blocks():
                if kept.settled(self.order.first_of(block)) and (left is None or left > _COUNTED_ON):
                    return scan, False
                deadline.check()
                kept.add(scan.hits(block))
        return scan, True


def search(
    connection: sqlite3.Connection,
    query: str | Matcher,
    filters: EventFilters,
    limit: int,
    *,
    snapshot: int,
    order: Order = Order.NEWEST,
    behind: Place | None = None,
    deadline: Deadline | None = None,
) -> Hits:
    """Find the first `limit` events of the snapshot that match the query, after a place.

    A string is searched for literally; an empty one finds every event that passes the filters. Call it inside one
    read transaction. Raises `SearchTimeout` when the deadline passes.
    """
    matcher = Contains(query) if isinstance(query, str) else query
    return Question(connection, matcher, filters, snapshot, order).page(limit, behind, deadline or Deadline())


@contextmanager
def _interrupted(connection: sqlite3.Connection, deadline: Deadline) -> Iterator[None]:
    """Make SQLite give up at a deadline, whatever it is doing, and raise `SearchTimeout`."""
    connection.set_progress_handler(lambda: deadline.passed, _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK)
    try:
        yield
    except sqlite3.OperationalError:
        deadline.check()
        raise
    finally:
        connection.set_progress_handler(None, 0)
