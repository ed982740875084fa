"""How sessions are scored for the words of a query: a session is as good as its best events, each next one worth half.

The score of an event: the weights of the query's words that it holds (rare words weigh more), by who speaks and how
much is said, and some of what stands within a few events, or in the session's title; the more of the query is there,
the more all of it counts. Sums over all events would let long sessions win everything.

The words that an event holds are the bits of a number, its mask: bit n is the n-th word of the query.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.texts.ranked_words import Voice
from msgspec import Struct, field

from agtrace.text.focus.words import STOP_WORDS

_VOICES = {Voice.HUMAN: 3.0, Voice.MODEL: 2.0, Voice.CALL: 1.5, Voice.ERROR: 0.8, Voice.OUTPUT: 0.5, Voice.NOTICE: 2.0}
_LOUDEST = max(_VOICES.values())
_SATURATION, _LENGTH = 1.2, 0.6
"""k1 and b of BM25: how soon more of the same says nothing new, how much long texts are discounted."""

_NEAR, _OF_NEAR = 12, 0.35
"""Within how many events other words of the query count, and how much of them."""

_OF_TITLE = 0.3

_OF_LITERAL = 2
"""How much more an event counts that contains the whole query as a text, whoever speaks in it, and however long it is:
one of them is worth more than several events with the words."""

_TELLING = 0.4
"""The share of the rarest word's weight from which it matters that a session lacks a word."""

_BEST = 3
"""Events of a session that count, each half as much as the one before."""


class RankedHit(Struct, frozen=True):
    """An event with its score."""

    event: RankedEvent
    score: float
    words: tuple[str, ...]
    """The query's words that it holds."""


class RankedSession(Struct, frozen=True):
    """A session with its hits, the best first."""

    session_row: int
    score: float
    share: float
    """How much of the query its best event and what stands around it hold, by weight: 0 to 1."""
    hits: list[RankedHit]


class Ranked(NamedTuple):
    """What a query found."""

    sessions: list[RankedSession]
    """The best first."""
    nowhere: tuple[str, ...] = ()
    """The words of the query that no event holds."""
    sure: bool = False
    """Whether the best one holds enough of the query to be an answer."""
    lacking: tuple[str, ...] = ()
    """If it doesn't: the telling words that it lacks, though others have them."""


def weight(events: int, holding: int) -> float:
    """The weight of a word that so many of the events hold: inverse document frequency."""
    return math.log(1 + (events - holding + 0.5) / (holding + 0.5))


class Scoring(Struct, frozen=True):
    """How sessions are scored for one query."""

    words: Sequence[str]
    weights: Sequence[float]
    total: float
    """The weight of the whole query, with what isn't found of it."""
    average: float
    """The average number of words of an event."""
    held: Mapping[int, int]
    """The mask of each event, by its id."""
    literal: Collection[int] = ()
    """The events that contain the whole query as a text."""
    _known: dict[int, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    """The weights and the words of the masks that occurred: few, as thousands of events are scored."""

    def session(self, row: int, events: list[RankedEvent], title: int = 0) -> RankedSession:
        """The score of a session by its events, given in their order, and the words of its title, as a mask."""
        masks = [self.held[event.id] for event in events]
        scored = [
            self._event(event, mask, near, title)
            for event, mask, near in zip(events, masks, _near(events, masks), strict=True)
        ]
        scored.sort(key=lambda one: (one[0].score, one[0].event.ts), reverse=True)
        score = sum(hit.score * 0.5**rank for rank, (hit, _) in enumerate(scored[:_BEST]))
        return RankedSession(row, score, scored[0][1], [hit for hit, _ in scored])

    def lacking(self, session: RankedSession, title: int) -> tuple[str, ...]:
        """The telling words that other sessions hold and neither this one's events nor its title do."""
        there = {word for hit in session.hits for word in hit.words}.union(self._told(title)[1])
        least = _TELLING * max(self.weights)
        return tuple(
            word
            for word, one in zip(self.words, self.weights, strict=True)
            if one >= least and word not in there and word not in STOP_WORDS
        )

    def _event(self, event: RankedEvent, held: int, near: int, title: int) -> tuple[RankedHit, float]:
        """An event with its score, and how much of the query is there."""
        own, words = self._told(held)
        more = _OF_NEAR * self._told(near & ~held)[0] + _OF_TITLE * self._told(title & ~held & ~near)[0]
        literal = event.id in self.literal
        length = 1 + _SATURATION * (1 - _LENGTH + _LENGTH * (0 if literal else event.words) / (self.average or 1))
        factor = math.sqrt((_LOUDEST if literal else _VOICES[event.voice]) * (1 + _SATURATION) / length)
        share = (own + more) / self.total
        score = (own * factor + more) * (1 + share * share) * (_OF_LITERAL if literal else 1)
        return RankedHit(event, score, words), share

    def _told(self, mask: int) -> tuple[float, tuple[str, ...]]:
        """The weight of the words of a mask, and these words."""
        known = self._known.get(mask)
        if known is None:
            bits = [bit for bit in range(len(self.words)) if mask >> bit & 1]
            known = sum(self.weights[bit] for bit in bits), tuple(self.words[bit] for bit in bits)
            self._known[mask] = known
        return known


def _near(events: Sequence[RankedEvent], masks: Sequence[int]) -> list[int]:
    """What the other events near each of these hold, as masks."""
    places = [event.event_index for event in events]
    near = [0] * len(places)
    first = 0
    for at, place in enumerate(places):
        while places[first] < place - _NEAR:
            first += 1
        for other in range(first, at):
            near[at] |= masks[other]
            near[other] |= masks[at]
    return near
