"""Totals of turns and sessions, computed from the rows of their events.

Superseded events count nowhere. Copies of an older session's events count in their turn, which shows
what its log has, but not in the totals of the session, where they are counted separately.

A session that grows isn't summed up from its beginning: of a long one, the sums over its first events are kept
(`sum_so_far`), so that one more line costs what the last few hundred events cost. They end at a multiple of a fixed
number of events, so that they are the same however the session grew. Whoever changes an event that they contain forgets
them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from operator import add
from typing import Any, TypeAlias

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

# The event to start reading from: remaining events of these turns come after their first events, or are new. A turn
# without a row may still have events (figures of a response that says nothing yet): they come after the previous turn.
_FROM = """
SELECT min(:new,
  coalesce((SELECT min(first_event) FROM turn WHERE session_id = :session AND turn_index >= :turn), :new),
  coalesce((SELECT first_event FROM turn WHERE session_id = :session AND turn_index <= :turn
    ORDER BY turn_index DESC LIMIT 1), 0))
"""

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
WHERE e.session_id = :session AND e.event_index >= :from AND e.turn_index >= :turn AND e.superseded_by IS NULL
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


def sum_turns(connection: sqlite3.Connection, session_id: int, first_turn: int = 0, first_placed: int = 0) -> None:
    """Compute the totals of a session's turns from one on, after events from an index on were put into turns."""
    named = {"session": session_id, "turn": first_turn, "new": first_placed, **CODES}
    named["from"] = connection.execute(_FROM, named).fetchone()[0]
    connection.execute("DELETE FROM turn WHERE session_id = :session AND turn_index >= :turn", named)
    connection.execute(_TURNS, named)


# -- sessions --------------------------------------------------------------------------------------

_STEP = 512
"""The sums that are kept end at a multiple of it, and leave out at least as many events, which may still change."""

_BETWEEN = "u.session_id = :session AND u.event_index >= :first AND u.event_index < :end AND e.superseded_by IS NULL"

_COPIED_USAGE = f"""
(SELECT {{}} FROM token_usage u JOIN event e USING (session_id, event_index)
 WHERE {_BETWEEN} AND e.copy_of IS NOT NULL)
"""

# As `_SESSION` has them.
_EVENTS = f"""
SELECT sum(copy_of IS NULL), sum(type = :call AND copy_of IS NULL),
  sum(type = :call AND outcome IS :failed AND copy_of IS NULL),
  count(copy_of), sum(type = :call AND copy_of IS NOT NULL),
  sum(type = :call AND outcome IS :failed AND copy_of IS NOT NULL),
  CASE WHEN count(copy_of) > 0 THEN {_COPIED_USAGE.format(f"sum({TOTAL})")} END,
  CASE WHEN count(copy_of) > 0 THEN {_COPIED_USAGE.format("count(*)")} END,
  min(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END), max(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END),
  min(nullif(ts, 0)), max(nullif(ts, 0))
FROM event WHERE session_id = :session AND event_index >= :first AND event_index < :end AND superseded_by IS NULL
"""
_JOINED = (*[add] * 8, min, max, min, max)
"""How the columns of two portions of events are joined."""

_USAGE = MODEL_USAGE.format(condition=f"{_BETWEEN} AND e.copy_of IS NULL")
_KEY = 5
"""The first columns of a row of `model_usage`; all others are added."""

_FIRST_REQUEST = """
SELECT r.text FROM turn t JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
WHERE t.session_id = ?13 AND t.copied = {copied} AND r.text != '' ORDER BY t.turn_index LIMIT 1
"""

_SESSION = f"""
UPDATE session SET
  event_count = coalesce(?1, 0), tool_calls = coalesce(?2, 0), failed_calls = coalesce(?3, 0),
  copied_events = coalesce(?4, 0), copied_tool_calls = coalesce(?5, 0), copied_failed_calls = coalesce(?6, 0),
  copied_tokens = coalesce(?7, 0), copied_responses = coalesce(?8, 0),
  started_at = coalesce(?9, ?11), ended_at = coalesce(?10, ?12),
  (turn_count, copied_turns, active_ms) =
    (SELECT coalesce(sum(NOT copied), 0), coalesce(sum(copied), 0),
            coalesce(sum(CASE WHEN NOT copied THEN active_ms END), 0)
     FROM turn WHERE session_id = ?13),
  (input_tokens, output_tokens, total_tokens, incomplete_usage, responses) =
    (SELECT sum(input_tokens), sum(output_tokens), sum({TOTAL}),
            coalesce(sum(incomplete), 0), coalesce(sum(responses), 0)
     FROM model_usage u WHERE session_id = ?13),
  snippet = coalesce(({_FIRST_REQUEST.format(copied=0)}), ({_FIRST_REQUEST.format(copied=1)}))
WHERE id = ?13
"""

_Sums: TypeAlias = tuple[Sequence[Any], dict[tuple[Any, ...], Sequence[Any]]]
"""A row of `_EVENTS`, and the rows of `_USAGE` by their keys; None where no event has a figure."""


def sum_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Compute the totals of a session from its turns and events."""
    session = (session_id,)
    last = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", session).fetchone()[0]
    end = 0 if last is None else last + 1
    kept = connection.execute("SELECT before, sums FROM sum_so_far WHERE session_id = ?", session).fetchone()
    reached, (events, usage) = (kept[0], json.loads(kept[1])) if kept else (0, ([None] * len(_JOINED), []))
    sums: _Sums = events, {tuple(row[:_KEY]): row[_KEY:] for row in usage}
    wanted = max((end // _STEP - 1) * _STEP, 0)
    if reached < wanted:
        for first in range(reached, wanted, _STEP):  # always in the same steps: costs are fractions
            sums = _with_events(connection, sums, session_id, first, first + _STEP)
        reached = wanted
        rows = sorted((*key, *figures) for key, figures in sums[1].items())
        keep = "INSERT OR REPLACE INTO sum_so_far VALUES (?, ?, ?)"
        connection.execute(keep, (session_id, wanted, json.dumps([sums[0], rows])))
    events, found = _with_events(connection, sums, session_id, reached, end)
    connection.execute("DELETE FROM model_usage WHERE session_id = ?", session)
    connection.executemany(
        "INSERT INTO model_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*key, *figures) for key, figures in found.items()],
    )
    connection.execute(_SESSION, (*events, session_id))


def changes_from(connection: sqlite3.Connection, session_id: int, event_index: int) -> None:
    """Forget the sums over events of which one, from an index on, changes: to be called in the same transaction."""
    connection.execute("DELETE FROM sum_so_far WHERE session_id = ? AND before > ?", (session_id, event_index))


def _with_events(connection: sqlite3.Connection, sums: _Sums, session_id: int, first: int, end: int) -> _Sums:
    """Return sums with those of the events from one index to another."""
    named = {"session": session_id, "first": first, "end": end, **CODES}
    events, usage = sums[0], dict(sums[1])
    for row in connection.execute(_USAGE, named):
        key, figures = row[:_KEY], row[_KEY:]
        usage[key] = _joined((add,) * len(figures), usage[key], figures) if key in usage else figures
    return _joined(_JOINED, events, connection.execute(_EVENTS, named).fetchone()), usage


def _joined(how: Sequence[Any], one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [b if a is None else a if b is None else join(a, b) for join, a, b in zip(how, one, other, strict=True)]
