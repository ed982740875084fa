"""The ranking index: the words of events in a table of FTS5, which ranks them by BM25.

It follows every append: a run adds the events that came since (`meta` 'ranked_to'), read from their blocks. What no
human and no model wrote isn't in it: injected texts, listings, reminders, summaries of compactions; nor are calls to
agtrace. Copies and superseded events are in it, and left out by the query.

Where workers read, they prepare the texts of their events, which are added with each of their indexes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from agtrace_schema.codes import EVENT_TYPE_CODES
from agtrace_schema.database import RANKED
from agtrace_schema.events import EventType, UserKind

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index import meta
from agtrace_indexer.providers.registry import ERRORS, TELLING
from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.ranked_words import ranked_text

_REACHED, _SIZE = "ranked_to", "ranked_size"
_STALE = 4
"""One part in this many of the events: where more than that are gone, the ranking index is rebuilt."""
_WRITTEN_BY_HUMANS = frozenset({UserKind.HUMAN.value, UserKind.TASK.value})
_SAID = frozenset({EventType.USER, EventType.MESSAGE, EventType.REASONING})

# By id, though another index has them in the order of sessions: there are few new events.
_GROWN = "SELECT session_id, min(event_index) FROM event NOT INDEXED WHERE id > ? GROUP BY session_id"

_BLOCKS = """
SELECT b.first_index, b.event_count, d.ends, d.text FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ?1 AND b.first_index >= coalesce(
  (SELECT max(first_index) FROM block WHERE session_id = ?1 AND first_index <= ?2), 0)
"""

_EVENTS = """
SELECT e.event_index, e.id, e.type, n.text FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = ? AND e.event_index >= ? AND e.event_index < ? AND e.id > ? AND e.own IS NULL
"""

CARRIED = "CREATE TABLE carried (id INTEGER PRIMARY KEY, words TEXT);"
"""The table of a worker's index with the ranked texts of its events."""

_INSERT = "INSERT INTO main.ranked (rowid, words) VALUES (?, ?)"
_UNRANKED = "SELECT EXISTS (SELECT 1 FROM event WHERE id > ? AND id <= ?)"


def prepared(connection: sqlite3.Connection) -> bool:
    """Create the ranking index if there is none; return False if SQLite can't."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ranked'").fetchone():
        return True
    try:
        connection.execute(RANKED)
    except sqlite3.OperationalError:
        return False
    _put_state(connection, reached=0, size=0)
    return True


def size(connection: sqlite3.Connection) -> int:
    """Return how many events are ranked; some may be gone."""
    return int(meta.get(connection, _SIZE) or 0)


def cover(connection: sqlite3.Connection) -> None:
    """Add the events that came since, in the open transaction; nothing if SQLite has no FTS5."""
    if not prepared(connection):
        return
    reached = _reached(connection)
    if _newest(connection) > reached:
        added = 0
        for session, first in connection.execute(_GROWN, (reached,)).fetchall():
            added += _insert(connection, ranked_events(connection, session, first=first, after=reached))
        _put_state(connection, reached=_newest(connection), size=size(connection) + added)


def ranked_events(
    connection: sqlite3.Connection,
    session: int,
    *,
    first: int = 0,
    after: int = 0,
    instead: Mapping[int, BlockText] = MappingProxyType({}),
) -> Iterator[tuple[int, str]]:
    """Yield the ranked events of a session as (id, text): from an index on, with ids above `after`.

    `instead` has the texts of blocks, by their first event, that are to be read in place of those of the index.
    """
    for begin, count, ends, packed in connection.execute(_BLOCKS, (session, first)).fetchall():
        block = instead.get(begin)
        rows = connection.execute(_EVENTS, (session, max(begin, first), begin + count, after)).fetchall()
        for event_index, id, type_code, name in rows:
            kind = EVENT_TYPE_CODES[type_code]
            if _is_ranked(kind, name):
                block = block or BlockText.of(ends, packed)
                text = ranked_text(without_preface(block.text(event_index - begin)), said=kind in _SAID)
                if text:
                    yield id, text


def carry(connection: sqlite3.Connection) -> None:
    """Prepare the texts of all events of a worker's index, for `take_over`."""
    for (session,) in connection.execute("SELECT id FROM session").fetchall():
        connection.executemany("INSERT INTO carried VALUES (?, ?)", ranked_events(connection, session))


def take_over(connection: sqlite3.Connection, shard: str, after: int) -> None:
    """Add the events of a worker's index, attached under this name, whose ids are moved after another id.

    If there are older events that aren't ranked yet, all wait for `cover`.
    """
    if not prepared(connection) or connection.execute(_UNRANKED, (_reached(connection), after)).fetchone()[0]:
        return
    added = _insert(connection, connection.execute(f"SELECT id + ?, words FROM {shard}.carried ORDER BY id", (after,)))
    _put_state(connection, reached=_newest(connection), size=size(connection) + added)


def make_anew(connection: sqlite3.Connection) -> None:
    """Rebuild the ranking index from the existing events, in the open transaction: no other words stay in it."""
    if not prepared(connection):
        return
    connection.execute("INSERT INTO ranked(ranked) VALUES ('delete-all')")
    _put_state(connection, reached=0, size=0)
    cover(connection)


def put_in_order(connection: sqlite3.Connection) -> None:
    """Rebuild the ranking index if many of its events are gone, in the open transaction."""
    if not prepared(connection):
        return
    gone, there = connection.execute(
        "SELECT count(*) - count(e.id), count(e.id) FROM ranked_docsize r LEFT JOIN event e ON e.id = r.id"
    ).fetchone()
    if gone > there // _STALE:
        make_anew(connection)


def _insert(connection: sqlite3.Connection, events: Iterable[tuple[int, str]]) -> int:
    """Add events; return how many."""
    rows = list(events)
    connection.executemany(_INSERT, rows)
    return len(rows)


def _reached(connection: sqlite3.Connection) -> int:
    return int(meta.get(connection, _REACHED) or 0)


def _put_state(connection: sqlite3.Connection, *, reached: int, size: int) -> None:
    """Note up to which event id all are ranked, and how many that are."""
    meta.put(connection, _REACHED, str(reached))
    meta.put(connection, _SIZE, str(size))


def _newest(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM main.event").fetchone()[0])


def _is_ranked(kind: EventType, name: str | None) -> bool:
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
