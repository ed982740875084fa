"""Finds turns that contain every word of a query, each in any of the turn's events.

Only events that pass the filters count. A turn is a hit if each word is in at least one of them; it is represented by
the newest one with the longest word (of words of the same length, the first in the alphabet). Events outside of turns
are never hits.

As soon as one of its events has the longest word, a session is read whole: that decides about all its turns, wherever
in the session the words are, and its other blocks needn't be looked at.
"""

from __future__ import annotations

import sqlite3
from typing import cast

from agtrace_indexer.index.questions import matches
from agtrace_indexer.index.questions.candidates import candidates
from agtrace_indexer.index.questions.matches import Block, FoundEvent
from msgspec import field

from agtrace.search.matching import ContainsInTurn
from agtrace.search.scan import Scan

_ASKED_FOR = 4
"""How many words, in addition to the longest, are looked up in the word index."""

_MOST_BLOCKS = 2_000
"""A word that may be in more blocks than this hardly narrows the search down."""


class TurnScan(Scan):
    """A scan whose hits represent turns."""

    read: set[int] = field(default_factory=set)
    """The sessions that were read whole."""

    def hits(self, block: Block) -> list[FoundEvent]:
        """Return the hits of the block's session if this is the first block that has any; otherwise nothing."""
        session = block.session
        if session in self.read or not Scan.hits(self, block):
            return []
        self.read.add(session)
        return [row for row in self._turns_of(session) if self.lies_behind(row)]

    def _turns_of(self, session: int) -> list[FoundEvent]:
        """Return the events that represent the turns of a session that have all words."""
        matcher = cast(ContainsInTurn, self.matcher)
        having: list[set[int]] = [set() for _ in matcher.words]
        shown: dict[int, FoundEvent] = {}
        for block in matches.blocks_of_session(self.connection, session):
            self.deadline.check()
            numbers = matcher.of_each_word(self.text(block))
            if not any(numbers):
                continue
            first = block.first_index
            for row in self.not_own(self.events(block, set().union(*numbers), anywhere=True)):
                if row.turn is None:
                    continue
                for turns, found in zip(having, numbers, strict=True):
                    if row.event_index - first in found:
                        turns.add(row.turn)
                before = shown.get(row.turn)
                if row.event_index - first in numbers[0] and (before is None or _time(before) < _time(row)):
                    shown[row.turn] = row
        return [shown[turn] for turn in set.intersection(*having)]


def _time(row: FoundEvent) -> tuple[int, int]:
    return row.ts, row.id


def sessions_with(
    connection: sqlite3.Connection, matcher: ContainsInTurn, among: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the sessions, of some or of all, that may have every word but the longest; None if words don't narrow."""
    found = None if among is None else set(among)
    for word in matcher.words[1 : _ASKED_FOR + 1]:
        blocks = candidates(connection, word, thorough=False)
        if blocks is not None and len(blocks) <= _MOST_BLOCKS:
            sessions = matches.sessions_of(connection, blocks)
            found = sessions if found is None else found & sessions
    return None if found is None else tuple(sorted(found))
