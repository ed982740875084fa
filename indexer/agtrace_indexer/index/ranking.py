"""The ranking index: the words of events in a table of FTS5, which ranks them by BM25.

Events are added with their rows. What no human and no model wrote isn't in it: injected texts, listings, reminders,
summaries of compactions; nor are calls to agtrace. Copies and superseded events are in it, and left out by the query.

The index that a worker makes has a plain table of that name, whose rows are added when it is merged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from agtrace_schema.codes import EVENT_TYPE_CODES
from agtrace_schema.database import RANKED
from agtrace_schema.events import EventType, UserKind

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index import meta
from agtrace_indexer.providers.registry import ERRORS, TELLING
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.ranked_words import ranked_text

_SIZE = "ranked_size"
_STALE = 4
"""One part in this many of the events: where more than that are gone, the ranking index is rebuilt."""
_WRITTEN_BY_HUMANS = frozenset({UserKind.HUMAN.value, UserKind.TASK.value})
_SAID = frozenset({EventType.USER, EventType.MESSAGE, EventType.REASONING})

_BLOCKS = """
SELECT b.first_index, b.event_count, d.ends, d.text FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ?
"""

_EVENTS = """
SELECT e.event_index, e.id, e.type, n.text FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = ? AND e.event_index >= ? AND e.event_index < ? AND e.own IS NULL
"""

OF_WORKER = "CREATE TABLE ranked (words TEXT);"
"""The table of a worker's index with the ranked texts of its events."""


def prepared(connection: sqlite3.Connection) -> bool:
    """Create the ranking index of all events if there is none; return False if SQLite can't. In a transaction."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ranked'").fetchone():
        return True
    try:
        connection.execute(RANKED)
    except sqlite3.OperationalError:
        return False
    make_anew(connection)
    return True


def size(connection: sqlite3.Connection) -> int:
    """Return how many events are ranked; some may be gone."""
    return int(meta.get(connection, _SIZE) or 0)


def ranked_events(
    connection: sqlite3.Connection, session: int, instead: Mapping[int, BlockText] = MappingProxyType({})
) -> Iterator[tuple[int, str]]:
    """Yield the ranked events of a session as (id, text).

    `instead` has the texts of blocks, by their first event, that are to be read in place of those of the index.
    """
    for begin, count, ends, packed in connection.execute(_BLOCKS, (session,)).fetchall():
        block = instead.get(begin)
        rows = connection.execute(_EVENTS, (session, begin, begin + count)).fetchall()
        for event_index, id, type_code, name in rows:
            kind = EVENT_TYPE_CODES[type_code]
            if is_ranked(kind, name):
                block = block or BlockText.of(ends, packed)
                if words := words_of(kind, block.text(event_index - begin)):
                    yield id, words


def words_of(kind: EventType, text: str) -> str:
    """Return as much of the text of an event as is ranked."""
    return ranked_text(without_preface(text), said=kind in _SAID)


def add(connection: sqlite3.Connection, events: list[tuple[int, str]]) -> None:
    """Add events, by their ids, with what is ranked of their texts."""
    connection.executemany("INSERT INTO main.ranked (rowid, words) VALUES (?, ?)", events)
    meta.put(connection, _SIZE, str(size(connection) + len(events)))


def make_anew(connection: sqlite3.Connection) -> None:
    """Rebuild the ranking index from the existing events, in the open transaction: no other words stay in it."""
    if not prepared(connection):
        return
    connection.execute("INSERT INTO ranked(ranked) VALUES ('delete-all')")
    meta.drop(connection, _SIZE)
    for (session,) in connection.execute("SELECT id FROM session ORDER BY id").fetchall():
        add(connection, list(ranked_events(connection, session)))


def put_in_order(connection: sqlite3.Connection) -> None:
    """Rebuild the ranking index if many of its events are gone, in the open transaction."""
    if not prepared(connection):
        return
    gone, there = connection.execute(
        "SELECT count(*) - count(e.id), count(e.id) FROM ranked_docsize r LEFT JOIN event e ON e.id = r.id"
    ).fetchone()
    if gone > there // _STALE:
        make_anew(connection)


def is_ranked(kind: EventType, name: str | None) -> bool:
    """Whether somebody speaks in an event with this name (of a tool, a user kind or a notification)."""
    match kind:
        case EventType.USER:
            return name in _WRITTEN_BY_HUMANS
        case EventType.MESSAGE | EventType.REASONING | EventType.TOOL_CALL | EventType.TOOL_RESULT:
            return True
        case EventType.NOTIFICATION:
            return name in TELLING or name in ERRORS
        case _:
            return False
