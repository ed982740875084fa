"""The ranking index: which words stand in which events, and who says them.

It follows every append: a run takes up the events that came since (`meta` 'ranked_to'), read from their blocks. What no
human and no model wrote is left out: injected texts, listings, reminders, summaries of compactions, calls to agtrace.
Copies and superseded events are left out when it is asked. FTS5 holds words without their positions, 1 to 2 % of the
logs; scores are made by whoever asks (`agtrace.search.ranking`).

Where workers read, they find the words of their events, which are taken up with each of their indexes, and a run that
has no more time takes up what it read. Only the families, joined when all is read, show which of these events (those
after `meta` 'ranked_early') are copies: their words are taken out again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from operator import add
from types import MappingProxyType
from typing import NamedTuple

from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODE
from agtrace_schema.database import RANKED
from agtrace_schema.events import EventType, Outcome, UserKind

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index import meta
from agtrace_indexer.providers.registry import ERRORS, TELLING
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.ranked_words import Voice, ranked_words

_REACHED, _SIZE, _EARLY = "ranked_to", "ranked_size", "ranked_early"
_STALE = 4
"""One part in this many of the events: where more than that are gone, the ranking index is made anew."""
_SPEAKING = frozenset({UserKind.HUMAN.value, UserKind.TASK.value})
_FAILED = OUTCOME_CODE[Outcome.FAILED]

COUNTED = "SELECT count(*), coalesce(sum(words), 0) FROM ranked_event"

# By id, though another index has them in the order of sessions: there are few new events.
_GROWN = "SELECT session_id, min(event_index) FROM event NOT INDEXED WHERE id > ? GROUP BY session_id"

_BLOCKS = """
SELECT b.first_index, b.event_count, d.ends, d.text FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ?1 AND b.first_index >= coalesce(
  (SELECT max(first_index) FROM block WHERE session_id = ?1 AND first_index <= ?2), 0)
"""

_EVENTS = """
SELECT e.event_index, e.id, e.type, n.text, e.outcome FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = ? AND e.event_index >= ? AND e.event_index < ? AND e.id > ? AND e.own IS NULL AND {condition}
"""
_COUNTING = _EVENTS.format(condition="e.superseded_by IS NULL AND e.copy_of IS NULL")
_TAKEN_EARLY = _EVENTS.format(
    condition="(e.superseded_by IS NOT NULL OR e.copy_of IS NOT NULL) "
    "AND EXISTS (SELECT 1 FROM ranked_event r WHERE r.id = e.id)"
)

CARRIED = "CREATE TABLE carried (id INTEGER PRIMARY KEY, voice INTEGER, text TEXT, words INTEGER);"
"""The table of a worker's index with the words of its events."""

_UNRANKED = "SELECT EXISTS (SELECT 1 FROM event WHERE id > ? AND id <= ?)"


class Ranked(NamedTuple):
    """An event as it is ranked."""

    id: int
    voice: Voice
    text: str
    """Its words, each once."""
    words: int
    """Their number with repetitions."""


def prepared(connection: sqlite3.Connection) -> bool:
    """Make the tables of the ranking index where there are none; False where SQLite can't."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ranked_event'").fetchone():
        return True
    connection.execute("SAVEPOINT ranked")
    try:
        connection.execute("DROP TABLE IF EXISTS ranked")
        for statement in RANKED.split(";\n"):
            connection.execute(statement)
    except sqlite3.OperationalError:
        connection.execute("ROLLBACK TO ranked")
        return False
    finally:
        connection.execute("RELEASE ranked")
    _put_size(connection, 0, 0)
    meta.put(connection, _REACHED, "0")
    return True


def size(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many events are ranked, and how many words they have in all; some may be gone."""
    noted = meta.get(connection, _SIZE)
    if noted is None:  # an index that was made before this was noted
        found: tuple[int, int] = connection.execute(COUNTED).fetchone()
        return found
    events, words = map(int, noted.split())
    return events, words


def _put_size(connection: sqlite3.Connection, events: int, words: int) -> None:
    meta.put(connection, _SIZE, f"{events} {words}")


def cover(connection: sqlite3.Connection, *, joined: bool = True) -> None:
    """Take up the events that came since, in the open transaction; nothing where SQLite has no FTS5.

    `joined` is whether the families are, so that it is known which events are copies.
    """
    if not prepared(connection):
        return
    if joined:
        _leave_out_copies(connection)
    reached = int(meta.get(connection, _REACHED) or 0)
    newest = _newest(connection)
    if newest > reached:
        if not joined:
            _note_early(connection, reached)
        events, words = size(connection)
        for session, first in connection.execute(_GROWN, (reached,)).fetchall():
            taken = list(_ranked_of(connection, _COUNTING, session, first, reached))
            _take_up(connection, taken)
            events += len(taken)
            words += sum(event.words for event in taken)
        _put_size(connection, events, words)
        meta.put(connection, _REACHED, str(newest))


def ranked_events(connection: sqlite3.Connection, session: int, instead: Mapping[int, BlockText]) -> Iterator[Ranked]:
    """Yield the events of a session that are ranked, with their words.

    `instead` has the texts of blocks, by their first event, that are to be read in place of those of the index.
    """
    return _ranked_of(connection, _COUNTING, session, instead=instead)


def carry(connection: sqlite3.Connection) -> None:
    """Find the words of all events of a worker's index, for `take_over`."""
    for (session,) in connection.execute("SELECT id FROM session").fetchall():
        connection.executemany("INSERT INTO carried VALUES (?, ?, ?, ?)", _ranked_of(connection, _COUNTING, session))


def take_over(connection: sqlite3.Connection, shard: str, behind: int) -> None:
    """Take up the events of a worker's index, attached under this name, whose ids are moved behind another id.

    If there are older events that aren't ranked yet, all wait for `cover`.
    """
    if not prepared(connection):
        return
    reached = int(meta.get(connection, _REACHED) or 0)
    if connection.execute(_UNRANKED, (reached, behind)).fetchone()[0]:
        return
    _note_early(connection, behind)
    connection.execute(
        f"INSERT INTO main.ranked (rowid, words) SELECT id + ?, text FROM {shard}.carried ORDER BY id", (behind,)
    )
    connection.execute(
        f"INSERT OR REPLACE INTO main.ranked_event SELECT id + ?, voice, words FROM {shard}.carried", (behind,)
    )
    new = connection.execute(f"SELECT count(*), coalesce(sum(words), 0) FROM {shard}.carried").fetchone()
    _put_size(connection, *map(add, size(connection), new))
    meta.put(connection, _REACHED, str(_newest(connection)))


def _note_early(connection: sqlite3.Connection, behind: int) -> None:
    """Note that events with greater ids are taken up before the families show which of them are copies."""
    if meta.get(connection, _EARLY) is None:
        meta.put(connection, _EARLY, str(behind))


def _leave_out_copies(connection: sqlite3.Connection) -> None:
    """Take out what was taken up early and turned out to be copied or superseded."""
    early = meta.get(connection, _EARLY)
    if early is None:
        return
    events, words = size(connection)
    for session, first in connection.execute(_GROWN, (int(early),)).fetchall():
        for event in list(_ranked_of(connection, _TAKEN_EARLY, session, first, int(early))):
            connection.execute(
                "INSERT INTO ranked (ranked, rowid, words) VALUES ('delete', ?, ?)", (event.id, event.text)
            )
            connection.execute("DELETE FROM ranked_event WHERE id = ?", (event.id,))
            events, words = events - 1, words - event.words
    _put_size(connection, events, words)
    meta.drop(connection, _EARLY)


def _newest(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM main.event").fetchone()[0])


def make_anew(connection: sqlite3.Connection) -> None:
    """Make the ranking index of the events that are there, in the open transaction: no word of others stays in it."""
    if not prepared(connection):
        return
    connection.execute("INSERT INTO ranked(ranked) VALUES ('delete-all')")
    connection.execute("DELETE FROM ranked_event")
    _put_size(connection, 0, 0)
    meta.put(connection, _REACHED, "0")
    cover(connection)


def put_in_order(connection: sqlite3.Connection) -> None:
    """Merge the ranking index, or make it anew where many of its events are gone, in the open transaction."""
    if not prepared(connection):
        return
    gone, there = connection.execute(
        "SELECT count(*) - count(e.id), count(e.id) FROM ranked_event r LEFT JOIN event e ON e.id = r.id"
    ).fetchone()
    if gone > there // _STALE:
        make_anew(connection)
    else:
        connection.execute("INSERT INTO ranked(ranked) VALUES ('optimize')")


def _take_up(connection: sqlite3.Connection, events: list[Ranked]) -> None:
    connection.executemany(
        "INSERT INTO ranked (rowid, words) VALUES (?, ?)", [(event.id, event.text) for event in events]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO ranked_event VALUES (?, ?, ?)",
        [(event.id, event.voice, event.words) for event in events],
    )


def _ranked_of(
    connection: sqlite3.Connection,
    query: str,
    session: int,
    first: int = 0,
    reached: int = 0,
    instead: Mapping[int, BlockText] = MappingProxyType({}),
) -> Iterator[Ranked]:
    """The events of a session that a query finds and that are ranked: from an index on, with greater ids than one."""
    for begin, count, ends, packed in connection.execute(_BLOCKS, (session, first)).fetchall():
        block = instead.get(begin)
        rows = connection.execute(query, (session, max(begin, first), begin + count, reached)).fetchall()
        for event_index, id, type_code, name, outcome in rows:
            voice = voice_of(EVENT_TYPE_CODES[type_code], name, outcome)
            if voice is None:
                continue
            block = block or BlockText.of(ends, packed)
            words, number = ranked_words(voice, without_preface(block.text(event_index - begin)))
            if words:
                yield Ranked(id, voice, " ".join(words), number)


def voice_of(kind: EventType, name: str | None, outcome: int | None) -> Voice | None:
    """Who speaks in an event of a type, with this name (of a tool, a user kind or a notification); None: nobody."""
    match kind:
        case EventType.USER:
            return Voice.HUMAN if name in _SPEAKING else None
        case EventType.MESSAGE | EventType.REASONING:
            return Voice.MODEL
        case EventType.TOOL_CALL:
            return Voice.CALL
        case EventType.TOOL_RESULT:
            return Voice.ERROR if outcome == _FAILED else Voice.OUTPUT
        case EventType.NOTIFICATION:
            return Voice.NOTICE if name in TELLING else Voice.ERROR if name in ERRORS else None
        case _:
            return None
