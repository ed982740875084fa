"""The files that tool calls name in their arguments."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from msgspec import Struct

from agtrace_indexer.index.queries.base import (
    CODES,
    COUNTED,
    HAS_PATH,
    OWN_THEN,
    as_json,
    rows,
    tuples,
    value,
    values,
)
from agtrace_indexer.index.queries.events import Snapshot

_TOUCHED = f"""
SELECT p.text, sum(t.access = 'read'), sum(t.access = 'write')
FROM touched t JOIN event e USING (session_id, event_index) JOIN path p ON p.id = t.path_id
WHERE {OWN_THEN} GROUP BY 1
"""

_CHANGES = """
SELECT DISTINCT e.event_index FROM touched t JOIN event e USING (session_id, event_index)
WHERE session_id = :session AND event_index > :after AND event_index < :before AND t.access = 'write'
  AND e.superseded_by IS NULL AND (e.outcome IS NULL OR e.outcome NOT IN (:failed, :rejected, :interrupted))
ORDER BY e.event_index
"""

_IN_SESSIONS = f"""
SELECT t.session_id, sum(t.access = 'read'), sum(t.access = 'write')
FROM touched t JOIN event e USING (session_id, event_index)
WHERE t.session_id IN (SELECT value FROM json_each(:sessions)) AND {COUNTED} AND e.id <= :newest
  AND t.path_id IN (SELECT id FROM path WHERE {HAS_PATH.format("text")})
GROUP BY 1
"""

_USES = """
SELECT t.session_id, t.event_index, e.id, e.ts, p.text, t.access
FROM touched t JOIN path p ON p.id = t.path_id JOIN event e USING (session_id, event_index)
WHERE t.path_id IN (SELECT id FROM path WHERE substr(text, length(text) - length(:name) + 1) = :name)
  AND e.superseded_by IS NULL AND coalesce(e.copy_of, 0) = 0
  AND (e.outcome IS NULL OR e.outcome NOT IN (:failed, :rejected, :interrupted))
ORDER BY e.ts, e.id
"""


class Use(Struct, frozen=True):
    """A call that names a file."""

    session_row: int
    event_index: int
    row: int
    """The row id of the event, which grows with the time of indexing."""
    at: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    path: str
    """As the log names it."""
    access: str
    """read or write."""


def touched(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> Iterator[tuple[str, int, int]]:
    """Yield (path, reading calls, writing calls) for the files that a session's calls had touched, copies excluded."""
    return tuples(connection, _TOUCHED, then.named(session_row))


def in_sessions(
    connection: sqlite3.Connection, session_rows: Iterable[int], path: str, *, newest: int
) -> dict[int, tuple[int, int]]:
    """Return how many calls of each session read and wrote files with this in their path, copies excluded.

    Events behind the row `newest` don't count.
    """
    named = {"sessions": as_json(session_rows), "path": path, "newest": newest}
    return dict(rows(connection, lambda session, reads, writes: (session, (reads, writes)), _IN_SESSIONS, named))


def changes(connection: sqlite3.Connection, session_row: int, *, after: int, before: int) -> list[int]:
    """Return the calls between two events that wrote files and are not known to have failed, in file order."""
    return values(connection, _CHANGES, {**CODES, "session": session_row, "after": after, "before": before})


def writes(connection: sqlite3.Connection, session_row: int, event_index: int) -> bool:
    """Whether a call names a file that it writes."""
    sql = "SELECT 1 FROM touched WHERE session_id = ? AND event_index = ? AND access = 'write'"
    return value(connection, sql, (session_row, event_index)) is not None


def uses(connection: sqlite3.Connection, name: str) -> Iterator[Use]:
    """Yield the calls on files whose paths end with this name and that aren't known to have failed, oldest first.

    Copies are left out, unless the log that they were copied from isn't indexed.
    """
    return rows(connection, Use, _USES, {**CODES, "name": name})
