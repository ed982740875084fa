"""Tool calls: how often sessions called which tools, and the calls that did not end well."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace_schema.codes import OUTCOME_CODES
from agtrace_schema.events import Outcome

from agtrace_indexer.index.queries.base import CODES, COUNTED, OWN_THEN, as_json, rows, tuples, value
from agtrace_indexer.index.queries.events import Snapshot

_BY_SESSION = f"""
SELECT e.session_id, n.text, count(*), count(*) FILTER (WHERE e.outcome = :failed)
FROM json_each(:sessions) wanted JOIN event e ON e.session_id = wanted.value LEFT JOIN name n ON n.id = e.name_id
WHERE e.type = :call AND {COUNTED} GROUP BY 1, 2
"""

_FAILED = """
FROM event e WHERE e.session_id = :session AND e.superseded_by IS NULL AND e.outcome = :failed
  AND (e.type = :call OR e.type = :result AND e.link IS NULL)
"""
_FAILED_FROM = f"SELECT min(e.event_index) {_FAILED} AND e.event_index >= :event"
_FAILED_BEFORE = f"SELECT max(e.event_index) {_FAILED} AND e.event_index < :event"

_TOOLS = f"""
WITH used AS (
  SELECT n.text AS name, -count(*) AS rank, count(*) FILTER (WHERE e.outcome = :failed) AS failed,
    min(e.event_index) AS first
  FROM event e LEFT JOIN name n ON n.id = e.name_id WHERE {OWN_THEN} AND e.type = :call GROUP BY n.id)
SELECT name, rank, failed, first, (SELECT count(*) FROM used) FROM used
WHERE (rank, first) > (:rank, :first) ORDER BY rank, first LIMIT :most
"""

_ILL_ENDED = f"""
{OWN_THEN} AND e.type = :call AND e.outcome IN (:failed, :rejected, :interrupted) AND coalesce(e.link, 0) <= :last
"""

_FAILURES = f"""
SELECT e.event_index, r.event_index, t.turn_index, e.outcome, n.text
FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN event r ON r.session_id = e.session_id AND r.event_index = e.link
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
WHERE {_ILL_ENDED} AND e.event_index > :behind ORDER BY e.event_index LIMIT :most
"""


class RankedTool(NamedTuple):
    """A tool in the list of those that a session called, most used first."""

    name: str | None
    """None if the log doesn't name it."""
    rank: int
    """Minus the number of its calls: together with `first`, its place in the list."""
    failed: int
    first: int
    """The event of its first call."""
    total: int
    """The number of tools in the whole list."""


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


def by_session(
    connection: sqlite3.Connection, session_rows: Iterable[int]
) -> Iterator[tuple[int, str | None, int, int]]:
    """Yield (session, tool, calls, failed calls) for the tools that each of these sessions called."""
    return tuples(connection, _BY_SESSION, {**CODES, "sessions": as_json(session_rows)})


def failed_next(connection: sqlite3.Connection, session_row: int, event_index: int, *, backwards: bool) -> int | None:
    """Return the first failed call from an event on, or the last one before it, copies included.

    A failed result without a call stands for its call. None if there is none.
    """
    named = {**CODES, "session": session_row, "event": event_index}
    result: int | None = value(connection, _FAILED_BEFORE if backwards else _FAILED_FROM, named)
    return result


def tools(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: tuple[int, int] | None, most: int
) -> list[RankedTool]:
    """Return the tools that a session had called, after a (rank, first), most used first, at most `most`."""
    rank, first = behind or (-(1 << 62), 0)
    return list(rows(connection, RankedTool, _TOOLS, then.named(session_row, rank=rank, first=first, most=most)))


def failures(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: int, most: int
) -> list[Failure]:
    """Return the calls after an event that had not ended well, in file order, at most `most`."""

    def failure(call: int, result: int | None, turn: int | None, outcome: int, tool: str | None) -> Failure:
        return Failure(call, result, turn, OUTCOME_CODES[outcome], tool)

    return list(rows(connection, failure, _FAILURES, then.named(session_row, behind=behind, most=most)))


def count_cancelled(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of calls that had been refused or interrupted."""
    cancelled = f"SELECT count(*) FROM event e WHERE {_ILL_ENDED} AND e.outcome != :failed"
    return int(value(connection, cancelled, then.named(session_row)))


def count_failures(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of calls that had not ended well."""
    return int(value(connection, f"SELECT count(*) FROM event e WHERE {_ILL_ENDED}", then.named(session_row)))
