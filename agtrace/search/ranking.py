"""Ranked search: the sessions that a query is about, the best one first, by the words of their best events.

The score of an event: the weights of the query's words that it holds (rare words weigh more), by who speaks and how
much is said, and some of what stands within a few events, or in the session's title; the more of the query is there,
the more all of it counts. A session is as good as its best events, each next one worth half: sums over all would let
long sessions win everything.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from agtrace_indexer.index.questions import ranking
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.matches import Span
from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.texts.ranked_words import Voice, query_words

_VOICES = {Voice.HUMAN: 3.0, Voice.MODEL: 2.0, Voice.CALL: 1.5, Voice.ERROR: 0.8, Voice.OUTPUT: 0.5, Voice.NOTICE: 2.0}
_ASKING = frozenset({Voice.HUMAN, Voice.MODEL})
_SATURATION, _LENGTH = 1.2, 0.6
"""k1 and b of BM25: how soon more of the same says nothing new, how much long texts are discounted."""

_NEAR, _OF_NEAR = 12, 0.35
"""Within how many events other words of the query count, and how much of them."""

_OF_TITLE = 0.3
_BEST = 3
"""Events of a session that count, each half as much as the one before."""

_COMMON = 4
"""A word that stands in more than one part in this many of the events counts only if there are no others."""

_LEAST_PREFIX = 3
"""Characters that are left of a word which no event holds: it is cut until one does."""

_OF_CUT = 0.5
"""How much a word weighs of which only the beginning was found."""

_LOADED = 1_500
"""Events, those with most of the query first, that are scored at once."""

_ENOUGH = 400
"""Events that pass the filters after which no more are loaded."""

SURE, FAINT = 0.6, 0.25
"""Shares of a query from which on what was found is an answer, and below which it is none."""


class Word(NamedTuple):
    """A word of a query, as events hold it."""

    text: str
    weight: float
    events: frozenset[int]
    missing: float
    """The weight that isn't found: that of a word which no event holds, or of its lost end."""


class RankedHit(NamedTuple):
    """An event with its score."""

    event: RankedEvent
    score: float
    words: frozenset[str]
    """The query's words that it holds."""


@dataclass(frozen=True, slots=True)
class RankedSession:
    """A session with its hits, the best first."""

    session_row: int
    score: float
    share: float
    """How much of the query its best event and what stands around it hold, by weight: 0 to 1."""
    hits: list[RankedHit]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranked search on one snapshot; to be used within one read transaction."""

    connection: sqlite3.Connection
    filters: EventFilters
    snapshot: int
    span: Span

    def sessions(self, query: str) -> list[RankedSession]:
        """The sessions with words of a query, the best first; ties by time, the newest first."""
        size = ranking.size(self.connection)
        if not size.events:
            return []
        words = self._words(query, size.events)
        total = sum(word.weight + word.missing for word in words)
        if not total:
            return []
        events = self._without_asking(self._loaded(words))
        score = _Score(words, total, size.words, self._titles(words, events))
        by_session = groupby(sorted(events, key=attrgetter("session", "event_index")), key=attrgetter("session"))
        found = [score.session(row, list(group)) for row, group in by_session]
        return sorted(found, key=lambda one: (one.score, one.hits[0].event.ts), reverse=True)

    def _words(self, query: str, events: int) -> list[Word]:
        """The words of a query that tell events apart."""
        texts = query_words(query)
        telling = [text for text in texts if ranking.count(self.connection, text) <= events / _COMMON]
        found = [self._word(text, events) for text in telling or texts]
        rare = [word for word in found if len(word.events) <= events / _COMMON]
        return rare or found

    def _word(self, text: str, events: int) -> Word:
        """A word, or as much of its beginning as some event holds."""
        holding = ranking.holding(self.connection, text)
        if holding:
            return Word(text, _weight(events, len(holding)), frozenset(holding), 0)
        missing = _weight(events, 0)
        for length in range(len(text), _LEAST_PREFIX, -1):
            holding = ranking.holding(self.connection, text[:length], beginning=True)
            if holding:
                weight = _weight(events, len(holding)) * (1 if length == len(text) else _OF_CUT)
                return Word(text, weight, frozenset(holding), max(missing - weight, 0) if length < len(text) else 0)
        return Word(text, 0, frozenset(), missing)

    def _loaded(self, words: Sequence[Word]) -> list[RankedEvent]:
        """The events that pass the filters, those with most of the query first, until there are enough."""
        held: dict[int, float] = {}
        for word in words:
            for id in word.events:
                held[id] = held.get(id, 0) + word.weight
        best = sorted(sorted(held, reverse=True), key=held.__getitem__, reverse=True)
        loaded: list[RankedEvent] = []
        for at in range(0, len(best), _LOADED):
            ids = best[at : at + _LOADED]
            loaded += ranking.events(self.connection, ids, self.filters, self.snapshot, self.span)
            if len(loaded) >= _ENOUGH:
                break
        return loaded

    def _without_asking(self, events: list[RankedEvent]) -> list[RankedEvent]:
        """What is left without requests and texts that only led to calls of agtrace: these hold the words, too."""
        spoken = [event for event in events if event.voice in _ASKING and event.turn is not None]
        asking = ranking.asking(
            self.connection, {(event.session, event.turn) for event in spoken if event.turn is not None}
        )
        asked = {event.id for event in spoken if event.event_index <= asking.get((event.session, event.turn or 0), -1)}
        return [event for event in events if event.id not in asked]

    def _titles(self, words: Sequence[Word], events: Sequence[RankedEvent]) -> dict[int, set[str]]:
        sessions = {event.session for event in events}
        return ranking.titled(self.connection, sessions, [word.text for word in words])


@dataclass(frozen=True, slots=True)
class _Score:
    """How sessions are scored for one query."""

    words: Sequence[Word]
    total: float
    average: float
    """The average number of words of an event."""
    titles: dict[int, set[str]]

    def session(self, row: int, events: list[RankedEvent]) -> RankedSession:
        """The score of a session by its events, given in their order."""
        held = [frozenset(word for word in self.words if event.id in word.events) for event in events]
        title = frozenset(word for word in self.words if word.text in self.titles.get(row, ()))
        scored = [self._event(event, held[at], self._near(events, held, at), title) for at, event in enumerate(events)]
        scored.sort(key=lambda one: (one[0].score, one[0].event.ts), reverse=True)
        score = sum(hit.score * 0.5**rank for rank, (hit, _) in enumerate(scored[:_BEST]))
        return RankedSession(row, score, scored[0][1], [hit for hit, _ in scored])

    def _near(self, events: list[RankedEvent], held: list[frozenset[Word]], at: int) -> frozenset[Word]:
        """The words that events near one hold."""
        return frozenset().union(*(held[other] for other in self._neighbours(events, at)))

    def _neighbours(self, events: list[RankedEvent], at: int) -> Iterator[int]:
        index = events[at].event_index
        for step in (-1, 1):
            other = at + step
            while 0 <= other < len(events) and abs(events[other].event_index - index) <= _NEAR:
                yield other
                other += step

    def _event(
        self, event: RankedEvent, held: frozenset[Word], near: frozenset[Word], title: frozenset[Word]
    ) -> tuple[RankedHit, float]:
        """An event with its score, and how much of the query is there."""
        own, beside, above = (_sum(words) for words in (held, near - held, title - held - near))
        more = _OF_NEAR * beside + _OF_TITLE * above
        length = 1 + _SATURATION * (1 - _LENGTH + _LENGTH * event.words / (self.average or 1))
        factor = math.sqrt(_VOICES[event.voice] * (1 + _SATURATION) / length)
        share = (own + more) / self.total
        score = (own * factor + more) * (1 + share * share)
        return RankedHit(event, score, frozenset(word.text for word in held)), share


def _sum(words: frozenset[Word]) -> float:
    return sum(word.weight for word in words)


def _weight(events: int, holding: int) -> float:
    """The weight of a word that so many of the events hold: inverse document frequency."""
    return math.log(1 + (events - holding + 0.5) / (holding + 0.5))
