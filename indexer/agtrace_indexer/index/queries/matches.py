"""The queries of a search: blocks that may contain hits, the events in them that pass the filters, their texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Set
from typing import Any, NamedTuple, cast

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import ILL_ENDED, EventType, Outcome, UserKind
from agtrace_schema.requests import EventKind
from msgspec import Struct

from agtrace_indexer.index.queries.base import (
    FOUND,
    GIVEN,
    HAS_PATH,
    OF_PROJECTS,
    as_json,
    conditions,
    first,
    is_team,
    rows,
)
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
    result = _fetched(connection, block) if is_team(connection) else first(connection, BlockText.of, _TEXT, (block,))
    if result is None:
        raise sqlite3.DatabaseError("a block has no text")
    return result


class Ahead:
    """The texts that a search will ask a team's server for, as far as they are known; its connection has one."""

    def __init__(self, blocks: Iterable[int] = ()) -> None:
        """Expect these blocks to be opened, some or all of them, in this order."""
        self.blocks = [*blocks]
        self.places = {block: place for place, block in enumerate(self.blocks)}
        self.texts: dict[int, BlockText] = {}


def _expected(connection: sqlite3.Connection, blocks: Iterator[Block]) -> Iterable[Block]:
    """Return blocks that are about to be opened in this order."""
    if not is_team(connection):
        return blocks
    expected = list(blocks)
    cast(Any, connection).ahead = Ahead(block.id for block in expected)
    return expected


def _fetched(connection: sqlite3.Connection, block: int) -> BlockText | None:
    """Return the texts of a block of a team's index, which are fetched together with those of the next blocks."""
    ahead: Ahead = cast(Any, connection).ahead
    if block not in ahead.texts:
        place = ahead.places.get(block)
        wanted = [block] if place is None else ahead.blocks[place : place + _AHEAD]
        found = rows(connection, lambda block, *packed: (block, BlockText.of(*packed)), _TEXTS, (as_json(wanted),))
        ahead.texts = dict(found)
    return ahead.texts.get(block)


# -- filters ------------------------------------------------------------------------------------------

_CALL, _RESULT = TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]
_OF_PROJECTS = f"b.session_id IN (SELECT s.id FROM session s WHERE {OF_PROJECTS})"
_OF_PROVIDER = "b.session_id IN (SELECT id FROM session WHERE provider = :provider)"
_OF_SESSIONS = "b.session_id IN (SELECT value FROM json_each(:sessions))"
_NAMED = "IN (SELECT id FROM name WHERE lower(text) = lower(:tool))"
_HAS_TOOL = f"EXISTS (SELECT 1 FROM block_tool t WHERE t.block_id = b.id AND t.name_id {_NAMED})"
_IS_OF_TOOL = f"e.name_id {_NAMED} AND e.type IN ({_CALL}, {_RESULT})"
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]}"
_ILL_ENDED = f"e.outcome IN ({', '.join(str(OUTCOME_CODE[one]) for one in ILL_ENDED)})"
_NOT_FAILED = f"coalesce(e.outcome, -1) != {OUTCOME_CODE[Outcome.FAILED]}"
_HAS_FAILED = (
    "EXISTS (SELECT 1 FROM event e WHERE e.session_id = b.session_id AND e.event_index >= b.first_index "
    f"AND e.event_index < b.first_index + b.event_count AND {_FAILED})"
)
_WITH_PATH = f"touched t JOIN path p ON p.id = t.path_id AND {HAS_PATH.format('p.text')}"
_TOUCHES = f"b.session_id IN (SELECT t.session_id FROM {_WITH_PATH})"
_IS_TOUCHING = (
    f"e.type IN ({_CALL}, {_RESULT}) AND EXISTS (SELECT 1 FROM {_WITH_PATH} WHERE t.session_id = e.session_id "
    f"AND t.event_index = CASE e.type WHEN {_CALL} THEN e.event_index ELSE e.link END)"
)

_WRITES = (
    "EXISTS (SELECT 1 FROM touched t "
    "WHERE t.session_id = e.session_id AND t.event_index = e.event_index AND t.access = 'write')"
)
_TYPED = f"('{UserKind.HUMAN}', '{UserKind.COMMAND}')"
"""A slash command is typed as well, often with a request behind it."""
_TELLS_OF_AN_ERROR = "e.name_id IN (SELECT id FROM name WHERE instr(lower(text), 'error'))"
"""A notification by its kind: of the model's API, or of the agent itself."""
_NOTIFICATION = TYPE_CODE[EventType.NOTIFICATION]
_KINDS: dict[EventKind, tuple[tuple[EventType, ...], str]] = {
    "human": ((EventType.USER,), f"e.name_id IN (SELECT id FROM name WHERE text IN {_TYPED})"),
    "message": ((EventType.MESSAGE,), "true"),
    "thought": ((EventType.REASONING,), "true"),
    "call": ((EventType.TOOL_CALL,), "true"),
    "command": ((EventType.TOOL_CALL,), "e.program_id IS NOT NULL"),
    "edit": ((EventType.TOOL_CALL,), _WRITES),
    "output": ((EventType.TOOL_RESULT,), "true"),
    "error": (
        (EventType.TOOL_RESULT, EventType.NOTIFICATION),
        f"CASE e.type WHEN {_NOTIFICATION} THEN {_TELLS_OF_AN_ERROR} ELSE {_ILL_ENDED} END",
    ),
    "notification": ((EventType.NOTIFICATION,), "true"),
}
"""The types of the events of a kind, and what else they fulfil."""


class EventFilters(Struct, frozen=True):
    """The filters of a search; None means no restriction. Times are milliseconds since 1970 UTC."""

    session_row: int | None = None
    provider: str | None = None
    projects: tuple[int, ...] | None = None
    """The row ids of projects."""
    event_type: EventType | None = None
    kind: EventKind | None = None
    tool: str | None = None
    failed: bool | None = None
    since: int | None = None
    until: int | None = None
    path: str | None = None
    """A text in the path of a file named in a tool call, ignoring the case of A to Z; finds such calls and results."""
    sessions: tuple[int, ...] | None = None
    """The row ids of sessions."""
    without_own: bool = False
    """Whether to leave out the calls to agtrace itself, and their results."""

    @property
    def are_of_events(self) -> bool:
        """Whether they filter events, and not only blocks."""
        return any(one is not None for one in (self.event_type, self.kind, self.tool, self.failed, self.path))


def _of_sessions(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return what the sessions of such events fulfil, as SQL over `block` b, with its arguments."""
    return conditions(
        ("b.session_id = :session_row", "session_row", filters.session_row),
        (_OF_SESSIONS, "sessions", None if filters.sessions is None else as_json(filters.sessions)),
        (_OF_PROVIDER, "provider", filters.provider),
        (_OF_PROJECTS, "projects", None if filters.projects is None else as_json(filters.projects)),
    )


def of_blocks(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions for blocks with such events, as SQL over `block` b, and the arguments."""
    of_sessions, arguments = _of_sessions(filters)
    type = filters.event_type and 1 << TYPE_CODE[filters.event_type]
    types_of_kind = filters.kind and sum(1 << code for code in _codes(filters))
    more, others = conditions(
        ("b.types & :type != 0", "type", type),
        ("b.types & :types_of_kind != 0", "types_of_kind", types_of_kind),
        (_HAS_TOOL, "tool", filters.tool),
        (_HAS_FAILED, "failed", filters.failed or None),
        (_TOUCHES, "path", filters.path),
    )
    return of_sessions + more, arguments | others


def of_events(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the further conditions for such events, as SQL over `event` e, and the arguments."""
    return conditions(
        ("e.own IS NULL", "own", filters.without_own or None),
        ("e.type = :type", "type", filters.event_type and TYPE_CODE[filters.event_type]),
        (_is_of_kind(filters), "kind", filters.kind),
        (_IS_OF_TOOL, "tool", filters.tool),
        (_FAILED if filters.failed else _NOT_FAILED, "has_failed", filters.failed),
        (_IS_TOUCHING, "path", filters.path),
    )


def of_ranked_events(filters: EventFilters) -> tuple[str, dict[str, Any]]:
    """Return all that events must fulfil, as SQL over `event` e that follows another condition, with its arguments."""
    of_such, arguments = of_events(filters)
    of_sessions, sessions = _of_sessions(filters)
    times, of_times = conditions(("e.ts >= :since", "since", filters.since), ("e.ts <= :until", "until", filters.until))
    in_sessions = [one.replace("b.session_id", "e.session_id") for one in of_sessions]
    return all_of([*of_such, *in_sessions, *times]), arguments | sessions | of_times


def _codes(filters: EventFilters) -> list[int]:
    """Return the types of the events of a kind, as stored."""
    return [] if filters.kind is None else [TYPE_CODE[type] for type in _KINDS[filters.kind][0]]


def _is_of_kind(filters: EventFilters) -> str:
    """Return what the events of a kind fulfil, as SQL."""
    condition = "true" if filters.kind is None else _KINDS[filters.kind][1]
    return f"e.type IN ({', '.join(map(str, _codes(filters)))}) AND {condition}"


def all_of(wanted: list[str]) -> str:
    """Return conditions as SQL that follows another one."""
    return "".join(f" AND {condition}" for condition in wanted)
