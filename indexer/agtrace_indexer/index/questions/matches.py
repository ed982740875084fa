"""The queries of a search: blocks that may contain hits, the events in them that pass the filters, their texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Set
from typing import Any, NamedTuple, cast

from msgspec import Struct

from agtrace_indexer.index.questions.filters import EventFilters, all_of, of_blocks, of_events
from agtrace_indexer.index.questions.queries import FOUND, GIVEN, as_json, first, is_team, rows, value
from agtrace_indexer.texts.blocks import BlockText

_BLOCK = "SELECT b.id, b.session_id, b.first_index, b.event_count, b.t0, b.t1 FROM block b"

_TEXT = "SELECT ends, text FROM block_data WHERE block_id = ?"
_TEXTS = f"SELECT block_id, ends, text FROM block_data WHERE block_id IN {GIVEN}"

_AHEAD = 16
"""Texts that are fetched at once from a team's server, where asking for one costs more than it has."""

_BLOCKS = f"""
{_BLOCK} {{way}}
WHERE b.t0 <= :until AND b.t1 >= :since {{conditions}}
ORDER BY {{order}}
"""

_NEWEST_FIRST, _OLDEST_FIRST = "b.t1 DESC, b.id DESC", "b.t0, b.id"

_EVENTS = f"""
SELECT e.event_index, e.id, e.session_id, e.ts
FROM event e
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last
  AND {FOUND} AND e.ts BETWEEN :since AND :until {{conditions}}
"""


class Span(NamedTuple):
    """The time span in which events are wanted, in milliseconds since 1970 UTC; both ends are included."""

    since: int
    until: int


class Block(Struct, frozen=True):
    """A block of neighbouring events of one session."""

    id: int
    session: int
    first_index: int
    event_count: int
    t0: int
    """The earliest time of its events; 0 is unknown."""
    t1: int
    """The latest one."""

    @property
    def last_index(self) -> int:
        """The index of its last event."""
        return self.first_index + self.event_count - 1


class FoundEvent(NamedTuple):
    """An event that passes the filters."""

    event_index: int
    id: int
    session: int
    ts: int


def blocks(
    connection: sqlite3.Connection,
    filters: EventFilters,
    span: Span,
    *,
    newest_first: bool,
    among: Collection[int] | None = None,
) -> Iterator[Block]:
    """Yield the blocks, among all or some, that may contain events which pass the filters, by time."""
    conditions, arguments = of_blocks(filters)
    arguments |= {"since": span.since, "until": span.until}
    if among is not None:
        conditions.append("b.id IN (SELECT value FROM json_each(:among))")
        arguments["among"] = as_json(among)
    query = _BLOCKS.format(
        way="" if is_team(connection) else _way(filters, among, newest_first=newest_first),
        conditions=all_of(conditions),
        order=_NEWEST_FIRST if newest_first else _OLDEST_FIRST,
    )
    return iter(_expected(connection, rows(connection, Block, query, arguments)))


def _way(filters: EventFilters, among: Collection[int] | None, *, newest_first: bool) -> str:
    """Return how SQLite should go through the blocks: by time, unless those that are meant are few."""
    if among is not None:
        return "NOT INDEXED"
    if filters.session_row is not None:
        return "INDEXED BY block_place"
    return "INDEXED BY block_newest" if newest_first else "NOT INDEXED"


def events(
    connection: sqlite3.Connection,
    filters: EventFilters,
    block: Block,
    snapshot: int,
    span: Span,
    numbers: Set[int] | None = None,
) -> list[FoundEvent]:
    """Return those of a block's events, or of some of them, that pass the filters, as in a snapshot.

    `numbers` are positions within the block; if given, they must not be empty.
    """
    begin, (conditions, arguments) = block.first_index, of_events(filters)
    arguments |= {
        "session": block.session,
        "first": begin if numbers is None else begin + min(numbers),
        "last": block.last_index if numbers is None else begin + max(numbers),
        "snapshot": snapshot,
        "since": span.since,
        "until": span.until,
    }
    cursor = connection.cursor()
    cursor.row_factory = None  # few of many events may be wanted: only those become rows of our own
    found = cursor.execute(_EVENTS.format(conditions=all_of(conditions)), arguments)
    return [FoundEvent._make(row) for row in found if numbers is None or row[0] - begin in numbers]


def text(connection: sqlite3.Connection, block: int) -> BlockText:
    """Return the texts of a block. Raise `sqlite3.DatabaseError` if it has none: that is damage."""
    found = _fetched(connection, block) if is_team(connection) else first(connection, BlockText.of, _TEXT, (block,))
    if found is None:
        raise sqlite3.DatabaseError("a block has no text")
    return found


class Ahead:
    """The texts that a search will ask a team's server for, as far as they are known; its connection has one."""

    def __init__(self, blocks: Iterable[int] = ()) -> None:
        """Expect these blocks to be opened, some or all of them, in this order."""
        self.blocks = [*blocks]
        self.places = {block: place for place, block in enumerate(self.blocks)}
        self.texts: dict[int, BlockText] = {}


def _expected(connection: sqlite3.Connection, found: Iterator[Block]) -> Iterable[Block]:
    """Return blocks that are about to be opened in this order."""
    if not is_team(connection):
        return found
    blocks = list(found)
    cast(Any, connection).ahead = Ahead(block.id for block in blocks)
    return blocks


def _fetched(connection: sqlite3.Connection, block: int) -> BlockText | None:
    """Return the texts of a block of a team's index, which are fetched together with those of the next blocks."""
    ahead: Ahead = cast(Any, connection).ahead
    if block not in ahead.texts:
        place = ahead.places.get(block)
        wanted = [block] if place is None else ahead.blocks[place : place + _AHEAD]
        found = rows(connection, _named, _TEXTS, (as_json(wanted),))
        ahead.texts = dict(found)
    return ahead.texts.get(block)


def _named(block: int, ends: bytes, text: bytes) -> tuple[int, BlockText]:
    return block, BlockText.of(ends, text)


def newest_event(connection: sqlite3.Connection) -> int:
    """Return the row id of the newest event, which marks the present state of the index; 0 if it is empty."""
    return int(value(connection, "SELECT coalesce(max(id), 0) FROM event"))
