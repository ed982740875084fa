"""The queries of a search: blocks that may contain hits, the events in them that pass the filters, their texts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace_indexer.index.questions.conditions import PROJECTS_BY_HASH
from agtrace_indexer.index.questions.queries import GIVEN, as_json, first, rows, value, values
from agtrace_indexer.texts.blocks import BlockText

_CALL, _RESULT = TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]
_OF_PROJECT = f"b.session_id IN (SELECT id FROM session WHERE project_id IN ({PROJECTS_BY_HASH}))"
_OF_PROVIDER = "b.session_id IN (SELECT id FROM session WHERE provider = :provider)"
_OF_SESSIONS = "b.session_id IN (SELECT value FROM json_each(:sessions))"
_NAMED = "IN (SELECT id FROM name WHERE text = :tool COLLATE NOCASE)"
_HAS_TOOL = f"EXISTS (SELECT 1 FROM block_tool t WHERE t.block_id = b.id AND t.name_id {_NAMED})"
_IS_OF_TOOL = f"e.name_id {_NAMED} AND e.type IN ({_CALL}, {_RESULT})"
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]}"
_HAS_FAILED = (
    "EXISTS (SELECT 1 FROM event e WHERE e.session_id = b.session_id AND e.event_index >= b.first_index "
    f"AND e.event_index < b.first_index + b.event_count AND {_FAILED})"
)
_WITH_PATH = "touched t JOIN path p ON p.id = t.path_id AND instr(lower(p.text), lower(:path))"
_TOUCHES = f"b.session_id IN (SELECT t.session_id FROM {_WITH_PATH})"
_IS_TOUCHING = (
    f"e.type IN ({_CALL}, {_RESULT}) AND EXISTS (SELECT 1 FROM {_WITH_PATH} WHERE t.session_id = e.session_id "
    f"AND t.event_index = CASE e.type WHEN {_CALL} THEN e.event_index ELSE e.link END)"
)

_BLOCK = "SELECT b.id, b.session_id, b.first_index, b.event_count, b.t0, b.t1 FROM block b"

_BLOCKS = f"""
{_BLOCK} {{way}}
WHERE b.t0 <= :until AND b.t1 >= :since {{conditions}}
ORDER BY {{order}}
"""

_OF_SESSION = f"{_BLOCK} WHERE b.session_id = ? ORDER BY b.first_index"

_NEWEST_FIRST, _OLDEST_FIRST = "b.t1 DESC, b.id DESC", "b.t0, b.id"

_EVENTS = """
SELECT e.event_index, e.id, e.session_id, e.ts, e.turn_index, e.own
FROM event e
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last
  AND e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by > :snapshot)
  AND e.ts BETWEEN :since AND :until {conditions}
"""


@dataclass(frozen=True, slots=True)
class EventFilters:
    """The filters of a search; None means no restriction. Times are milliseconds since 1970 UTC."""

    session_row: int | None = None
    provider: str | None = None
    project_hash: str | None = None
    """The beginning of the hash."""
    event_type: EventType | None = None
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
        return (self.event_type, self.tool, self.failed, self.path) != (None, None, None, None)


class Span(NamedTuple):
    """The time span in which events are wanted, in milliseconds since 1970 UTC; both ends are included."""

    since: int
    until: int


class Block(NamedTuple):
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
    turn: int | None
    own: int
    """1 for a call to agtrace itself, and for its result."""


def blocks(
    connection: sqlite3.Connection,
    filters: EventFilters,
    span: Span,
    *,
    newest_first: bool,
    among: Collection[int] | None = None,
) -> Iterator[Block]:
    """Yield the blocks, among all or some, that may contain events which pass the filters, by time."""
    conditions, arguments = _of_blocks(filters)
    arguments |= {"since": span.since, "until": span.until}
    if among is not None:
        conditions.append("b.id IN (SELECT value FROM json_each(:among))")
        arguments["among"] = as_json(among)
    query = _BLOCKS.format(
        way=_way(filters, newest_first=newest_first) if among is None else "NOT INDEXED",
        conditions=_and(conditions),
        order=_NEWEST_FIRST if newest_first else _OLDEST_FIRST,
    )
    return rows(connection, Block, query, arguments)


def _way(filters: EventFilters, *, newest_first: bool) -> str:
    """Return how SQLite should go through the blocks: by time, unless those of one session are few."""
    if filters.session_row is not None:
        return "INDEXED BY block_place"
    return "INDEXED BY block_newest" if newest_first else "NOT INDEXED"


def blocks_of_session(connection: sqlite3.Connection, session_row: int) -> list[Block]:
    """Return all blocks of a session, in file order."""
    return list(rows(connection, Block, _OF_SESSION, (session_row,)))


def sessions_of(connection: sqlite3.Connection, blocks: Iterable[int]) -> set[int]:
    """Return the sessions that these blocks belong to; a block may be gone."""
    return set(values(connection, f"SELECT DISTINCT session_id FROM block WHERE id IN {GIVEN}", (as_json(blocks),)))


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
    begin, (conditions, arguments) = block.first_index, _of_events(filters)
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
    found = cursor.execute(_EVENTS.format(conditions=_and(conditions)), arguments)
    return [FoundEvent._make(row) for row in found if numbers is None or row[0] - begin in numbers]


def text(connection: sqlite3.Connection, block: int) -> BlockText:
    """Return the texts of a block. Raise `sqlite3.DatabaseError` if it has none: that is damage."""
    found = first(connection, BlockText.of, "SELECT ends, text FROM block_data WHERE block_id = ?", (block,))
    if found is None:
        raise sqlite3.DatabaseError("a block has no text")
    return found


def newest_event(connection: sqlite3.Connection) -> int:
    """Return the row id of the newest event, which marks the present state of the index; 0 if it is empty."""
    return int(value(connection, "SELECT coalesce(max(id), 0) FROM event"))


def _of_blocks(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions for blocks with such events, as SQL over `block` b, and the arguments."""
    return _given(
        (filters.session_row, "b.session_id = :session_row", {"session_row": filters.session_row}),
        (filters.sessions, _OF_SESSIONS, {"sessions": json.dumps(filters.sessions)}),
        (filters.provider, _OF_PROVIDER, {"provider": filters.provider}),
        (filters.project_hash, _OF_PROJECT, {"hash": (filters.project_hash or "").lower()}),
        (filters.event_type, "b.types & :type", {"type": 1 << _type(filters)}),
        (filters.tool, _HAS_TOOL, {"tool": filters.tool}),
        (filters.failed or None, _HAS_FAILED, {}),
        (filters.path, _TOUCHES, {"path": filters.path}),
    )


def _of_events(filters: EventFilters) -> tuple[list[str], dict[str, Any]]:
    """Return the further conditions for such events, as SQL over `event` e, and the arguments.

    Calls to agtrace are left out later, since they are counted.
    """
    return _given(
        (filters.event_type, "e.type = :type", {"type": _type(filters)}),
        (filters.tool, _IS_OF_TOOL, {"tool": filters.tool}),
        (filters.failed, _FAILED if filters.failed else f"({_FAILED}) IS NOT 1", {}),
        (filters.path, _IS_TOUCHING, {"path": filters.path}),
    )


def _type(filters: EventFilters) -> int:
    return 0 if filters.event_type is None else TYPE_CODE[filters.event_type]


def _given(*wanted: tuple[Any, str, dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions, with their arguments, of the values that are given."""
    conditions: list[str] = []
    arguments: dict[str, Any] = {}
    for given, condition, named in wanted:
        if given is not None:
            conditions.append(condition)
            arguments |= named
    return conditions, arguments


def _and(conditions: list[str]) -> str:
    return "".join(f" AND {condition}" for condition in conditions)
