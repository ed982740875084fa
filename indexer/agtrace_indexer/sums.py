"""What turns and sessions sum up to, made of the rows of their events: superseded ones count nowhere."""

from __future__ import annotations

import sqlite3

from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

_CODES = {
    "call": EVENT_TYPE_CODES.index(EventType.TOOL_CALL),
    "user": EVENT_TYPE_CODES.index(EventType.USER),
    "failed": OUTCOME_CODES.index(Outcome.FAILED),
}

_TURNS = """
INSERT OR REPLACE INTO turn
SELECT e.session_id, e.turn_index, min(e.event_index), max(e.event_index),
  min(nullif(e.ts, 0)), max(nullif(e.ts, 0)), count(DISTINCT e.step_index),
  sum(e.type = :call), sum(e.type = :call AND e.outcome IS :failed),
  sum(u.input_tokens + coalesce(u.cache_creation_5m_tokens, 0) + coalesce(u.cache_creation_1h_tokens, 0)
    + coalesce(u.cache_read_tokens, 0)),
  sum(u.output_tokens)
FROM event e LEFT JOIN token_usage u USING (session_id, event_index)
WHERE e.session_id = :session AND e.turn_index >= :turn AND e.superseded_by IS NULL
GROUP BY e.turn_index
"""

_SESSION_FROM_EVENTS = """
UPDATE session SET
  (event_count, tool_calls, failed_calls, started_at, ended_at) =
    (SELECT count(*), coalesce(sum(type = :call), 0), coalesce(sum(type = :call AND outcome = :failed), 0),
            min(nullif(ts, 0)), max(nullif(ts, 0))
     FROM event WHERE session_id = :session AND superseded_by IS NULL),
  turn_count = (SELECT count(*) FROM turn WHERE session_id = :session),
  (input_tokens, output_tokens, total_tokens, incomplete_usage) =
    (SELECT sum(input_tokens), sum(output_tokens),
            sum(coalesce(input_tokens, 0) + coalesce(cache_creation_5m_tokens, 0)
              + coalesce(cache_creation_1h_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(output_tokens, 0)),
            coalesce(sum(NOT complete), 0)
     FROM token_usage JOIN event USING (session_id, event_index)
     WHERE session_id = :session AND superseded_by IS NULL),
  kind = CASE WHEN kind = 'subagent' AND provider = 'claude_code' AND thread = '' AND NOT EXISTS
      (SELECT 1 FROM event WHERE session_id = :session AND type IN (:user, :call)) THEN 'warmup'
    WHEN kind = 'warmup' AND EXISTS
      (SELECT 1 FROM event WHERE session_id = :session AND type IN (:user, :call)) THEN 'subagent'
    ELSE kind END
WHERE id = :session
"""


def sum_up(connection: sqlite3.Connection, session_id: int, first_turn: int | None) -> None:
    """Make the sums of a session again, and those of its turns from one on; None leaves the turns as they are."""
    named = {"session": session_id, "turn": first_turn, **_CODES}
    if first_turn is not None:
        connection.execute("DELETE FROM turn WHERE session_id = :session AND turn_index >= :turn", named)
        connection.execute(_TURNS, named)
    connection.execute(_SESSION_FROM_EVENTS, named)
