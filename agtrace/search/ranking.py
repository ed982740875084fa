"""Ranked search: the sessions that a query is about, the best one first, by their best events (BM25 of FTS5).

How sure that is, is another question: what the best event and those near it hold of the query, by weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from operator import attrgetter
from typing import NamedTuple

from agtrace_indexer.index.queries import projects, ranking, sessions
from agtrace_indexer.index.queries.ranking import RankedEvent, Word
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact
from agtrace_indexer.texts.ranked_words import query_words
from msgspec import Struct
from msgspec.structs import replace

from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Question, interrupted
from agtrace.text.focus.words import STOP_WORDS

_MOST_WORDS = 20
"""Of a query with more words, which somebody pasted, the longest ones count."""

_COMMON = 4
"""A word that more than one part in this many of the events hold counts only if there are no others."""

_COMMON_NAME = 20
"""A name of one word that more than one part in this many of the events hold, such as `test`, names nothing."""

_OF_MANY_AGENTS = frozenset({"cli", "code"})
"""Words of agents' names that name none."""

_OF_NAMED = 1.5
"""How much more a session counts whose project or agent the query names."""

_OF_SAID = 2
"""How much more a hit counts within its session if a human or a model wrote it: there the rest is explained."""

_MOST_EVENTS = 500
"""The best events, of which the sessions are taken."""

_ALL_EVENTS = 1 << 40

_NEAR = 12
"""The events before and after the best one in which words of the query count as well."""

_FEW, _MANY = 8, 50
"""A query is meant as a text if at most so many events contain it; more if it has parts of words."""

SURE, PARTLY, FAINT = 0.6, 0.45, 0.25
"""At least this share of a query must be found for an answer, or for a part of one; less than the last is nothing."""

_LONG = 6
"""The number of words up to which `FAINT` holds. No event has all words of a longer query: less is enough."""

_LAST_INDEX = 1 << 31

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


class RankedSession(Struct, frozen=True):
    """A session with its hits, the best first."""

    session_row: int
    score: float
    hits: list[RankedEvent]


class Ranked(Struct, frozen=True):
    """What a query found."""

    sessions: Sequence[RankedSession]
    """The best first; none if even the best holds so little of the query that it answers nothing."""
    words: Sequence[str] = ()
    """The words that count, as events hold them, the rarest first."""
    share: float = 0
    """How much of the query the best session holds, by weight: 0 to 1."""
    nowhere: Sequence[str] = ()
    """The words that no event contains."""
    lacking: Sequence[str] = ()
    """If it isn't sure: the words that the best session lacks, though others have them."""
    events: Sequence[RankedEvent] = ()
    """All that hold a word of the query, the best first."""
    literal: Set[int] = frozenset()
    """The ids of those that contain the query as a text, if it is rare."""
    is_part: bool = False
    """Whether the query has words that no event has whole, so that it is meant as a text."""

    @property
    def sure(self) -> bool:
        """Whether the best session holds enough of the query to be an answer."""
        return self.share >= SURE


def ranked(question: Question, query: str, deadline: Deadline, seen: int = 0) -> Ranked:
    """Return the sessions that the words of a query are about. Raises `SearchTimeout`.

    `seen` is the number of events that were shown on earlier pages. Words of a secret aren't named: on their own, they
    might not be recognized as one.
    """
    size, texts = ranking.size(question.connection), query_words(query)
    most = _MOST_EVENTS if seen < _MOST_EVENTS // 2 else _ALL_EVENTS
    return _Search(question, query, texts, size, deadline, most).ranked() if size and texts else Ranked([])


class _Named(NamedTuple):
    words: frozenset[str]
    sessions: frozenset[int]


class _Search(Struct, frozen=True):
    question: Question
    query: str
    texts: list[str]
    """Its words."""
    size: int
    """How many events are ranked."""
    deadline: Deadline
    most: int
    """The most events to rank."""

    def ranked(self) -> Ranked:
        named = self._named()
        words = self._words(named)
        is_part = any(word.beginning or not word.events for word in words)
        whole = self._containing(_MANY if is_part else _FEW)
        events = self._events([word for word in words if word.events], whole)
        found = _sessions(events[:_MOST_EVENTS], named)
        share, missing = self._held(words, found[0], named) if found else (0.0, words)
        if found and found[0].hits[0].id in whole:
            share, missing = 1.0, []
        shown = query_words(redact(self.query))
        missing = [word for word in missing if word.text in shown]
        nowhere = [word.text for word in missing if not word.events and self._is_nowhere(self.question, word)]
        if share < FAINT * min(_LONG / len(self.texts), 1):
            return Ranked([], nowhere=nowhere)
        held = [word.text for word in sorted(words, key=attrgetter("events")) if word.events]
        lacking = [] if share >= SURE else [word.text for word in missing if self._is_lacking(word, found[0])]
        return Ranked(found, held, share, nowhere, lacking, events, whole.keys(), is_part)

    def _named(self) -> _Named:
        """Return the sessions of the projects and agents that the query names, and the words of these names."""
        connection = self.question.connection
        of_projects = {
            repository: words
            for repository, name in projects.names(connection)
            if _stands_in(words := query_words(name), self.texts) and (len(words) > 1 or self._is_rare(words[0]))
        }
        of_agents = {
            provider: words
            for provider, agent in AGENTS.items()
            if (words := [word for word in query_words(agent.title) if word not in _OF_MANY_AGENTS])
            and {*words} <= {*self.texts}
            and all(map(self._is_rare, words))
        }
        rows = sessions.of_repositories(connection, of_projects) if of_projects else set()
        rows |= sessions.of_agents(connection, of_agents) if of_agents else set()
        used = (*of_projects.values(), *of_agents.values())
        return _Named(frozenset(word for words in used for word in words), frozenset(rows))

    def _is_rare(self, name: str) -> bool:
        most = self.size // _COMMON_NAME
        return ranking.count(self.question.connection, Word(name), most + 1) <= most

    def _words(self, named: _Named) -> list[Word]:
        longest = sorted(self.texts, key=len, reverse=True)[:_MOST_WORDS]
        found = [self._counted(text) for text in self.texts if text in longest]
        found = [word for word in found if word.events or word.text not in named.words] or found
        return [word for word in found if word.events <= self.size // _COMMON] or found

    def _counted(self, text: str) -> Word:
        """Return a word as events hold it: as it is, as it is spelled elsewhere, or at least its beginning."""
        others = [Word(other) for other in _spelled_otherwise(text)]
        for word in (Word(text), *others, Word(text, beginning=True)):
            if events := ranking.count(self.question.connection, word, self.size // _COMMON + 1):
                return replace(word, events=events)
        return Word(text)

    def _containing(self, most: int) -> dict[int, RankedEvent]:
        """Return the events, by id, that contain the query as a text, if they are no more than `most`.

        The ranking index lacks the middle of long outputs.
        """
        asked = replace(self.question, matcher=Contains(self.query.strip()))
        hits = asked.page(most, None, self.deadline)
        ids = [] if hits.more else [hit.event_id for hit in hits.hits]
        found = ranking.among(asked.connection, ids, asked.filters, asked.snapshot) if ids else ()
        return {event.id: event for event in found}

    def _events(self, words: Sequence[Word], whole: Mapping[int, RankedEvent]) -> list[RankedEvent]:
        """Return the best events, the best first; of equals, the newest.

        An event with the whole query counts more than all others.
        """
        asked = self.question
        found: dict[int, RankedEvent] = {}
        if words:
            with interrupted(asked.connection, self.deadline):
                best = ranking.best(asked.connection, words, self.size, asked.filters, asked.snapshot, self.most)
                found = {event.id: event for event in best}
        top = max((event.score for event in found.values()), default=1.0)
        for id, event in whole.items():
            found[id] = replace(event, score=2 * top + (found[id].score if id in found else 0))
        return sorted(found.values(), key=attrgetter("score", "ts"), reverse=True)

    def _held(self, words: Sequence[Word], best: RankedSession, named: _Named) -> tuple[float, list[Word]]:
        """Return how much of the query the best hit and what is near it hold, by weight, and which words they lack."""
        place = best.hits[0].event_index
        is_named = best.session_row in named.sessions
        missing = [
            word
            for word in words
            if not (is_named and word.text in named.words)
            and not (word.events and self._is_held(word, best, place - _NEAR, place + _NEAR))
        ]
        return 1 - sum(word.weight(self.size) for word in missing) / sum(
            word.weight(self.size) for word in words
        ), missing

    def _is_held(self, word: Word, session: RankedSession, first: int, last: int) -> bool:
        return ranking.is_held(self.question.connection, word, session.session_row, first, last)

    def _is_lacking(self, word: Word, session: RankedSession) -> bool:
        """Whether a session lacks a telling word that others have."""
        if not word.events or word.text in STOP_WORDS or self._is_held(word, session, 0, _LAST_INDEX):
            return False
        inside = replace(self.question.filters, session_row=session.session_row)
        return self._is_nowhere(replace(self.question, filters=inside), word)

    def _is_nowhere(self, asked: Question, word: Word) -> bool:
        """Whether no event that passes the filters contains a word: the ranking index lacks the middle of outputs."""
        return not replace(asked, matcher=Contains(word.text)).page(1, None, self.deadline).hits


def _sessions(events: Sequence[RankedEvent], named: _Named) -> list[RankedSession]:
    """Return the sessions of the best events, the best first; of equals, the newest."""
    hits: dict[int, list[RankedEvent]] = {}
    for event in events:
        hits.setdefault(event.session, []).append(event)
    ranked = (
        RankedSession(
            row,
            of_session[0].score * (_OF_NAMED if row in named.sessions else 1),
            sorted(of_session, key=lambda event: event.score * (_OF_SAID if event.said else 1), reverse=True),
        )
        for row, of_session in hits.items()
    )
    return sorted(ranked, key=lambda one: (one.score, one.hits[0].ts), reverse=True)


def _stands_in(name: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether the words of a name follow each other in a text."""
    length = len(name)
    return length > 0 and any(texts[at : at + length] == name for at in range(len(texts) - length + 1))


def _spelled_otherwise(word: str) -> Iterator[str]:
    for british, american in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            if one in word[1:]:
                yield word[0] + word[1:].replace(one, other)
