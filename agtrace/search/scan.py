"""Reading blocks for a search, in an order that lets it stop early.

The first blocks in time are read first: what is common fills its page there. Then the word index names the blocks that
may hold the text, and those are read, in the same order; without it all are.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from agtrace_indexer.texts.blocks import BlockText

from agtrace.search.candidates import Places, candidates_of_all
from agtrace.search.deadline import Deadline
from agtrace.search.filters import Filters
from agtrace.search.hits import Kept, Order, Place
from agtrace.search.matching import Matcher

_PROBED = 16
"""Blocks that are read before words are asked for: common texts fill their page there, in 2 ms."""

_READ_ON = 256
"""Blocks that are read without asking for words if the hits come so often that the page is full by then: 20 ms."""

_WORTH_A_SECOND_LOOK = 1_000
"""Blocks to be read from which on it is quicker to ask the word index thoroughly, which takes up to 100 ms."""

_FEW = 64
"""Blocks, beyond those, that are read without asking for words where there are no more."""

_END_OF_TIME = 1 << 62

_BLOCKS = """
SELECT b.id, b.session_id, b.first_index, b.event_count, b.t0, b.t1
FROM block b {index}
WHERE b.t0 <= :until AND b.t1 >= :since {conditions}
ORDER BY {order}
"""

_IN_ORDER = {Order.NEWEST: "b.t1 DESC, b.id DESC", Order.OLDEST: "b.t0, b.id"}

_EVENTS = """
SELECT e.id, e.session_id, e.event_index, e.ts, e.turn_index, e.own
FROM event e
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last
  AND e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by > :snapshot)
  AND e.ts BETWEEN :since AND :until {conditions}
"""


@dataclass(slots=True)
class Scan:
    """The blocks that can hold hits, and the hits of each."""

    connection: sqlite3.Connection
    matcher: Matcher
    filters: Filters
    snapshot: int
    order: Order
    behind: Place
    deadline: Deadline
    page: Kept
    """The hits so far: how often they come tells how to go on."""
    places: Places = field(default_factory=dict)
    """Where in which blocks the query can stand, if the word index was asked."""
    left_out: set[int] = field(default_factory=set)
    """The ids of events that answer the query and are left out: calls to agtrace itself."""

    def blocks(self) -> Iterator[tuple[sqlite3.Row, int | None]]:
        """The blocks that can hold hits, in order, and how many of them are left, where that is known."""
        ordered = self._select(self._way)
        first = ordered.fetchmany(_PROBED + _FEW)
        if len(first) < _PROBED + _FEW:
            yield from ((block, len(first) - number) for number, block in enumerate(first))
            return
        rest = chain(first, ordered)
        seen: set[int] = set()
        while (count := self._to_probe(len(seen))) and (probed := list(islice(rest, count))):
            seen.update(block["id"] for block in probed)
            yield from ((block, None) for block in probed)
        for thorough in (False, True) if self.matcher.literals else ():
            places = candidates_of_all(self.connection, self.matcher.literals, thorough=thorough)
            if places is None:
                break
            self.places = {block: where for block, where in places.items() if block not in seen}
            chosen = self._select("NOT INDEXED", list(self.places)).fetchall()
            for number, block in enumerate(chosen):
                if not thorough and number == _READ_ON and self._to_read(number, len(chosen)) > _WORTH_A_SECOND_LOOK:
                    break
                seen.add(block["id"])
                yield block, len(chosen) - number
            else:
                return
        yield from ((block, None) for block in rest)

    def hits(self, block: sqlite3.Row) -> list[sqlite3.Row]:
        """The events of a block that answer the query, pass the filters and lie behind the place."""
        first, last = block["first_index"], block["first_index"] + block["event_count"] - 1
        rows = self.events(block, first, last) if self.filters.of_events()[0] else None
        if rows == []:
            return []  # before the block is opened
        numbers = self.matcher.numbers(self.text(block), self.places.get(block["id"]), self.deadline)
        if not numbers:
            return []
        if rows is None:
            rows = self.events(block, first + min(numbers), first + max(numbers))
        return self.not_own([row for row in rows if row["event_index"] - first in numbers and self.lies_behind(row)])

    def events(self, block: sqlite3.Row, first: int, last: int, *, anywhere: bool = False) -> list[sqlite3.Row]:
        """The events of a block between two indices that pass the filters; few before the place unless anywhere."""
        conditions, arguments = self.filters.of_events()
        since, until = (self._since, self._until) if anywhere else self._span
        named = {
            "session": block["session_id"],
            "first": first,
            "last": last,
            "snapshot": self.snapshot,
            "since": since,
            "until": until,
            **arguments,
        }
        return self.connection.execute(_EVENTS.format(conditions=_and(conditions)), named).fetchall()

    def text(self, block: sqlite3.Row) -> BlockText:
        """The texts of a block."""
        row = self.connection.execute("SELECT ends, text FROM block_data WHERE block_id = ?", (block["id"],)).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("a block has no text")
        return BlockText.of(*row)

    def lies_behind(self, row: sqlite3.Row) -> bool:
        """Whether an event lies behind the place."""
        return self.order.rank(row["ts"], row["id"]) < self.order.rank(*self.behind)

    def not_own(self, rows: list[sqlite3.Row]) -> list[sqlite3.Row]:
        """What is left without the calls to agtrace, where these aren't wanted; they are counted."""
        if not self.filters.without_own:
            return rows
        self.left_out.update(row["id"] for row in rows if row["own"])
        return [row for row in rows if not row["own"]]

    def _to_read(self, read: int, blocks: int) -> int:
        """How many blocks more will probably be read until the page is full."""
        return min(read * self.page.most // self.page.found if self.page.found else blocks, blocks) - read

    def _to_probe(self, probed: int) -> int:
        """How many blocks more are worth reading before words are asked for."""
        if not probed:
            return _PROBED
        more = self._to_read(probed, _READ_ON)
        return max(more, _PROBED) if probed + more < _READ_ON else 0

    def _select(self, way: str, chosen: list[int] | None = None) -> sqlite3.Cursor:
        """The blocks that pass the filters, in order."""
        conditions, arguments = self.filters.of_blocks()
        since, until = self._span
        arguments |= {"since": since, "until": until, "chosen": json.dumps(chosen)}
        if chosen is not None:
            conditions.append("b.id IN (SELECT value FROM json_each(:chosen))")
        query = _BLOCKS.format(index=way, conditions=_and(conditions), order=_IN_ORDER[self.order])
        return self.connection.execute(query, arguments)

    @property
    def _way(self) -> str:
        """How SQLite is to go through the blocks: by their time, unless one session's are few."""
        if self.filters.session_row is not None:
            return "INDEXED BY block_place"
        return "INDEXED BY block_newest" if self.order is Order.NEWEST else "NOT INDEXED"

    @property
    def _span(self) -> tuple[int, int]:
        """Between which times hits behind the place can lie."""
        if self.order is Order.NEWEST:
            return self._since, min(self._until, self.behind.ts)
        return max(self._since, self.behind.ts), self._until

    @property
    def _since(self) -> int:
        return -_END_OF_TIME if self.filters.since is None else self.filters.since

    @property
    def _until(self) -> int:
        return _END_OF_TIME if self.filters.until is None else self.filters.until


def _and(conditions: list[str]) -> str:
    return "".join(f" AND {condition}" for condition in conditions)
