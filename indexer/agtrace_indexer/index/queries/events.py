"""Events: single ones, those of a step, all of a session in file order; their texts."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES, TYPE_CODE
from agtrace_schema.events import EventType, Outcome
from msgspec import Struct

from agtrace_indexer.index.queries.base import (
    CODES,
    COUNTED,
    GIVEN,
    LIVE,
    OF_STEP,
    OWN_THEN,
    as_json,
    first,
    only,
    pairs,
    rows,
    value,
)
from agtrace_indexer.index.queries.turns import Step

if TYPE_CHECKING:
    from agtrace_indexer.texts.blocks import BlockText

_COLUMNS = """
e.session_id, e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.duration_ms,
e.line, e.offset, e.length, e.superseded_by, e.copy_of
"""

_EVENT = f"SELECT {_COLUMNS} FROM event e LEFT JOIN name n ON n.id = e.name_id"

_HERE = "e.session_id = ? AND e.event_index = ?"

_OF_SESSION = f"""
SELECT t.turn_index, coalesce(t.request_event, -1) = e.event_index, t.copied, {_COLUMNS}
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index {{call}}
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND {LIVE}
  AND (:turn IS NULL OR e.turn_index = :turn) {{condition}}
ORDER BY e.event_index
"""
_CALL = "LEFT JOIN event c ON e.type = :result AND c.session_id = e.session_id AND c.event_index = e.link"
_IS_NO_ANSWER = f"""
AND NOT (c.id IS NOT NULL AND coalesce(c.link, -1) = e.event_index AND {LIVE.replace("e.", "c.")})
"""

_LATER_CALLS = f"""
{_EVENT}
WHERE e.session_id = :session AND e.event_index > :behind AND e.type = :call
  AND e.name_id = (SELECT id FROM name WHERE text = :tool) AND e.superseded_by IS NULL
ORDER BY e.event_index LIMIT :most
"""

_REASONING = """
SELECT event_index, copy_of IS NOT NULL FROM event
WHERE session_id = :session AND type = :reasoning AND superseded_by IS NULL AND event_index <= :last
  AND (:turn IS NULL OR turn_index = :turn)
ORDER BY event_index
"""

_REASONING_LEFT_OUT = """
SELECT coalesce(sum(count), 0) FROM record_type
WHERE file_id = ? AND status = 'skipped' AND type IN ('reasoning/encrypted', 'reasoning/empty')
"""

_OWN_REQUESTS = f"FROM request r JOIN event e USING (session_id, event_index) WHERE {OWN_THEN}"

_REQUESTS = f"""
SELECT e.event_index, e.turn_index, r.text {_OWN_REQUESTS} AND e.event_index > :behind
ORDER BY e.event_index LIMIT :most
"""

_LATEST = f"{_EVENT} WHERE e.session_id = ? AND e.superseded_by IS NULL ORDER BY e.event_index DESC LIMIT ?"

_ALL = 1 << 62


class Request(NamedTuple):
    """A human request, or the task that a sub-agent was given in place of it."""

    event_index: int
    turn_index: int | None
    text: str
    """Its beginning, on one line."""


class Event(NamedTuple):
    """An event without its texts."""

    session_row: int
    event_index: int
    """Its index within the session."""
    type: EventType
    ts: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    turn_index: int | None
    step_index: int | None
    name: str | None
    """The tool, or the kind of a user text or notification."""
    outcome: Outcome | None
    """How the tool execution ended; None if it isn't one. A call without a result is unknown."""
    link: int | None
    """For a call: the event of its result; for a result: the event of its call."""
    duration_ms: int | None
    line: int
    """The number of its line in the log."""
    offset: int
    length: int
    """The length of its line in bytes."""
    superseded: bool
    """Whether another event replaced it, or the log retracted it."""
    rolled_back: bool
    """Whether it is superseded because somebody went back to before it."""
    copy_of: int | None
    """The row id of the event that it repeats, or 0 if that one isn't indexed; None if it is not a copy."""


class Placed(Struct, frozen=True):
    """An event, with facts about its turn."""

    event: Event
    turn_index: int | None
    """None if it belongs to no turn, or to one of which nothing is left."""
    opens_turn: bool
    """Whether it is the request of its turn."""
    copied_turn: bool
    """Whether its whole turn is copied."""


class Snapshot(NamedTuple):
    """A session at a moment: without anything that came later, and with what was retracted later."""

    last_event: int
    newest_row: int
    """The row id of that event."""

    def named(self, session_row: int, **more: Any) -> dict[str, Any]:
        """Return the arguments of a query over a session at this moment, with the codes of events and others."""
        return {**CODES, "session": session_row, "last": self.last_event, "newest": self.newest_row, **more}


NOW = Snapshot(_ALL, _ALL)
"""A session as it is now."""


def _event(session_row: int, event_index: int, type: int, ts: int, *columns: Any) -> Event:
    kind = EVENT_TYPE_CODES[type]
    turn_index, step_index, name, outcome, *others, superseded_by, copy_of = columns
    unanswered = Outcome.UNKNOWN if kind is EventType.TOOL_CALL else None
    ended = unanswered if outcome is None else OUTCOME_CODES[outcome]
    place = session_row, event_index, kind, ts, turn_index, step_index, name, ended
    return Event._make((*place, *others, superseded_by is not None, (superseded_by or 0) < 0, copy_of))


def _placed(turn_index: int | None, opens: int, copied: int | None, *columns: Any) -> Placed:
    return Placed(_event(*columns), turn_index, bool(opens), bool(copied))


# -- single events ---------------------------------------------------------------------------------


def at(connection: sqlite3.Connection, session_row: int, event_index: int) -> Event | None:
    """Return an event of a session; None if it has no such event."""
    return first(connection, _event, f"{_EVENT} WHERE {_HERE}", (session_row, event_index))


def one(connection: sqlite3.Connection, session_row: int, event_index: int) -> Event:
    """Return an event of a session. Raise `KeyError` if it has no such event."""
    return only(connection, _event, f"{_EVENT} WHERE {_HERE}", (session_row, event_index))


def several(connection: sqlite3.Connection, session_row: int, indices: Iterable[int]) -> list[Event]:
    """Return those of these events that the session has, in file order."""
    sql = f"{_EVENT} WHERE e.session_id = ? AND e.event_index IN {GIVEN} ORDER BY e.event_index"
    return list(rows(connection, _event, sql, (session_row, as_json(indices))))


def address(connection: sqlite3.Connection, row: int) -> tuple[str, int] | None:
    """Return the id of an event's session and its index there, given its row id; None if there is no such event."""
    sql = "SELECT s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id WHERE e.id = ?"
    return first(connection, lambda *found: found, sql, (row,))


# -- a session -------------------------------------------------------------------------------------


def last(connection: sqlite3.Connection, session_row: int) -> int | None:
    """Return the last event of a session."""
    result: int | None = value(connection, "SELECT max(event_index) FROM event WHERE session_id = ?", (session_row,))
    return result


def latest(connection: sqlite3.Connection, session_row: int, most: int) -> list[Event]:
    """Return the last events of a session, copies included, the latest first, at most `most`."""
    return list(rows(connection, _event, _LATEST, (session_row, most)))


def last_of_type(connection: sqlite3.Connection, session_row: int, type: EventType, last_event: int) -> int | None:
    """Return the last event of a type in a session, up to an event."""
    sql = (
        "SELECT event_index FROM event WHERE session_id = ? AND event_index <= ? AND type = ? "
        "AND superseded_by IS NULL ORDER BY event_index DESC LIMIT 1"
    )
    result: int | None = value(connection, sql, (session_row, last_event, TYPE_CODE[type]))
    return result


def snapshot(connection: sqlite3.Connection, session_row: int, last_event: int) -> Snapshot:
    """Return a snapshot of a session at the moment when this was its last event."""
    sql = "SELECT id FROM event WHERE session_id = ? AND event_index = ?"
    return Snapshot(last_event, int(value(connection, sql, (session_row, last_event)) or 0))


def duration(connection: sqlite3.Connection, session_row: int) -> int | None:
    """Return the time from the first to the last of a session's own events, in milliseconds; None is unknown."""
    sql = f"SELECT max(nullif(e.ts, 0)) - min(nullif(e.ts, 0)) FROM event e WHERE e.session_id = ? AND {COUNTED}"
    result: int | None = value(connection, sql, (session_row,))
    return result


def of_session(
    connection: sqlite3.Connection,
    session_row: int,
    then: Snapshot,
    *,
    from_event: int = 0,
    turn_index: int | None = None,
    answers: bool = True,
) -> Iterator[Placed]:
    """Yield the events of a snapshot from one on, or those of a turn, in file order, each read on demand.

    Without `answers`, the results that their calls link to are left out.
    """
    query = _OF_SESSION.format(call="" if answers else _CALL, condition="" if answers else _IS_NO_ANSWER)
    return rows(connection, _placed, query, then.named(session_row, first=from_event, turn=turn_index))


def later_calls(
    connection: sqlite3.Connection, session_row: int, tool: str, *, behind: int, most: int
) -> Iterator[Event]:
    """Yield the next calls of a tool after an event, at most `most`, each read on demand."""
    named = {**CODES, "session": session_row, "behind": behind, "tool": tool, "most": most}
    return rows(connection, _event, _LATER_CALLS, named)


# -- steps -----------------------------------------------------------------------------------------


def of_step(connection: sqlite3.Connection, session_row: int, step: Step, types: Iterable[EventType]) -> list[Event]:
    """Return the events of these types in a step, in file order."""
    sql = f"{_EVENT} WHERE {OF_STEP} AND e.type IN {_codes(types)} ORDER BY e.event_index"
    return list(rows(connection, _event, sql, {**step._asdict(), "session": session_row}))


def of_steps(
    connection: sqlite3.Connection,
    session_row: int,
    steps: Collection[tuple[int, int]],
    types: Iterable[EventType],
    last_event: int,
) -> list[Event]:
    """Return the events of these types in some steps, given as (turn, step), up to an event, in file order."""
    if not steps:
        return []
    places = ", ".join(f"({turn}, {step})" for turn, step in sorted(steps))
    sql = (
        f"{_EVENT} WHERE e.session_id = ? AND e.superseded_by IS NULL AND e.event_index <= ? "
        f"AND e.type IN {_codes(types)} AND (e.turn_index, e.step_index) IN (VALUES {places}) ORDER BY e.event_index"
    )
    return list(rows(connection, _event, sql, (session_row, last_event)))


def _codes(types: Iterable[EventType]) -> str:
    return f"({', '.join(str(TYPE_CODE[type]) for type in types)})"


# -- reasoning -------------------------------------------------------------------------------------


def reasoning(
    connection: sqlite3.Connection, session_row: int, *, last_event: int, turn_index: int | None
) -> dict[int, int]:
    """Return the reasoning events up to an event, in a whole session or in one turn -> 1 for copies, else 0."""
    return pairs(connection, _REASONING, {**CODES, "session": session_row, "last": last_event, "turn": turn_index})


def reasoning_left_out(connection: sqlite3.Connection, file_row: int) -> int:
    """Return how often a log has reasoning without readable text, which is therefore no event (Codex)."""
    return int(value(connection, _REASONING_LEFT_OUT, (file_row,)))


# -- requests ---------------------------------------------------------------------------------------


def requests_then(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: int, most: int
) -> list[Request]:
    """Return the requests of a session after an event, in file order, at most `most`."""
    return list(rows(connection, Request, _REQUESTS, then.named(session_row, behind=behind, most=most)))


def count_requests_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of requests of a session."""
    return int(value(connection, f"SELECT count(*) {_OWN_REQUESTS}", then.named(session_row)))


# -- texts --------------------------------------------------------------------------------------------

_BLOCK = """
SELECT id, first_index FROM block WHERE session_id = ? AND first_index <= ? ORDER BY first_index DESC LIMIT 1
"""

_DATA = "SELECT ends, text FROM block_data WHERE block_id = ?"

_ENDS = """
SELECT b.first_index, d.ends FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ? ORDER BY b.first_index
"""


class StoredEvent(Struct, frozen=True):
    """An event with its texts."""

    row: Event
    text: str
    rest: dict[str, Any]
    """The stored part of its payload that its text doesn't contain."""

    @property
    def event_index(self) -> int:
        """Its index within the session."""
        return self.row.event_index

    @property
    def type(self) -> EventType:
        """Its type."""
        return self.row.type

    @property
    def outcome(self) -> Outcome | None:
        """How the tool execution ended."""
        return self.row.outcome


ReadText: TypeAlias = Callable[[Event], StoredEvent]
"""Returns an event with its texts."""


def text_reader(connection: sqlite3.Connection) -> ReadText:
    """Return a reader of texts, for one event after another; it keeps the block opened last for the next event."""
    from agtrace_indexer.texts.blocks import BlockText

    kept: tuple[int, BlockText, list[dict[str, Any] | None]] | None = None

    def read(event: Event) -> StoredEvent:
        nonlocal kept
        block, first = only(connection, lambda *row: row, _BLOCK, (event.session_row, event.event_index))
        if kept is None or kept[0] != block:
            kept = None  # each may be as large as the longest line: never two at once
            found = only(connection, BlockText.of, _DATA, (block,))
            kept = block, found, found.payloads()
        number = event.event_index - first
        return StoredEvent(event, kept[1].text(number), kept[2][number] or {})

    return read


def with_texts(connection: sqlite3.Connection, events: Iterable[Event]) -> list[StoredEvent]:
    """Return events with their texts."""
    return list(map(text_reader(connection), events))


def having_text(connection: sqlite3.Connection, session_row: int, indices: Collection[int]) -> set[int]:
    """Return those of these events that have a text, judged by where texts end, without decompressing any."""
    from agtrace_indexer.texts.blocks import BlockText

    if not indices:
        return set()
    blocks = list(
        rows(connection, lambda first, ends: (first, BlockText(b"", array("I", ends))), _ENDS, (session_row,))
    )
    firsts = [first for first, _ in blocks]
    result = set()
    for index in indices:
        first, ends = blocks[bisect_right(firsts, index) - 1]
        if ends.ends[index - first] > ends.start(index - first):
            result.add(index)
    return result
