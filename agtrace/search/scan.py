"""Reads blocks for a search, in an order that lets it stop early.

The first blocks in time are read first: a common text fills its page there. Then the word index names the blocks that
may hold the text, and those are read in the same order; if it can't, all blocks are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Set
from itertools import chain, islice

from agtrace_indexer.index.questions import matches
from agtrace_indexer.index.questions.candidates import candidates_of_all
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.matches import Block, FoundEvent, Span
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.candidates import Places
from msgspec import Struct, field

from agtrace.search.deadline import Deadline
from agtrace.search.hits import Kept, Order, Place
from agtrace.search.matching import Matcher

_PROBED = 16
"""Blocks read before the word index is consulted: common texts fill their page there, in 2 ms."""

_PROBED_ON = 64
"""Blocks read without the word index if hits are frequent enough to fill the page by then: 5 ms."""

_READ_ON = 256
"""Blocks read after a first look at the word index before a second one may be worth it: 20 ms."""

_WORTH_A_SECOND_LOOK = 1_000
"""With more blocks left than this, a thorough look at the word index (up to 100 ms) is quicker than reading them."""

_FEW = 64
"""Blocks beyond the first that are read without the word index if there are no more."""

_END_OF_TIME = 1 << 62


class Scan(Struct):
    """The blocks that can hold hits, and the hits of each."""

    connection: sqlite3.Connection
    matcher: Matcher
    filters: EventFilters
    snapshot: int
    order: Order
    behind: Place
    deadline: Deadline
    page: Kept
    """The hits so far: their frequency decides how the scan goes on."""
    places: Places = field(default_factory=dict)
    """The blocks that may contain the query, and where in them, if the word index was consulted."""
    left_out: set[int] = field(default_factory=set)
    """The ids of events that match the query but are left out: calls to agtrace itself."""

    def blocks(self) -> Iterator[tuple[Block, int | None]]:
        """Yield the blocks that can hold hits, in order, each with the number of blocks left if that is known."""
        ordered = matches.blocks(self.connection, self.filters, self._span, newest_first=self._newest_first)
        first = list(islice(ordered, _PROBED + _FEW))
        if len(first) < _PROBED + _FEW:
            yield from ((block, len(first) - number) for number, block in enumerate(first))
            return
        rest = chain(first, ordered)
        seen: set[int] = set()
        while (count := self._to_probe(len(seen))) and (probed := list(islice(rest, count))):
            seen.update(block.id for block in probed)
            yield from ((block, None) for block in probed)
        for thorough in (False, True) if self.matcher.literals else ():
            places, final = candidates_of_all(self.connection, self.matcher.literals, thorough=thorough)
            if places is None:
                break
            self.places = places
            chosen = self._among({*places} - seen)
            for number, block in enumerate(chosen):
                if not final and number == _READ_ON and self._to_read(number, len(chosen)) > _WORTH_A_SECOND_LOOK:
                    break
                seen.add(block.id)
                yield block, len(chosen) - number
            else:
                return
        yield from ((block, None) for block in rest)

    def hits(self, block: Block) -> list[FoundEvent]:
        """Return the events of a block that match the query, pass the filters and come after the place."""
        rows = self.events(block) if self.filters.are_of_events else None
        if rows == []:
            return []  # without opening the block
        numbers = self.matcher.numbers(self.text(block), self.places.get(block.id), self.deadline)
        if not numbers:
            return []
        if rows is None:
            rows = self.events(block, numbers)
        else:
            rows = [row for row in rows if row.event_index - block.first_index in numbers]
        return self.not_own([row for row in rows if self.lies_behind(row)])

    def events(self, block: Block, numbers: Set[int] | None = None, *, anywhere: bool = False) -> list[FoundEvent]:
        """Return the events of a block that pass the filters, or those of them with certain numbers.

        With `anywhere` events before the place are included; otherwise only a few of them may be.
        """
        span = Span(self._since, self._until) if anywhere else self._span
        return matches.events(self.connection, self.filters, block, self.snapshot, span, numbers)

    def text(self, block: Block) -> BlockText:
        """Return the texts of a block."""
        return matches.text(self.connection, block.id)

    def lies_behind(self, row: FoundEvent) -> bool:
        """Whether an event comes after the place."""
        return self.order.rank(row.ts, row.id) < self.order.rank(*self.behind)

    def not_own(self, rows: list[FoundEvent]) -> list[FoundEvent]:
        """Leave out calls to agtrace itself, unless they are wanted, and note them in `left_out`."""
        if not self.filters.without_own:
            return rows
        self.left_out.update(row.id for row in rows if row.own)
        return [row for row in rows if not row.own]

    def _to_read(self, read: int, blocks: int) -> int:
        """Estimate how many more blocks will be read until the page is full."""
        return min(read * self.page.most // self.page.found if self.page.found else blocks, blocks) - read

    def _to_probe(self, probed: int) -> int:
        """Return how many more blocks are worth reading before the word index is consulted."""
        if not probed:
            return _PROBED
        more = self._to_read(probed, _PROBED_ON)
        return max(more, _PROBED) if probed + more < _PROBED_ON else 0

    def _among(self, chosen: Collection[int]) -> list[Block]:
        """Return the blocks out of these that pass the filters, in order."""
        newest_first = self._newest_first
        found = matches.blocks(self.connection, self.filters, self._span, newest_first=newest_first, among=chosen)
        return list(found)

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
