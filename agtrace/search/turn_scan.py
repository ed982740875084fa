"""Turns in which every word of a query stands, each in any of the turn's events.

Of the events that pass the filters: a turn is a hit where each word stands in one of them at least, and is shown by the
newest that has the longest word (of words of one length the first in the alphabet). What belongs to no turn is no hit.

A session is read whole as soon as one of its events has the longest word: what its turns have in common with the query
is known then, wherever in the session the words stand, and its other blocks needn't be looked at.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import cast

from agtrace.search.candidates import candidates
from agtrace.search.matching import ContainsInTurn
from agtrace.search.scan import Scan

_ASKED_FOR = 4
"""Words that the word index is asked for, beside the longest."""

_MOST_BLOCKS = 2_000
"""Blocks that may hold a word: where there are more of them it narrows little down."""

_BLOCKS_OF_SESSION = (
    "SELECT id, session_id, first_index, event_count FROM block WHERE session_id = ? ORDER BY first_index"
)


@dataclass(slots=True)
class TurnScan(Scan):
    """A scan whose hits stand for turns."""

    read: set[int] = field(default_factory=set)
    """The sessions that were read whole."""

    def hits(self, block: sqlite3.Row) -> list[sqlite3.Row]:
        """The hits of the block's session, if the block is the first one that tells of any; none of any other block."""
        session = block["session_id"]
        if session in self.read or not Scan.hits(self, block):
            return []
        self.read.add(session)
        return [row for row in self._turns_of(session) if self.lies_behind(row)]

    def _turns_of(self, session: int) -> list[sqlite3.Row]:
        """The events that stand for the turns of a session that have all words."""
        matcher = cast(ContainsInTurn, self.matcher)
        having: list[set[int]] = [set() for _ in matcher.words]
        shown: dict[int, sqlite3.Row] = {}
        for block in self.connection.execute(_BLOCKS_OF_SESSION, (session,)).fetchall():
            self.deadline.check()
            numbers = matcher.of_each_word(self.text(block))
            if not any(numbers):
                continue
            first = block["first_index"]
            rows = self.events(block, first, first + block["event_count"] - 1, anywhere=True)
            saying = [row for row in rows if any(row["event_index"] - first in found for found in numbers)]
            for row in self.not_own(saying):
                if row["turn_index"] is None:
                    continue
                for turns, found in zip(having, numbers, strict=True):
                    if row["event_index"] - first in found:
                        turns.add(row["turn_index"])
                before = shown.get(row["turn_index"])
                if row["event_index"] - first in numbers[0] and (before is None or _time(before) < _time(row)):
                    shown[row["turn_index"]] = row
        return [shown[turn] for turn in set.intersection(*having)]


def _time(row: sqlite3.Row) -> tuple[int, int]:
    return row["ts"], row["id"]


def sessions_with(
    connection: sqlite3.Connection, matcher: ContainsInTurn, among: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """The sessions that may have every word but the longest, of some or of all; None where words don't tell."""
    found = None if among is None else set(among)
    for word in matcher.words[1 : _ASKED_FOR + 1]:
        blocks = candidates(connection, word, thorough=False)
        if blocks is not None and len(blocks) <= _MOST_BLOCKS:
            sessions = _sessions_of(connection, blocks)
            found = sessions if found is None else found & sessions
    return None if found is None else tuple(sorted(found))


def _sessions_of(connection: sqlite3.Connection, blocks: dict[int, list[int] | None]) -> set[int]:
    chosen = ", ".join(map(str, blocks))
    return {row[0] for row in connection.execute(f"SELECT DISTINCT session_id FROM block WHERE id IN ({chosen})")}
