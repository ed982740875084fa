"""Ranking: which events hold a word, and what is known of them beyond that."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

import orjson
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType
from msgspec import Struct

from agtrace_indexer.index import ranking
from agtrace_indexer.index.questions.filters import EventFilters, of_ranked_events
from agtrace_indexer.index.questions.matches import Span
from agtrace_indexer.index.questions.queries import as_json, is_team, pairs, rows, value, values
from agtrace_indexer.index.team_words import tsquery
from agtrace_indexer.texts.ranked_words import Voice, ranked_words

_IS_RANKED = "SELECT 1 FROM sqlite_master WHERE name = 'ranked_event'"

_COUNT = "SELECT count(*) FROM ranked WHERE ranked MATCH ?"
_COUNT_IN_TEAM = "SELECT count(*) FROM events_with(?::tsquery)"
"""PostgreSQL's, as whatever is called so."""

# One row of JSON takes half the time of a row for each event.
_HOLDING = "SELECT json_group_array(rowid) FROM ranked WHERE ranked MATCH ?"
_HOLDING_IN_TEAM = "SELECT coalesce(json_agg(one), '[]')::text FROM events_with(?::tsquery) one"

_EVENTS = """
SELECT e.id, e.session_id, e.event_index, e.ts, e.turn_index, r.voice, r.words
FROM json_each(:ids) j JOIN event e ON e.id = j.value JOIN ranked_event r ON r.id = e.id
WHERE e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by > :snapshot) AND e.copy_of IS NULL
  AND e.ts BETWEEN :since AND :until {conditions}
"""

_OF_TURN = "FROM event e WHERE e.session_id = t.session_id AND e.event_index BETWEEN t.first_event AND t.last_event"
_ASKING = f"""
SELECT t.session_id, t.turn_index, CASE
  WHEN EXISTS (SELECT 1 {_OF_TURN} AND e.type = {TYPE_CODE[EventType.TOOL_CALL]} AND e.own IS NULL)
  THEN (SELECT max(e.event_index) {_OF_TURN} AND e.own = 1)
  ELSE t.last_event END
FROM turn t WHERE (t.session_id, t.turn_index) IN (VALUES {{turns}}) AND EXISTS (SELECT 1 {_OF_TURN} AND e.own = 1)
"""

_TITLES = """
SELECT id, coalesce(title, '') || ' ' || coalesce(snippet, '') FROM session
WHERE id IN (SELECT value FROM json_each(?))
"""


class Size(Struct, frozen=True):
    """How much is ranked."""

    events: int
    words: float
    """The average number of words of an event."""


class RankedEvent(Struct, frozen=True):
    """An event that holds a word of a query."""

    id: int
    session: int
    event_index: int
    ts: int
    turn: int | None
    voice: Voice
    words: int
    """How many of its words count."""


def size(connection: sqlite3.Connection) -> Size:
    """Return how much is ranked: nothing where there is no ranking index."""
    if not is_team(connection) and not values(connection, _IS_RANKED):
        return Size(0, 0)
    events, words = ranking.size(connection)
    return Size(events, words / events if events else 0)


def count(connection: sqlite3.Connection, word: str) -> int:
    """Return how many events hold a word in any of its forms; some may be gone."""
    if is_team(connection):
        return int(value(connection, _COUNT_IN_TEAM, (tsquery(word, beginning=False),)))
    return int(value(connection, _COUNT, (f'"{word}"',)))


def holding(connection: sqlite3.Connection, word: str, *, beginning: bool = False) -> list[int]:
    """Return the ids of the events that hold a word in any of its forms, or one that begins so; some may be gone."""
    if is_team(connection):
        listed = value(connection, _HOLDING_IN_TEAM, (tsquery(word, beginning=beginning),))
    else:
        listed = value(connection, _HOLDING, (f'"{word}"*' if beginning else f'"{word}"',))
    found: list[int] = orjson.loads(listed)
    return found


def events(
    connection: sqlite3.Connection, ids: Collection[int], filters: EventFilters, snapshot: int, span: Span
) -> Iterator[RankedEvent]:
    """Return those of some events that are there in a snapshot, pass the filters, and are no copies."""
    conditions, arguments = of_ranked_events(filters)
    arguments |= {"ids": as_json(ids), "snapshot": snapshot, "since": span.since, "until": span.until}
    return rows(connection, RankedEvent, _EVENTS.format(conditions=conditions), arguments)


def asking(connection: sqlite3.Connection, turns: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return those of some turns, as (session, turn), that called agtrace, with the last event that is about asking.

    That is the last such call, or the end of the turn if it called nothing else.
    """
    if not turns:
        return {}
    wanted = ", ".join(f"({session:d}, {turn:d})" for session, turn in sorted(turns))
    return dict(rows(connection, _until, _ASKING.format(turns=wanted)))


def _until(session: int, turn: int, event_index: int) -> tuple[tuple[int, int], int]:
    return (session, turn), event_index


def titled(connection: sqlite3.Connection, sessions: Collection[int], words: Sequence[str]) -> dict[int, int]:
    """Return which of some words stand, in any form, in the titles of sessions, as masks: bit n is the n-th word."""
    titles = pairs(connection, _TITLES, (as_json(sessions),))
    found: dict[int, int] = {}
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE title USING fts5(words, detail=none, tokenize='porter unicode61')")
        memory.executemany(
            "INSERT INTO title (rowid, words) VALUES (?, ?)",
            [(id, " ".join(ranked_words(Voice.HUMAN, text)[0])) for id, text in titles.items()],
        )
        for bit, word in enumerate(words):
            for (id,) in memory.execute("SELECT rowid FROM title WHERE title MATCH ?", (f'"{word}"',)):
                found[id] = found.get(id, 0) | 1 << bit
    return found
