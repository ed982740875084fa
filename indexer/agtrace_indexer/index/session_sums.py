"""Totals of sessions, computed from their turns and events; a session that grows isn't summed up from its beginning.

Of a long session, the sums over its first events are kept (`sum_so_far`), so that one more line costs what the last
few hundred events cost. They end at a multiple of a fixed number of events, so that they are the same however the
session grew. Whoever changes an event that they contain forgets them.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple, TypeAlias

import orjson

from agtrace_indexer.index.turn_sums import CODES, MODEL_USAGE, TOTAL

_STEP = 512
"""The sums that are kept end at a multiple of it, and leave out at least as many events, which may still change."""

_EVENTS = """
SELECT sum(copy_of IS NULL), sum(type = :call AND copy_of IS NULL),
  sum(type = :call AND outcome IS :failed AND copy_of IS NULL),
  count(copy_of), sum(type = :call AND copy_of IS NOT NULL),
  sum(type = :call AND outcome IS :failed AND copy_of IS NOT NULL),
  min(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END), max(CASE WHEN copy_of IS NULL THEN nullif(ts, 0) END),
  min(nullif(ts, 0)), max(nullif(ts, 0))
FROM event WHERE session_id = :session AND event_index >= :first AND event_index < :end AND superseded_by IS NULL
"""

_COPIED_USAGE = f"""
SELECT sum({TOTAL}), count(*) FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = :session AND u.event_index >= :first AND u.event_index < :end
  AND e.superseded_by IS NULL AND e.copy_of IS NOT NULL
"""

_USAGE = MODEL_USAGE.format(
    condition="u.session_id = :session AND u.event_index >= :first AND u.event_index < :end "
    "AND e.superseded_by IS NULL AND e.copy_of IS NULL"
)

_FIRST_REQUEST = """
SELECT r.text FROM turn t JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
WHERE t.session_id = :session AND t.copied = {copied} AND r.text != '' ORDER BY t.turn_index LIMIT 1
"""

_SESSION = f"""
UPDATE session SET
  event_count = :events, tool_calls = :calls, failed_calls = :failures, copied_events = :copies,
  copied_tool_calls = :copied_calls, copied_failed_calls = :copied_failures, copied_tokens = :copied_tokens,
  copied_responses = :copied_responses, started_at = :started, ended_at = :ended,
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

_Group: TypeAlias = tuple[str, str, int, int]
"""Model, speed, context class, told: the key of a row of `model_usage` in its session."""


class _Sums(NamedTuple):
    """Sums over some consecutive events of a session; None where none of them has a figure."""

    counts: tuple[int, ...]
    """Events, calls, failed calls; the same of copies; tokens and responses of copies."""
    times: tuple[int | None, ...]
    """The first time without copies, the last, the first of all, the last."""
    usage: dict[_Group, tuple[Any, ...]]
    """The sums of rows of `model_usage`."""

    def __add__(self, later: object) -> _Sums:
        """Return the sums over these events and those that follow them."""
        assert isinstance(later, _Sums)
        first, last, first_of_all, last_of_all = zip(self.times, later.times, strict=True)
        times = (_of(min, first), _of(max, last), _of(min, first_of_all), _of(max, last_of_all))
        usage = dict(self.usage)
        for group, figures in later.usage.items():
            before = usage.get(group)
            usage[group] = figures if before is None else tuple(map(_added, before, figures))
        return _Sums(tuple(map(sum, zip(self.counts, later.counts, strict=True))), times, usage)


def sum_session(connection: sqlite3.Connection, session_id: int) -> None:
    """Compute the totals of a session from its turns and events."""
    last = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", (session_id,)).fetchone()[0]
    end = 0 if last is None else last + 1
    sums, reached = _so_far(connection, session_id)
    wanted = max((end // _STEP - 1) * _STEP, 0)
    if reached < wanted:
        for first in range(reached, wanted, _STEP):  # always in the same steps: costs are fractions
            sums += _sums_of(connection, session_id, first, first + _STEP)
        _keep(connection, session_id, wanted, sums)
        reached = wanted
    _write(connection, session_id, sums + _sums_of(connection, session_id, reached, end))


def changes_from(connection: sqlite3.Connection, session_id: int, event_index: int) -> None:
    """Forget the sums over events of which one, from an index on, changes: to be called in the same transaction."""
    connection.execute("DELETE FROM sum_so_far WHERE session_id = ? AND before > ?", (session_id, event_index))


def _so_far(connection: sqlite3.Connection, session_id: int) -> tuple[_Sums, int]:
    found = connection.execute("SELECT sums, before FROM sum_so_far WHERE session_id = ?", (session_id,)).fetchone()
    if found is None:
        return _Sums((0,) * 8, (None,) * 4, {}), 0
    counts, times, usage = orjson.loads(found[0])
    return _Sums(tuple(counts), tuple(times), {tuple(group): tuple(figures) for group, figures in usage}), found[1]


def _keep(connection: sqlite3.Connection, session_id: int, before: int, sums: _Sums) -> None:
    kept = orjson.dumps([sums.counts, sums.times, sorted(sums.usage.items())]).decode()
    connection.execute("INSERT OR REPLACE INTO sum_so_far VALUES (?, ?, ?)", (session_id, before, kept))


def _sums_of(connection: sqlite3.Connection, session_id: int, first: int, end: int) -> _Sums:
    named = {"session": session_id, "first": first, "end": end, **CODES}
    row = connection.execute(_EVENTS, named).fetchone()
    counts = [count or 0 for count in row[:6]]
    copied = connection.execute(_COPIED_USAGE, named).fetchone() if counts[3] else (0, 0)
    rows = connection.execute(_USAGE, named)
    usage = {(model, speed, size, told): tuple(figures) for _, model, speed, size, told, *figures in rows}
    return _Sums((*counts, copied[0] or 0, copied[1]), tuple(row[6:]), usage)


def _write(connection: sqlite3.Connection, session_id: int, sums: _Sums) -> None:
    events, calls, failures, copies, copied_calls, copied_failures, copied_tokens, copied_responses = sums.counts
    first, last, first_of_all, last_of_all = sums.times
    connection.execute("DELETE FROM model_usage WHERE session_id = ?", (session_id,))
    connection.executemany(
        "INSERT INTO model_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(session_id, *group, *figures) for group, figures in sums.usage.items()],
    )
    connection.execute(
        _SESSION,
        {
            "session": session_id, "events": events, "calls": calls, "failures": failures, "copies": copies,
            "copied_calls": copied_calls, "copied_failures": copied_failures, "copied_tokens": copied_tokens,
            "copied_responses": copied_responses, "started": first_of_all if first is None else first,
            "ended": last_of_all if last is None else last,
        },
    )  # fmt: skip


def _of(choose: Any, times: tuple[int | None, ...]) -> int | None:
    known = [time for time in times if time is not None]
    found: int | None = choose(known, default=None)
    return found


def _added(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
