"""Turns and steps: their figures, the calls made in them, their endings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agtrace_schema.events import UserKind
from msgspec import Struct

from agtrace_indexer.index.queries.base import CODES, COUNTED, GIVEN, as_json, rows, value, values
from agtrace_indexer.index.sums import TOTAL


class TokenCounts(NamedTuple):
    """Tokens by kind; None if no log has them. Reasoning is a part of the output, the others add up to the total."""

    input_tokens: int | None
    """Uncached input."""
    cache_creation_5m_tokens: int | None
    cache_creation_1h_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None


TOKEN_COLUMNS = ", ".join(TokenCounts._fields)
"""The columns of `TokenCounts`, as SQL."""

_TURN = f"""
SELECT t.turn_index, t.first_event, t.last_event, t.started_at, t.request_event, r.text, t.copied, t.step_count,
  t.tool_calls, t.failed_calls, t.incomplete_usage, {TOKEN_COLUMNS}
FROM turn t LEFT JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
"""

_ENDINGS = """
SELECT e.turn_index, count(e.step_index) AS responses,
  count(*) FILTER (WHERE e.type = :call AND e.outcome = :failed) AS failed,
  sum(e.type = :call AND e.outcome IN (:rejected, :interrupted)) + sum(e.type = :user AND n.text = :stop) AS stopped,
  max(CASE WHEN e.type = :call AND coalesce(e.outcome, :unknown) IN (:unknown, :running) THEN e.event_index END)
    AS open_call,
  max(CASE WHEN e.type = :result AND e.outcome = :failed THEN e.event_index END) AS last_failed,
  max(CASE WHEN e.type = :result THEN e.event_index END) AS last_result,
  max(CASE WHEN e.type = :message THEN e.event_index END) AS last_message,
  max(CASE WHEN e.type = :notification AND instr(:api_errors, '"' || n.text || '"')
    THEN e.event_index END) AS api_error
FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND e.superseded_by IS NULL
GROUP BY e.turn_index
"""

_TOOLS = """
SELECT e.turn_index, n.text, count(*), count(*) FILTER (WHERE e.outcome = :failed)
FROM event e JOIN name n ON n.id = e.name_id
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND e.type = :call
  AND e.superseded_by IS NULL
GROUP BY e.turn_index, n.id ORDER BY e.turn_index NULLS FIRST, min(e.event_index)
"""

_SPANS = """
SELECT turn_index, first_event, last_event FROM turn
WHERE session_id = :session AND turn_index >= :from_turn AND turn_index = coalesce(:turn, turn_index)
  AND first_event <= :last_event ORDER BY turn_index
"""

_STEPS = """
SELECT turn_index, step_index, min(event_index), max(event_index), sum(type = :call),
  count(*) FILTER (WHERE type = :call AND outcome = :failed)
FROM event
WHERE session_id = :session AND event_index BETWEEN :first AND :last AND turn_index = :turn
  AND step_index > :behind AND superseded_by IS NULL
GROUP BY turn_index, step_index ORDER BY step_index
"""

_COUNTED_STEPS = f"""
SELECT count(*) FROM (SELECT DISTINCT e.turn_index, e.step_index FROM event e
  JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
  WHERE e.session_id = ? AND {COUNTED} AND e.step_index IS NOT NULL) steps
"""


class Turn(NamedTuple):
    """A turn with its totals as in its log: copies are counted."""

    turn_index: int
    first_event: int
    last_event: int
    started_at: int | None
    """Milliseconds since 1970 UTC."""
    request_event: int | None
    """The event that opened it; None if a response did."""
    request: str | None
    """The beginning of that event's text."""
    copied: int
    """1 if all of it is copied from another session."""
    step_count: int
    tool_calls: int
    failed_calls: int
    incomplete_usage: int
    """Responses with only placeholder figures in the log."""
    tokens: TokenCounts


class Ending(Struct, frozen=True):
    """What happened in a turn; events are given by index, or None if there is none."""

    turn_index: int | None
    """None for events before the first turn."""
    responses: int
    """Events that belong to responses."""
    failed: int
    """Calls that failed."""
    stopped: int
    """Calls that were rejected or interrupted, and interruptions by the user."""
    open_call: int | None
    """The last call whose end isn't known."""
    last_failed: int | None
    """The last result of a failed call."""
    last_result: int | None
    last_message: int | None
    api_error: int | None
    """The last error of the model's API."""


class ToolUse(Struct, frozen=True):
    """How often a tool was called in a turn."""

    turn_index: int | None
    name: str
    calls: int
    failed: int


class Span(NamedTuple):
    """The first and last event of a turn."""

    turn_index: int
    first_event: int
    last_event: int


class Step(NamedTuple):
    """The first and last event of a step, and the calls made in it."""

    turn_index: int
    step_index: int
    first_event: int
    last_event: int
    calls: int
    failed: int


def _turn(*columns: Any) -> Turn:
    kinds = len(TokenCounts._fields)
    return Turn._make((*columns[:-kinds], TokenCounts(*columns[-kinds:])))


# -- turns -----------------------------------------------------------------------------------------


def page(connection: sqlite3.Connection, session_row: int, *, from_turn: int, last_event: int, most: int) -> list[Turn]:
    """Return the turns of a session from one on, at most `most`, that began no later than an event."""
    sql = f"{_TURN} WHERE t.session_id = ? AND t.turn_index >= ? AND t.first_event <= ? ORDER BY t.turn_index LIMIT ?"
    return list(rows(connection, _turn, sql, (session_row, from_turn, last_event, most)))


def several(connection: sqlite3.Connection, session_row: int, indices: Iterable[int]) -> list[Turn]:
    """Return those of these turns that the session has, in order."""
    sql = f"{_TURN} WHERE t.session_id = ? AND t.turn_index IN {GIVEN} ORDER BY t.turn_index"
    return list(rows(connection, _turn, sql, (session_row, as_json(indices))))


def exists(connection: sqlite3.Connection, session_row: int, turn_index: int | None) -> bool:
    """Whether a session has a turn, or still has it."""
    sql = "SELECT 1 FROM turn WHERE session_id = ? AND turn_index = ?"
    return value(connection, sql, (session_row, turn_index)) is not None


def rolled_back(connection: sqlite3.Connection, session_row: int, turn_index: int) -> list[int]:
    """Return the events of a turn that was rolled back, in order; none for any other."""
    sql = "SELECT event_index FROM event WHERE session_id = ? AND turn_index = ? AND superseded_by < 0 ORDER BY 1"
    return values(connection, sql, (session_row, turn_index))


def last(connection: sqlite3.Connection, session_row: int) -> int | None:
    """Return the last turn of a session."""
    result: int | None = value(connection, "SELECT max(turn_index) FROM turn WHERE session_id = ?", (session_row,))
    return result


def following(connection: sqlite3.Connection, session_row: int, turn_index: int | None, last_event: int) -> int | None:
    """Return the turn after a given one, or the first one, if it began no later than an event."""
    sql = "SELECT min(turn_index) FROM turn WHERE session_id = ? AND turn_index > ? AND first_event <= ?"
    result: int | None = value(connection, sql, (session_row, -1 if turn_index is None else turn_index, last_event))
    return result


def count(connection: sqlite3.Connection, session_row: int, last_event: int) -> int:
    """Return the number of turns of a session that began no later than an event."""
    sql = "SELECT count(*) FROM turn WHERE session_id = ? AND first_event <= ?"
    return int(value(connection, sql, (session_row, last_event)))


def failing(connection: sqlite3.Connection, session_row: int, last_event: int) -> list[int]:
    """Return the turns with failed tool calls that began no later than an event, without copied ones."""
    sql = (
        "SELECT turn_index FROM turn WHERE session_id = ? AND failed_calls > 0 AND NOT copied AND first_event <= ? "
        "ORDER BY turn_index"
    )
    return values(connection, sql, (session_row, last_event))


def endings(
    connection: sqlite3.Connection, session_row: int, turns: Sequence[Turn], *, api_errors: Collection[str]
) -> dict[int | None, Ending]:
    """Return, by turn, what happened in these turns of a session; `api_errors` are kinds of notifications."""
    if not turns:
        return {}
    named = {**_span(session_row, turns), "stop": UserKind.INTERRUPTION, "api_errors": json.dumps(sorted(api_errors))}
    return {ending.turn_index: ending for ending in rows(connection, Ending, _ENDINGS, named)}


def tools(connection: sqlite3.Connection, session_row: int, turns: Sequence[Turn]) -> Iterator[ToolUse]:
    """Return the tools called in these turns of a session, by turn and in the order of their first calls."""
    return rows(connection, ToolUse, _TOOLS, _span(session_row, turns))


def _span(session_row: int, turns: Sequence[Turn]) -> dict[str, Any]:
    """Return the arguments of a query over the events from the first to the last of these turns."""
    first_event, last_event = min(turn.first_event for turn in turns), max(turn.last_event for turn in turns)
    return {**CODES, "session": session_row, "first": first_event, "last": last_event}


def tokens(connection: sqlite3.Connection, session_row: int) -> int:
    """Return all tokens of all turns of a session."""
    sql = f"SELECT coalesce(sum({TOTAL}), 0) FROM turn u WHERE u.session_id = ?"
    return int(value(connection, sql, (session_row,)))


# -- steps -----------------------------------------------------------------------------------------


def spans(
    connection: sqlite3.Connection, session_row: int, *, from_turn: int, turn_index: int | None, last_event: int
) -> Iterator[Span]:
    """Return the spans of the turns from one on, or of a single one, that began no later than an event."""
    named = {"session": session_row, "from_turn": from_turn, "turn": turn_index, "last_event": last_event}
    return rows(connection, Span, _SPANS, named)


def steps(connection: sqlite3.Connection, session_row: int, span: Span, behind: int) -> list[Step]:
    """Return the steps after a given one that have events in a span of a turn."""
    named = {
        **CODES, "session": session_row, "turn": span.turn_index, "first": span.first_event, "last": span.last_event,
        "behind": behind,
    }  # fmt: skip
    return list(rows(connection, Step, _STEPS, named))


def count_steps(connection: sqlite3.Connection, session_row: int) -> int:
    """Return the number of steps of a session, without copied ones."""
    return int(value(connection, _COUNTED_STEPS, (session_row,)))
