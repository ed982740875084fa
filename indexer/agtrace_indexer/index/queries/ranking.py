"""Ranking: the events that hold words of a query, the best first."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterator, Sequence

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType
from msgspec import Struct

from agtrace_indexer.index import ranking
from agtrace_indexer.index.queries.base import FOUND, as_json, is_team, rows, value
from agtrace_indexer.index.queries.matches import EventFilters, of_ranked_events
from agtrace_indexer.index.team_words import tsquery

_MOST_ALONE = 5_000
"""A word that more events hold than this finds none by itself if another is rarer: scoring 50,000 takes 0.1 s."""

_IS_RANKED = "SELECT 1 FROM sqlite_master WHERE name = 'ranked'"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM ranked WHERE ranked MATCH ? LIMIT ?)"
_COUNT_IN_TEAM = "SELECT count(*) FROM (SELECT 1 FROM events_with(?::tsquery) LIMIT ?) f"

_WRITTEN = f"({TYPE_CODE[EventType.USER]}, {TYPE_CODE[EventType.MESSAGE]}, {TYPE_CODE[EventType.REASONING]})"
_OF_TURN = "c.session_id = t.session_id AND c.event_index BETWEEN t.first_event AND t.last_event"
_ASKING = f"""e.type IN {_WRITTEN} AND EXISTS (
  SELECT 1 FROM turn t JOIN event c ON {_OF_TURN} AND c.own = 1
  WHERE t.session_id = e.session_id AND t.turn_index = e.turn_index AND (c.event_index >= e.event_index OR NOT EXISTS (
    SELECT 1 FROM event c WHERE {_OF_TURN} AND c.type = {TYPE_CODE[EventType.TOOL_CALL]} AND c.own IS NULL)))"""
"""Requests and texts that only led to calls of agtrace: they repeat the query."""

_PLACE = f"e.id, e.session_id, e.event_index, e.ts, CASE WHEN e.type IN {_WRITTEN} THEN 1 ELSE 0 END"
_CONDITIONS = f"{FOUND} AND e.copy_of IS NULL AND NOT ({_ASKING}) {{conditions}}"

# The ranking index is the outer loop: FTS5 yields its rows in their order, until there are enough.
_BEST = f"""
SELECT {_PLACE}, -ranked.rank FROM ranked CROSS JOIN event e ON e.id = ranked.rowid
WHERE ranked MATCH :words AND {_CONDITIONS} ORDER BY ranked.rank LIMIT :most
"""
_BEST_IN_TEAM = f"""
SELECT {_PLACE}, f.weight / (1 + ln(r.words)) AS score
FROM (SELECT one AS id, sum(w.weight) AS weight
      FROM unnest(:words::text[], :weights::float8[]) w(word, weight), events_with(w.word::tsquery) one GROUP BY one) f
JOIN ranked_event r ON r.id = f.id JOIN event e ON e.id = f.id
WHERE {_CONDITIONS} ORDER BY score DESC, e.id LIMIT :most
"""
"""PostgreSQL has no BM25: the sum of the words' weights by the length of the text. This, and whatever is called so, is
PostgreSQL's."""

_AMONG = f"""
SELECT {_PLACE}, 0.0 FROM event e
WHERE e.id IN (SELECT value FROM json_each(:ids)) AND EXISTS (SELECT 1 FROM {{ranked}} = e.id) AND {_CONDITIONS}
ORDER BY e.id
"""

_AT = "SELECT id FROM event WHERE session_id = :session AND event_index"
_INSIDE = """ AND ranked.rowid BETWEEN
  (SELECT id FROM event WHERE session_id = :session_row ORDER BY event_index LIMIT 1)
  AND (SELECT id FROM event WHERE session_id = :session_row ORDER BY event_index DESC LIMIT 1)"""
"""Where the events of a session are: without it, those of all others that match are looked at as well."""
_HELD = f"""
SELECT EXISTS (
  SELECT 1 FROM ranked CROSS JOIN event e ON e.id = ranked.rowid
  WHERE ranked MATCH :word AND ranked.rowid >= ({_AT} >= :first ORDER BY event_index LIMIT 1)
    AND ranked.rowid <= ({_AT} <= :last ORDER BY event_index DESC LIMIT 1) AND e.session_id = :session
    AND e.superseded_by IS NULL AND e.copy_of IS NULL)
"""
_HELD_IN_TEAM = """
SELECT EXISTS (
  SELECT 1 FROM event e JOIN ranked_event r ON r.id = e.id
  WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND r.stems @@ :word::tsquery
    AND e.superseded_by IS NULL AND e.copy_of IS NULL)
"""


class Word(Struct, frozen=True):
    """A word of a query."""

    text: str
    events: int = 0
    """How many events hold it in any of its forms; some may be gone."""
    beginning: bool = False
    """Whether events hold words that only begin so."""

    def weight(self, size: int) -> float:
        """Return its weight among so many events: the rarer, the heavier."""
        return math.log(1 + (size - self.events + 0.5) / (self.events + 0.5))


class RankedEvent(Struct, frozen=True):
    """An event that holds words of a query."""

    id: int
    session: int
    event_index: int
    ts: int
    said: int
    """1 if a human or a model wrote it to be read, 0 for calls, outputs and notifications."""
    score: float


def size(connection: sqlite3.Connection) -> int:
    """Return how many events are ranked: 0 if there is no ranking index."""
    if is_team(connection):
        return int(value(connection, "SELECT count(*) FROM ranked_event"))
    return ranking.size(connection) if value(connection, _IS_RANKED) else 0


def count(connection: sqlite3.Connection, word: Word, most: int) -> int:
    """Return how many events hold a word in any of its forms, or one that begins so, up to `most`; some may be gone."""
    if is_team(connection):
        return int(value(connection, _COUNT_IN_TEAM, (_as_tsquery(word), most)))
    return int(value(connection, _COUNT, (_quoted(word), most)))


def best(
    connection: sqlite3.Connection, words: Sequence[Word], size: int, filters: EventFilters, snapshot: int, most: int
) -> Iterator[RankedEvent]:
    """Return the best events of a snapshot for some words, the best first; they pass the filters and are no copies.

    `size` is the number of ranked events.
    """
    conditions, arguments = of_ranked_events(filters)
    arguments |= {"snapshot": snapshot, "most": most}
    if is_team(connection):
        weights = [word.weight(size) for word in words]
        arguments |= {"words": [_as_tsquery(word) for word in words], "weights": weights}
        return rows(connection, RankedEvent, _BEST_IN_TEAM.format(conditions=conditions), arguments)
    inside = "" if filters.session_row is None else _INSIDE
    arguments["words"] = _any_of(words)
    return rows(connection, RankedEvent, _BEST.format(conditions=conditions + inside), arguments)


def among(
    connection: sqlite3.Connection, ids: Collection[int], filters: EventFilters, snapshot: int
) -> Iterator[RankedEvent]:
    """Return those of some events that `best` could return, whatever their words, without a score."""
    conditions, arguments = of_ranked_events(filters)
    arguments |= {"ids": as_json(ids), "snapshot": snapshot}
    ranked = "ranked_event r WHERE r.id" if is_team(connection) else "ranked r WHERE r.rowid"
    return rows(connection, RankedEvent, _AMONG.format(ranked=ranked, conditions=conditions), arguments)


def is_held(connection: sqlite3.Connection, word: Word, session: int, first: int, last: int) -> bool:
    """Whether one of the events of a session between two indexes holds a word."""
    place = {"session": session, "first": first, "last": last}
    if is_team(connection):
        return bool(value(connection, _HELD_IN_TEAM, {"word": _as_tsquery(word), **place}))
    return bool(value(connection, _HELD, {"word": _quoted(word), **place}))


def _any_of(words: Sequence[Word]) -> str:
    """Return the query of FTS5 for events with any of some words."""
    rare = [word for word in words if word.events <= _MOST_ALONE] or [min(words, key=lambda word: word.events)]
    match = " OR ".join(map(_quoted, words))
    return match if len(rare) == len(words) else f"({' OR '.join(map(_quoted, rare))}) AND ({match})"


def _quoted(word: Word) -> str:
    return f'"{word.text}"{"*" if word.beginning else ""}'


def _as_tsquery(word: Word) -> str:
    return tsquery(word.text, beginning=word.beginning)
