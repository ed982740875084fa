"""Totals of sessions, computed from their turns and events; a session that grows isn't summed up from its beginning.

Of a long session, the sums over its first events are kept (`sum_so_far`), so that one more line costs what the last
few hundred events cost. They end at a multiple of a fixed number of events, so that they are the same however the
session grew. Whoever changes an event that they contain forgets them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import add
from typing import Any, TypeAlias

import orjson

from agtrace_indexer.index.turn_sums import CODES, MODEL_USAGE, TOTAL

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
    reached, (events, usage) = (kept[0], orjson.loads(kept[1])) if kept else (0, ([None] * len(_JOINED), []))
    sums: _Sums = events, {tuple(row[:_KEY]): row[_KEY:] for row in usage}
    wanted = max((end // _STEP - 1) * _STEP, 0)
    if reached < wanted:
        for first in range(reached, wanted, _STEP):  # always in the same steps: costs are fractions
            sums = _with_events(connection, sums, session_id, first, first + _STEP)
        reached = wanted
        rows = sorted((*key, *figures) for key, figures in sums[1].items())
        keep = "INSERT OR REPLACE INTO sum_so_far VALUES (?, ?, ?)"
        connection.execute(keep, (session_id, wanted, orjson.dumps([sums[0], rows]).decode()))
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
