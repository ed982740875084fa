"""Totals of turns and sessions, computed from the rows of their events.

Superseded events count nowhere. Copies of an older session's events count in their turn, which shows
what its log has, but not in the totals of the session, where they are counted separately.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime

from agtrace_schema.codes import CONTEXT_CLASSES, OUTCOME_CODE, PRICE_DAYS, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

CODES = {
    "call": TYPE_CODE[EventType.TOOL_CALL],
    "usage": TYPE_CODE[EventType.TOKEN_USAGE],
    "failed": OUTCOME_CODE[Outcome.FAILED],
}
"""The codes that the statements name."""

_WHOLE_INPUT = (
    "coalesce({0}input_tokens, 0) + coalesce({0}cache_creation_5m_tokens, 0) "
    "+ coalesce({0}cache_creation_1h_tokens, 0) + coalesce({0}cache_read_tokens, 0)"
)
WHOLE_INPUT = _WHOLE_INPUT.format("u.")
"""SQL: the entire input of a response in `token_usage` u, cached or not."""

TOTAL = f"{WHOLE_INPUT} + coalesce(u.output_tokens, 0)"
"""SQL: all tokens of a response in `token_usage` u."""

_SIZE = " + ".join(f"CASE WHEN {WHOLE_INPUT} > {bound} THEN 1 ELSE 0 END" for bound in CONTEXT_CLASSES)
_DAYS = [int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 1000 for day in PRICE_DAYS]
_PERIOD = " + ".join(f"CASE WHEN e.ts >= {day} THEN 1 ELSE 0 END" for day in _DAYS)
CONTEXT_CLASS = f"{len(CONTEXT_CLASSES) + 1} * ({_PERIOD}) + CASE WHEN e.step_index IS NULL THEN 0 ELSE {_SIZE} END"
"""SQL: the class of a response in `token_usage` u, event e (`database.py`): how large it was, and when.

Figures without a step are sums over several responses, which say nothing about the size of any of them."""

_NO_FIGURES = f"{{0}}step_index IS NOT NULL AND {{0}}type != {TYPE_CODE[EventType.TOKEN_USAGE]}"
MAKE_A_TURN = f"count({{1}}event_index) + sum({_NO_FIGURES}) > 0"
"""SQL: whether the events of a turn, with their rows of `request`, make it one. Figures alone, all that remains of a
turn that was dropped, don't."""

_TURNS = f"""
INSERT INTO turn (session_id, turn_index, first_event, last_event, started_at, ended_at, step_count, tool_calls,
  failed_calls, input_tokens, output_tokens, request_event, copied, responses, incomplete_usage,
  cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens, reasoning_tokens, active_ms)
SELECT e.session_id, e.turn_index, min(e.event_index), max(e.event_index),
  min(nullif(e.ts, 0)), max(nullif(e.ts, 0)), count(DISTINCT e.step_index),
  sum(e.type = :call), sum(e.type = :call AND e.outcome IS :failed),
  sum(u.input_tokens), sum(u.output_tokens), min(r.event_index), min(e.copy_of IS NOT NULL),
  count(u.event_index), coalesce(sum(NOT u.complete), 0),
  sum(u.cache_creation_5m_tokens), sum(u.cache_creation_1h_tokens), sum(u.cache_read_tokens), sum(u.reasoning_tokens),
  coalesce(max(0, max(CASE WHEN e.step_index IS NOT NULL THEN nullif(e.ts, 0) END)
    - coalesce(min(CASE WHEN r.event_index IS NOT NULL THEN nullif(e.ts, 0) END),
               min(CASE WHEN e.step_index IS NOT NULL THEN nullif(e.ts, 0) END))), 0)
FROM event e LEFT JOIN token_usage u USING (session_id, event_index) LEFT JOIN request r USING (session_id, event_index)
WHERE e.session_id = :session AND e.turn_index IS NOT NULL AND e.superseded_by IS NULL
GROUP BY e.turn_index
HAVING {MAKE_A_TURN.format("e.", "r.")}
"""

_TOLD = "CASE WHEN u.cost_usd IS NULL THEN 0 WHEN e.step_index IS NULL AND e.turn_index IS NULL THEN 2 ELSE 1 END"

MODEL_USAGE = f"""
SELECT u.session_id, coalesce(u.model, ''), coalesce(u.speed, ''),
  {CONTEXT_CLASS} AS context_class,
  {_TOLD} AS told,
  count(*), sum(NOT u.complete), sum(u.input_tokens), sum(u.cache_creation_5m_tokens),
  sum(u.cache_creation_1h_tokens), sum(u.cache_read_tokens), sum(u.output_tokens), sum(u.reasoning_tokens),
  sum(u.cost_usd)
FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE {{condition}}
GROUP BY 1, 2, 3, 4, 5
"""
"""SQL: rows as those of `model_usage`, from the figures that fulfil a condition over `token_usage` u and `event` e."""


def sum_turns(connection: sqlite3.Connection, session_id: int) -> None:
    """Compute the totals of a session's turns."""
    named = {"session": session_id, **CODES}
    connection.execute("DELETE FROM turn WHERE session_id = :session", named)
    connection.execute(_TURNS, named)


# -- sessions --------------------------------------------------------------------------------------

_OF_SESSION = "u.session_id = :session AND e.superseded_by IS NULL"
_COPIED_USAGE = f"""
(SELECT {{}} FROM token_usage u JOIN event e USING (session_id, event_index)
 WHERE {_OF_SESSION} AND e.copy_of IS NOT NULL)
"""

_EVENTS = f"""
SELECT coalesce(sum(copy_of IS NULL), 0), coalesce(sum(type = :call AND copy_of IS NULL), 0),
  coalesce(sum(type = :call AND outcome IS :failed AND copy_of IS NULL), 0),
  count(copy_of), coalesce(sum(type = :call AND copy_of IS NOT NULL), 0),
  coalesce(sum(type = :call AND outcome IS :failed AND copy_of IS NOT NULL), 0),
  CASE WHEN count(copy_of) > 0 THEN coalesce({_COPIED_USAGE.format(f"sum({TOTAL})")}, 0) ELSE 0 END,
  CASE WHEN count(copy_of) > 0 THEN {_COPIED_USAGE.format("count(*)")} ELSE 0 END,
  coalesce(min(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END), min(nullif(ts, 0))),
  coalesce(max(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END), max(nullif(ts, 0)))
FROM event WHERE session_id = :session AND superseded_by IS NULL
"""

_FIRST_REQUEST = """
SELECT r.text FROM turn t JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
WHERE t.session_id = :session AND t.copied = {copied} AND r.text != '' ORDER BY t.turn_index LIMIT 1
"""

_SESSION = f"""
UPDATE session SET
  (event_count, tool_calls, failed_calls, copied_events, copied_tool_calls, copied_failed_calls, copied_tokens,
   copied_responses, started_at, ended_at) = ({_EVENTS}),
  (turn_count, copied_turns, active_ms) =
    (SELECT coalesce(sum(NOT copied), 0), coalesce(sum(copied), 0),
            coalesce(sum(CASE WHEN NOT copied THEN active_ms END), 0)
     FROM turn WHERE session_id = :session),
  (input_tokens, output_tokens, total_tokens, incomplete_usage, responses) =
    (SELECT sum(input_tokens), sum(output_tokens), sum({TOTAL}),
            coalesce(sum(incomplete), 0), coalesce(sum(responses), 0)
     FROM model_usage u WHERE session_id = :session),
  snippet = coalesce(({_FIRST_REQUEST.format(copied=0)}), ({_FIRST_REQUEST.format(copied=1)}))
WHERE id = :session
"""


def sum_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Compute the totals of a session from its turns and events."""
    named = {"session": session_id, **CODES}
    connection.execute("DELETE FROM model_usage WHERE session_id = :session", named)
    own = MODEL_USAGE.format(condition=f"{_OF_SESSION} AND e.copy_of IS NULL")
    connection.execute(f"INSERT INTO model_usage {own}", named)
    connection.execute(_SESSION, named)
