"""Events: single ones, those of a step, and all of a session in file order."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace_indexer.index.questions.conditions import CODES, COUNTED, LIVE, OF_STEP
from agtrace_indexer.index.questions.rows import first, listed, only, rows, value
from agtrace_indexer.index.questions.turns import Step

_COLUMNS = """
e.session_id, e.event_index, e.type, e.ts, e.turn_index, e.step_index, n.text, e.outcome, e.link, e.duration_ms,
e.line, e.offset, e.length, e.superseded_by, e.copy_of
"""

_EVENT = f"SELECT {_COLUMNS} FROM event e LEFT JOIN name n ON n.id = e.name_id"

_HERE = "e.session_id = ? AND e.event_index = ?"

_OF_SESSION = f"""
SELECT t.turn_index, t.request_event IS e.event_index, t.copied, {_COLUMNS}
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND {LIVE}
  AND e.turn_index IS coalesce(:turn, e.turn_index)
ORDER BY e.event_index
"""

_LIVE_CALL = LIVE.replace("e.", "c.")

_WITHOUT_ANSWERS = f"""
SELECT t.turn_index, t.request_event IS e.event_index, t.copied, {_COLUMNS}
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
LEFT JOIN event c ON e.type = :result AND c.session_id = e.session_id AND c.event_index = e.link
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND {LIVE}
  AND e.turn_index IS coalesce(:turn, e.turn_index)
  AND NOT (c.id IS NOT NULL AND c.link IS e.event_index AND {_LIVE_CALL})
ORDER BY e.event_index
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

_ALL = 1 << 62


class Event(NamedTuple):
    """An event without its texts."""

    session_row: int
    event_index: int
    """Its place in the session."""
    type: EventType
    ts: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    turn_index: int | None
    step_index: int | None
    name: str | None
    """The tool, or the kind of a user's text or of a notification."""
    outcome: Outcome | None
    """How the tool execution ended; None for what is no tool execution. A call without a result is unknown."""
    link: int | None
    """The event of a call's result, or of a result's call."""
    duration_ms: int | None
    line: int
    """Where it stands in the log."""
    offset: int
    length: int
    """Bytes of its line."""
    superseded: bool
    """Whether another event replaced it, or the log took it back."""
    copy_of: int | None
    """The row of the event that it repeats, 0 where that one isn't indexed; None: it is no copy."""


class Placed(NamedTuple):
    """An event, and what its turn says of it."""

    event: Event
    turn_index: int | None
    """None for what belongs to no turn, or to one of which nothing is left."""
    opens_turn: bool
    """Whether it is the request of its turn."""
    copied_turn: bool
    """Whether all of its turn is copied."""


class Snapshot(NamedTuple):
    """A session at a moment: what came later isn't in it, and what was taken back later still is."""

    last_event: int
    newest_row: int
    """The row of that event."""


NOW = Snapshot(_ALL, _ALL)
"""A session as it is."""


class Address(NamedTuple):
    """The session of an event, by its id, and its place there."""

    uid: str
    event_index: int


class Thinking(NamedTuple):
    """An event in which a model thought."""

    event_index: int
    copied: int
    """1 where it repeats one of another session."""


class Times(NamedTuple):
    """Between which times something happened, in milliseconds since 1970 UTC; None is unknown."""

    first: int | None
    last: int | None


def _event(session_row: int, event_index: int, type: int, ts: int, *columns: Any) -> Event:
    kind = EVENT_TYPE_CODES[type]
    turn_index, step_index, name, outcome, *others, superseded_by, copy_of = columns
    ended = _ended(kind, outcome)
    place = session_row, event_index, kind, ts, turn_index, step_index, name, ended
    return Event._make((*place, *others, superseded_by is not None, copy_of))


def _ended(kind: EventType, outcome: int | None) -> Outcome | None:
    if outcome is None:
        return Outcome.UNKNOWN if kind is EventType.TOOL_CALL else None
    return OUTCOME_CODES[outcome]


def _placed(turn_index: int | None, opens: int, copied: int | None, *columns: Any) -> Placed:
    return Placed(_event(*columns), turn_index, bool(opens), bool(copied))


# -- single events ---------------------------------------------------------------------------------


def at(connection: sqlite3.Connection, session_row: int, event_index: int) -> Event | None:
    """An event of a session; None where it has no such event."""
    return first(connection, _event, f"{_EVENT} WHERE {_HERE}", (session_row, event_index))


def one(connection: sqlite3.Connection, session_row: int, event_index: int) -> Event:
    """An event that a session has. Raises `KeyError` where it hasn't."""
    return only(connection, _event, f"{_EVENT} WHERE {_HERE}", (session_row, event_index))


def several(connection: sqlite3.Connection, session_row: int, indices: Iterable[int]) -> list[Event]:
    """These events of a session, in file order, as far as there are such."""
    sql = f"{_EVENT} WHERE e.session_id = ? AND e.event_index IN {listed(indices)} ORDER BY e.event_index"
    return list(rows(connection, _event, sql, (session_row,)))


def address(connection: sqlite3.Connection, row: int) -> Address | None:
    """Where the event of a row stands; None where there is none."""
    sql = "SELECT s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id WHERE e.id = ?"
    return first(connection, Address, sql, (row,))


def line_length(connection: sqlite3.Connection, session_row: int, event_index: int) -> int:
    """The bytes of the line on which an event stands; 0 where the session has no such event."""
    sql = "SELECT length FROM event WHERE session_id = ? AND event_index = ?"
    return int(value(connection, sql, (session_row, event_index)) or 0)


# -- a session -------------------------------------------------------------------------------------


def last(connection: sqlite3.Connection, session_row: int) -> int | None:
    """The last event of a session."""
    found: int | None = value(connection, "SELECT max(event_index) FROM event WHERE session_id = ?", (session_row,))
    return found


def snapshot(connection: sqlite3.Connection, session_row: int, last_event: int) -> Snapshot:
    """A session at the moment when this was its last event."""
    sql = "SELECT id FROM event WHERE session_id = ? AND event_index = ?"
    return Snapshot(last_event, int(value(connection, sql, (session_row, last_event)) or 0))


def times(connection: sqlite3.Connection, session_row: int) -> Times:
    """Between which times the events of a session's own happened."""
    sql = f"SELECT min(nullif(e.ts, 0)), max(nullif(e.ts, 0)) FROM event e WHERE e.session_id = ? AND {COUNTED}"
    return only(connection, Times, sql, (session_row,))


def of_session(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
) -> Iterator[Placed]:
    """The events of a snapshot from one on, or those of a turn, in file order; each is read when it is asked for."""
    return rows(connection, _placed, _OF_SESSION, _named(session_row, then, from_event, turn_index))


def without_answers(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, from_event: int, turn_index: int | None
) -> Iterator[Placed]:
    """The same without results that stand for themselves with their call."""
    return rows(connection, _placed, _WITHOUT_ANSWERS, _named(session_row, then, from_event, turn_index))


def _named(session_row: int, then: Snapshot, from_event: int, turn_index: int | None) -> dict[str, Any]:
    return {
        **CODES, "session": session_row, "first": from_event, "last": then.last_event, "newest": then.newest_row,
        "turn": turn_index,
    }  # fmt: skip


def later_calls(
    connection: sqlite3.Connection, session_row: int, tool: str, *, behind: int, most: int
) -> Iterator[Event]:
    """The next calls of a tool behind an event, at most this many; each is read when it is asked for."""
    named = {**CODES, "session": session_row, "behind": behind, "tool": tool, "most": most}
    return rows(connection, _event, _LATER_CALLS, named)


# -- steps -----------------------------------------------------------------------------------------


def of_step(connection: sqlite3.Connection, session_row: int, step: Step, types: Iterable[EventType]) -> list[Event]:
    """The events of these types in a step, in file order."""
    sql = f"{_EVENT} WHERE {OF_STEP} AND e.type IN {_codes(types)} ORDER BY e.event_index"
    return list(rows(connection, _event, sql, {**step._asdict(), "session": session_row}))


def of_steps(
    connection: sqlite3.Connection,
    session_row: int,
    steps: Collection[tuple[int, int]],
    types: Iterable[EventType],
    last_event: int,
) -> list[Event]:
    """The events of these types in some steps, each given as (turn, step), up to an event, in file order."""
    if not steps:
        return []
    places = ", ".join(f"({turn}, {step})" for turn, step in sorted(steps))
    sql = (
        f"{_EVENT} WHERE e.session_id = ? AND e.superseded_by IS NULL AND e.event_index <= ? "
        f"AND e.type IN {_codes(types)} AND (e.turn_index, e.step_index) IN (VALUES {places}) ORDER BY e.event_index"
    )
    return list(rows(connection, _event, sql, (session_row, last_event)))


def _codes(types: Iterable[EventType]) -> str:
    return listed(TYPE_CODE[type] for type in types)


# -- reasoning -------------------------------------------------------------------------------------


def reasoning(
    connection: sqlite3.Connection, session_row: int, *, last_event: int, turn_index: int | None
) -> list[Thinking]:
    """Where a model thought, up to an event, in all of a session or in a turn, copies included."""
    named = {**CODES, "session": session_row, "last": last_event, "turn": turn_index}
    return list(rows(connection, Thinking, _REASONING, named))


def reasoning_left_out(connection: sqlite3.Connection, file_row: int) -> int:
    """How often a log holds reasoning without a readable text, which therefore is no event (Codex)."""
    return int(value(connection, _REASONING_LEFT_OUT, (file_row,)))
