"""Tool calls: how often a session called which tools, and the calls that did not end well."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from agtrace_schema.codes import OUTCOME_CODES
from agtrace_schema.events import Outcome

from agtrace_indexer.index.questions.events import Snapshot
from agtrace_indexer.index.questions.queries import CODES, COUNTED, OWN_THEN, only, rows, value

_OWN = f"e.session_id = :session AND {COUNTED}"

_TOOLS = f"""
SELECT coalesce(n.text, ''), count(*), count(*) FILTER (WHERE e.outcome = :failed)
FROM event e LEFT JOIN name n ON n.id = e.name_id WHERE {_OWN} AND e.type = :call GROUP BY 1
"""

_ENDS = f"""
SELECT coalesce(sum(e.outcome = :failed), 0), coalesce(sum(e.outcome = :rejected), 0),
  coalesce(sum(e.outcome = :interrupted), 0)
FROM event e WHERE {_OWN} AND e.type = :call
"""

_WORST = f"""
SELECT coalesce(r.event_index, e.event_index) AS shown, e.outcome, n.text
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN event r ON r.session_id = e.session_id AND r.event_index = e.link AND r.superseded_by IS NULL
WHERE {_OWN} AND e.type = :call AND e.outcome IN (:failed, :rejected, :interrupted)
ORDER BY e.outcome != :failed, shown LIMIT :most
"""

_FAILED = """
FROM event e WHERE e.session_id = :session AND e.superseded_by IS NULL AND e.outcome = :failed
  AND (e.type = :call OR e.type = :result AND e.link IS NULL)
"""
_FAILED_FROM = f"SELECT min(e.event_index) {_FAILED} AND e.event_index >= :event"
_FAILED_BEFORE = f"SELECT max(e.event_index) {_FAILED} AND e.event_index < :event"

_TOOLS_THEN = f"""
WITH used AS (
  SELECT n.text AS name, -count(*) AS rank, count(*) FILTER (WHERE e.outcome = :failed) AS failed,
    min(e.event_index) AS first
  FROM event e LEFT JOIN name n ON n.id = e.name_id WHERE {OWN_THEN} AND e.type = :call GROUP BY n.id)
SELECT name, rank, failed, first, (SELECT count(*) FROM used) FROM used
WHERE (rank, first) > (:rank, :first) ORDER BY rank, first LIMIT :most
"""

_ILL_ENDED_THEN = f"""
{OWN_THEN} AND e.type = :call AND e.outcome IN (:failed, :rejected, :interrupted) AND coalesce(e.link, 0) <= :last
"""

_FAILURES_THEN = f"""
SELECT e.event_index, r.event_index, t.turn_index, e.outcome, n.text
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN event r ON r.session_id = e.session_id AND r.event_index = e.link
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
WHERE {_ILL_ENDED_THEN} AND e.event_index > :behind ORDER BY e.event_index LIMIT :most
"""


class ToolTotals(NamedTuple):
    """How often a tool was called."""

    name: str
    """Empty if the log doesn't name the tool."""
    calls: int
    failed: int


class RankedTool(NamedTuple):
    """A tool in the list of those that a session called, most used first."""

    name: str | None
    rank: int
    """Minus the number of its calls: together with `first`, its place in the list."""
    failed: int
    first: int
    """The event of its first call."""
    total: int
    """The number of tools in the whole list."""


class IllEnded(NamedTuple):
    """The numbers of calls that failed, were rejected by the user, or were interrupted."""

    failed: int
    rejected: int
    interrupted: int


class Worst(NamedTuple):
    """A call that did not end well."""

    shown: int
    """The event to show: the result, or the call if there is no result."""
    outcome: Outcome
    tool: str | None


class Failure(NamedTuple):
    """A call that failed, was rejected or was interrupted, in the list of those of a session."""

    call_event: int
    result_event: int | None
    turn_index: int | None
    """None if it belongs to no turn, or to one of which nothing is left."""
    outcome: Outcome
    tool: str | None

    @property
    def shown(self) -> int:
        """The event to show: the result, or the call if there is no result."""
        return self.call_event if self.result_event is None else self.result_event


# -- a session as it is ----------------------------------------------------------------------------


def tools(connection: sqlite3.Connection, session_row: int) -> list[ToolTotals]:
    """Return the tools that a session called, in no particular order."""
    return list(rows(connection, ToolTotals, _TOOLS, {**CODES, "session": session_row}))


def ill_ended(connection: sqlite3.Connection, session_row: int) -> IllEnded:
    """Return how many calls of a session did not end well."""
    return only(connection, IllEnded, _ENDS, {**CODES, "session": session_row})


def worst(connection: sqlite3.Connection, session_row: int, most: int) -> list[Worst]:
    """Return the calls of a session that did not end well, failed ones first, at most `most`."""
    return list(rows(connection, _worst, _WORST, {**CODES, "session": session_row, "most": most}))


def failed_next(connection: sqlite3.Connection, session_row: int, event_index: int, *, backwards: bool) -> int | None:
    """Return the first failed call from an event on, or the last one before it, copies included.

    A failed result without a call stands for its call. None if there is none.
    """
    named = {**CODES, "session": session_row, "event": event_index}
    found: int | None = value(connection, _FAILED_BEFORE if backwards else _FAILED_FROM, named)
    return found


def _worst(shown: int, outcome: int, tool: str | None) -> Worst:
    return Worst(shown, OUTCOME_CODES[outcome], tool)


# -- a snapshot ------------------------------------------------------------------------------------


def tools_then(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
) -> list[RankedTool]:
    """Return the tools that a session had called, after a (rank, first), most used first, at most `most`."""
    rank, first = behind or (-(1 << 62), 0)
    named = {**_named(session_row, then), "rank": rank, "first": first, "most": most}
    return list(rows(connection, RankedTool, _TOOLS_THEN, named))


def failures_then(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: int, most: int
) -> list[Failure]:
    """Return the calls after an event that had not ended well, in file order, at most `most`."""
    named = {**_named(session_row, then), "behind": behind, "most": most}
    return list(rows(connection, _failure, _FAILURES_THEN, named))


def count_failures_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of calls that had not ended well."""
    return int(value(connection, f"SELECT count(*) FROM event e WHERE {_ILL_ENDED_THEN}", _named(session_row, then)))


def _failure(call: int, result: int | None, turn: int | None, outcome: int, tool: str | None) -> Failure:
    return Failure(call, result, turn, OUTCOME_CODES[outcome], tool)


def _named(session_row: int, then: Snapshot) -> dict[str, Any]:
    return {**CODES, "session": session_row, "last": then.last_event, "newest": then.newest_row}
