"""What goes on now: sessions in which something happened lately, and what fills their context."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions.queries import first, rows, values
from agtrace_indexer.index.questions.sessions import Session, in_rows
from agtrace_indexer.index.turn_sums import WHOLE_INPUT

# A sub-agent's work is that of the session above it; a cycle in damaged logs ends where it began.
_ACTIVE = """
WITH RECURSIVE above (id, at) AS (
  SELECT id, ended_at FROM session WHERE ended_at >= :since AND kind != 'warmup'
  UNION
  SELECT s.parent_session, a.at FROM above a JOIN session s ON s.id = a.id
  WHERE s.kind = 'subagent' AND s.parent_session IS NOT NULL)
SELECT s.id, max(a.at) FROM above a JOIN session s ON s.id = a.id
WHERE s.kind NOT IN ('subagent', 'warmup') GROUP BY s.id ORDER BY 2 DESC, 1 DESC LIMIT :most
"""

_NEWEST = """
SELECT id FROM session WHERE kind NOT IN ('subagent', 'warmup') ORDER BY coalesce(ended_at, 0) DESC, id DESC LIMIT ?
"""

_FILLED = f"""
SELECT u.event_index, u.model, {WHOLE_INPUT}, u.context_window
FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = ? AND e.superseded_by IS NULL AND {WHOLE_INPUT} > 0 ORDER BY u.event_index DESC LIMIT 1
"""


class Active(NamedTuple):
    """A session in which something happened, with the time of the last thing, its sub-agents' included."""

    id: int
    at: int
    """Milliseconds since 1970 UTC."""


class Filled(NamedTuple):
    """What the model was given with its last request."""

    event_index: int
    model: str | None
    tokens: int
    """Input of all kinds."""
    context_window: int | None
    """The size of the window, according to the log."""


def active(connection: sqlite3.Connection, since: int, most: int) -> list[Active]:
    """Return the sessions, no sub-agents, that were active at or after a time, the latest first."""
    return list(rows(connection, Active, _ACTIVE, {"since": since, "most": most}))


def newest(connection: sqlite3.Connection, most: int) -> list[Session]:
    """Return the sessions, no sub-agents, in which something happened last, the latest first."""
    ids = values(connection, _NEWEST, (most,))
    found = {session.id: session for session in in_rows(connection, ids)}
    return [found[id] for id in ids]


def filled(connection: sqlite3.Connection, session_row: int) -> Filled | None:
    """Return the figures of the last response of a session that has some."""
    return first(connection, Filled, _FILLED, (session_row,))
