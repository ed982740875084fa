"""Reading blocks for a search, in an order that lets it stop early.

The first blocks in time are read first: what is common fills its page there. Then the word index names the blocks that
may hold the text, and those are read, in the same order; without it all are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, field
from itertools import chain, islice

from agtrace_indexer.index.questions import matches
from agtrace_indexer.index.questions.candidates import candidates_of_all
from agtrace_indexer.index.questions.matches import Block, Filters, FoundEvent, Span
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.candidates import Places

from agtrace.search.deadline import Deadline
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

    def blocks(self) -> Iterator[tuple[Block, int | None]]:
        """The blocks that can hold hits, in order, and how many of them are left, where that is known."""
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
            places = candidates_of_all(self.connection, self.matcher.literals, thorough=thorough)
            if places is None:
                break
            self.places = {block: where for block, where in places.items() if block not in seen}
            chosen = self._among(self.places)
            for number, block in enumerate(chosen):
                if not thorough and number == _READ_ON and self._to_read(number, len(chosen)) > _WORTH_A_SECOND_LOOK:
                    break
                seen.add(block.id)
                yield block, len(chosen) - number
            else:
                return
        yield from ((block, None) for block in rest)

    def hits(self, block: Block) -> list[FoundEvent]:
        """The events of a block that answer the query, pass the filters and lie behind the place."""
        rows = self.events(block) if self.filters.are_of_events else None
        if rows == []:
            return []  # before the block is opened
        numbers = self.matcher.numbers(self.text(block), self.places.get(block.id), self.deadline)
        if not numbers:
            return []
        if rows is None:
            rows = self.events(block, numbers)
        else:
            rows = [row for row in rows if row.event_index - block.first_index in numbers]
        return self.not_own([row for row in rows if self.lies_behind(row)])

    def events(self, block: Block, numbers: Set[int] | None = None, *, anywhere: bool = False) -> list[FoundEvent]:
        """The events of a block, or those with some numbers, that pass the filters.

        Few of them lie before the place, unless they may lie anywhere.
        """
        span = Span(self._since, self._until) if anywhere else self._span
        return matches.events(self.connection, self.filters, block, self.snapshot, span, numbers)

    def text(self, block: Block) -> BlockText:
        """The texts of a block."""
        return matches.text(self.connection, block.id)

    def lies_behind(self, row: FoundEvent) -> bool:
        """Whether an event lies behind the place."""
        return self.order.rank(row.ts, row.id) < self.order.rank(*self.behind)

    def not_own(self, rows: list[FoundEvent]) -> list[FoundEvent]:
        """What is left without the calls to agtrace, where these aren't wanted; they are counted."""
        if not self.filters.without_own:
            return rows
        self.left_out.update(row.id for row in rows if row.own)
        return [row for row in rows if not row.own]

    def _to_read(self, read: int, blocks: int) -> int:
        """How many blocks more will probably be read until the page is full."""
        return min(read * self.page.most // self.page.found if self.page.found else blocks, blocks) - read

    def _to_probe(self, probed: int) -> int:
        """How many blocks more are worth reading before words are asked for."""
        if not probed:
            return _PROBED
        more = self._to_read(probed, _READ_ON)
        return max(more, _PROBED) if probed + more < _READ_ON else 0

    def _among(self, chosen: Collection[int]) -> list[Block]:
        """Those of some blocks that pass the filters, in order."""
        newest_first = self._newest_first
        found = matches.blocks(self.connection, self.filters, self._span, newest_first=newest_first, among=chosen)
        return list(found)

    @property
    def _newest_first(self) -> bool:
        return self.order is Order.NEWEST

    @property
    def _span(self) -> Span:
        """Between which times hits behind the place can lie."""
        if self.order is Order.NEWEST:
            return Span(self._since, min(self._until, self.behind.ts))
        return Span(max(self._since, self.behind.ts), self._until)

    @property
    def _since(self) -> int:
        return -_END_OF_TIME if self.filters.since is None else self.filters.since

    @property
    def _until(self) -> int:
        return _END_OF_TIME if self.filters.until is None else self.filters.until
