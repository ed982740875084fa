"""Ranked search: the sessions that a query is about, the best one first, by the words of their best events.

Of the words that a query has, those that tell events apart are looked up; the events that hold most of them and pass
the filters are scored (`agtrace.search.scoring`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter

from agtrace_indexer.index.questions import projects, ranking, sessions
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.matches import Span
from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.texts.ranked_words import Voice, query_words
from agtrace_schema.events import Provider
from msgspec import Struct
from msgspec.structs import replace

from agtrace.search.scoring import Ranked, RankedSession, Scoring, weight

_ASKING = frozenset({Voice.HUMAN, Voice.MODEL})

_COMMON = 4
"""A word that stands in more than one part in this many of the events counts only if there are no others."""

_LEAST_PREFIX = 5
"""Characters that are left of a word which no event holds: it is cut until one does."""

_OF_CUT = 0.5
"""How much a word weighs of which only the beginning was found."""

_OF_NAMED = 1.5
"""How much more a session counts whose project or agent the query names."""

_OF_MANY_AGENTS = frozenset({"cli", "code"})
"""Words of agents' names that name none."""

_COMMON_NAME = 20
"""A name of one word that stands in more than one part in this many of the events, such as `test`, says nothing."""

_LOADED = 1_500
"""Events, those with most of the query first, that are scored at once."""

_ENOUGH = 400
"""Events that pass the filters after which no more are loaded."""

_TITLED = 100
"""The sessions, by their events, whose titles are looked at, too."""

_MOST_WORDS = 16
"""Of a query with more words, those that fewest events hold, and those that none holds."""

_MOST_COUNTED = 40
"""Of a query with more words, the longest ones are looked up: somebody pasted it, and a word takes 0.4 ms."""

SURE, PARTLY, FAINT = 0.6, 0.45, 0.25
"""At least this share of a query must be found for an answer, or for a part of one; less than the last is nothing."""

_MANY, _ALL_BUT_ONE = 4, 0.9
"""If only one word, of at least so many, is found nowhere, this share of the others is an answer, too."""

_LONG = 6
"""The length of a query, in words, up to which that holds. No event has all words of a longer one: less is enough."""


class Word(Struct, frozen=True):
    """A word of a query, as events hold it."""

    text: str
    weight: float
    events: frozenset[int]
    missing: float
    """The weight that isn't found: that of a word which no event holds, or of its lost end."""


class Ranking(Struct, frozen=True):
    """A ranked search on one snapshot; to be used within one read transaction."""

    connection: sqlite3.Connection
    filters: EventFilters
    snapshot: int
    span: Span

    def ranked(self, query: str, literal: Collection[int] = ()) -> Ranked:
        """The sessions with words of a query, the best first; ties by time, the newest first.

        None if even the best holds so little of the query that it answers nothing. Of the `literal` events it is known
        that they contain the whole query; those that only ask for it count for nothing.
        """
        size = ranking.size(self.connection)
        if not size.events:
            return Ranked([])
        asked = query_words(query)
        named, names = self._named(asked, size.events)
        agents, agents_names = self._agents(asked, size.events)
        names |= agents_names
        meant = [text for text in asked if text not in names or ranking.count(self.connection, text)]
        words = self._words(meant or asked, size.events)
        words = [word for word in words if not (word.missing and word.text in names)] or words
        whole = self._without_asking(self._events(literal)) if literal else []
        missing = [word for word in words if word.missing and not whole]
        total = sum(word.weight for word in words) + sum(word.missing for word in missing)
        nowhere = tuple(word.text for word in missing)
        if not total:
            return Ranked([], nowhere)
        events, held = self._loaded(words, whole)
        texts, weights = [word.text for word in words], [word.weight for word in words]
        scoring = Scoring(texts, weights, total, size.words, held, {event.id for event in whole})
        by_session = {
            row: list(group)
            for row, group in groupby(
                sorted(self._without_asking(events), key=attrgetter("session", "event_index")), attrgetter("session")
            )
        }
        found = _best_first(scoring.session(row, group) for row, group in by_session.items())
        titles = ranking.titled(self.connection, [one.session_row for one in found[:_TITLED]], texts)
        of_agents = self._sessions_of(agents, found[:_TITLED])
        called = sum(1 << bit for bit, text in enumerate(texts) if text in agents_names)
        titles |= {row: titles.get(row, 0) | called for row in of_agents}
        titled = (
            scoring.session(one.session_row, by_session[one.session_row], titles[one.session_row])
            if one.session_row in titles
            else one
            for one in found
        )
        named |= of_agents
        best = _best_first(
            replace(one, score=one.score * _OF_NAMED) if one.session_row in named else one for one in titled
        )
        if not best or best[0].share < _faint(asked):
            return Ranked([], nowhere)
        there = 1 - sum(word.missing for word in missing) / total
        sure = best[0].share >= (min(SURE, _ALL_BUT_ONE * there) if _one_of_many(words, missing) else SURE)
        lacking = () if sure else scoring.lacking(best[0], titles.get(best[0].session_row, 0))
        return Ranked(best, nowhere, sure, lacking)

    def _named(self, texts: Sequence[str], events: int) -> tuple[set[int], set[str]]:
        """The sessions of the projects whose names stand in a query, and the words of these names.

        A single word that many events hold is no name.
        """
        named = {
            repository: words
            for repository, name in projects.names(self.connection)
            if _stands_in(words := query_words(name), texts)
            and (len(words) > 1 or ranking.count(self.connection, words[0]) <= events / _COMMON_NAME)
        }
        used = {word for words in named.values() for word in words}
        return sessions.of_repositories(self.connection, named) if named else set(), used

    def _agents(self, texts: Sequence[str], events: int) -> tuple[set[Provider], set[str]]:
        """The agents whose names stand in a query, and the words of these names; not those that many events hold."""
        named = {
            provider: words
            for provider, agent in AGENTS.items()
            if (words := set(query_words(agent.title)) - _OF_MANY_AGENTS)
            and words <= {*texts}
            and all(ranking.count(self.connection, word) <= events / _COMMON_NAME for word in words)
        }
        return {*named}, set().union(*named.values())

    def _sessions_of(self, agents: Collection[Provider], found: Sequence[RankedSession]) -> set[int]:
        """Those of these sessions that some agents wrote."""
        rows = sessions.in_rows(self.connection, (one.session_row for one in found)) if agents else []
        return {row.id for row in rows if row.provider in agents}

    def _words(self, texts: Sequence[str], events: int) -> list[Word]:
        """The words of a query that tell events apart."""
        if len(texts) > _MOST_COUNTED:
            longest = {*sorted(texts, key=len, reverse=True)[:_MOST_COUNTED]}
            texts = [text for text in texts if text in longest]
        counts = {text: ranking.count(self.connection, text) for text in texts}
        telling = [text for text in texts if counts[text] <= events / _COMMON] or texts
        if len(telling) > _MOST_WORDS:  # what somebody pasted
            rarest = sorted(filter(counts.__getitem__, telling), key=counts.__getitem__)[:_MOST_WORDS]
            telling = [text for text in telling if text in rarest or not counts[text]]
        found = [self._word(text, events) for text in telling]
        rare = [word for word in found if len(word.events) <= events / _COMMON]
        return rare or found

    def _word(self, text: str, events: int) -> Word:
        """A word, or as much of its beginning as some event holds."""
        for spelled in (text, *_spelled_otherwise(text)):
            if holding := ranking.holding(self.connection, spelled):
                return Word(text, weight(events, len(holding)), frozenset(holding), 0)
        missing = weight(events, 0)
        for length in range(len(text), min(len(text), _LEAST_PREFIX) - 1, -1):
            holding = ranking.holding(self.connection, text[:length], beginning=True)
            if holding:
                found = weight(events, len(holding)) * (1 if length == len(text) else _OF_CUT)
                return Word(text, found, frozenset(holding), max(missing - found, 0) if length < len(text) else 0)
        return Word(text, 0, frozenset(), missing)

    def _events(self, ids: Collection[int]) -> list[RankedEvent]:
        """Those of these events that are ranked and pass the filters."""
        return list(ranking.events(self.connection, ids, self.filters, self.snapshot, self.span))

    def _loaded(self, words: Sequence[Word], whole: Sequence[RankedEvent]) -> tuple[list[RankedEvent], dict[int, int]]:
        """The events that pass the filters, those with most of the query first, until there are enough.

        With them the words that each of them holds, as a mask (`agtrace.search.scoring`): all in those with the whole.
        """
        held = {event.id: (1 << len(words)) - 1 for event in whole}
        known = frozenset(held)
        loaded = [*whole]
        best = (one for one in _most_held_first(words) if one[0] not in known)
        while len(loaded) < _ENOUGH and (following := dict(islice(best, _LOADED))):
            loaded += self._events(following)
            held |= following
        return loaded, held

    def _without_asking(self, events: list[RankedEvent]) -> list[RankedEvent]:
        """What is left without requests and texts that only led to calls of agtrace: these hold the words, too."""
        spoken = [event for event in events if event.voice in _ASKING and event.turn is not None]
        asking = ranking.asking(
            self.connection, {(event.session, event.turn) for event in spoken if event.turn is not None}
        )
        asked = {event.id for event in spoken if event.event_index <= asking.get((event.session, event.turn or 0), -1)}
        return [event for event in events if event.id not in asked]


_SPELLINGS = (
    ("our", "or"),
    ("ise", "ize"),
    ("isa", "iza"),
    ("isi", "izi"),
    ("yse", "yze"),
    ("logue", "log"),
    ("lled", "led"),
)
"""Parts of words as they are written in Britain and in America."""


def _spelled_otherwise(word: str) -> Iterator[str]:
    """Yield the other spellings of a word that is found nowhere."""
    for british, american in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            if one in word[1:]:
                yield word[0] + word[1:].replace(one, other)


def _one_of_many(words: Sequence[Word], missing: Sequence[Word]) -> bool:
    """Whether a single one of the words of a query is found nowhere, such as one that is spelled differently."""
    return len(missing) == 1 and len(words) >= _MANY


def _faint(texts: Sequence[str]) -> float:
    """The share of a query of these words below which nothing is found."""
    return FAINT * min(_LONG / max(len(texts), 1), 1)


def _stands_in(name: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether the words of a name follow each other in a text."""
    length = len(name)
    return length > 0 and any(texts[at : at + length] == name for at in range(len(texts) - length + 1))


def _best_first(found: Iterator[RankedSession]) -> list[RankedSession]:
    return sorted(found, key=lambda one: (one.score, one.hits[0].event.ts), reverse=True)


def _most_held_first(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield the events that hold words of a query, each with those that it holds, as a mask: the heaviest ones first.

    Sets of events that hold the same words are split by one word after the other.
    """
    groups: dict[int, frozenset[int]] = {0: frozenset().union(*(word.events for word in words))}
    weights: dict[int, float] = {0: 0}
    for bit, word in enumerate(words):
        for mask, group in list(groups.items()):
            if inside := group & word.events:
                groups[mask | 1 << bit] = inside
                groups[mask] = group - inside
                weights[mask | 1 << bit] = weights[mask] + word.weight
    for mask in sorted(groups, key=lambda one: (weights[one], one), reverse=True):
        for id in sorted(groups[mask], reverse=True):
            yield id, mask
