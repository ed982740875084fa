"""Human requests, and the tasks that sub-agents were given in place of them."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions.conditions import OWN_THEN
from agtrace_indexer.index.questions.events import Snapshot
from agtrace_indexer.index.questions.queries import rows, value

_OWN = f"FROM request r JOIN event e USING (session_id, event_index) WHERE {OWN_THEN}"

_REQUESTS = f"""
SELECT e.event_index, e.turn_index, r.text {_OWN} AND e.event_index > :behind ORDER BY e.event_index LIMIT :most
"""


class Request(NamedTuple):
    """A request."""

    event_index: int
    turn_index: int | None
    text: str
    """Its beginning, on one line."""


def requests_then(
    connection: sqlite3.Connection, session_row: int, then: Snapshot, *, behind: int, most: int
) -> list[Request]:
    """Return the requests of a session after an event, in file order, at most `most`."""
    named = {"session": session_row, "last": then.last_event, "newest": then.newest_row}
    return list(rows(connection, Request, _REQUESTS, {**named, "behind": behind, "most": most}))


def count_requests_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> int:
    """Return the number of requests of a session."""
    named = {"session": session_row, "last": then.last_event, "newest": then.newest_row}
    return int(value(connection, f"SELECT count(*) {_OWN}", named))
