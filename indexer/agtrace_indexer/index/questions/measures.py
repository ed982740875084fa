"""Measures of sessions: the figures by which lists are sorted.

All are those of the session itself: copies, superseded events and sub-agents don't count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agtrace_schema.codes import OUTCOME_CODE
from agtrace_schema.events import Outcome

from agtrace_indexer.index.questions.queries import CODES, LIVE, as_json, pairs
from agtrace_indexer.index.questions.turns import TokenCounts
from agtrace_indexer.index.sums import TOTAL

_OWN = f"e.session_id = s.id AND e.id <= :newest AND e.copy_of IS NULL AND {LIVE}"
_CALLS = f"FROM event e WHERE {_OWN} AND e.type = :call"
_ANSWERED_LATER = (
    "EXISTS (SELECT 1 FROM event r WHERE r.session_id = e.session_id AND r.event_index = e.link AND r.id > :newest)"
)
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]} AND NOT {_ANSWERED_LATER}"
_USED = f"FROM token_usage u JOIN event e USING (session_id, event_index) WHERE u.session_id = s.id AND {_OWN}"

_KNOWN_TOTAL = (
    f"CASE WHEN coalesce({', '.join(f'u.{kind}' for kind in TokenCounts._fields)}) IS NOT NULL THEN {TOTAL} END"
)

# Few calls fail: from each of them one step back to the call before it.
_FAILURE_RUN = f"""
(SELECT coalesce(max(length), 0) FROM (
  SELECT count(*) AS length FROM (
    SELECT sum(begins) OVER (ORDER BY event_index) AS run FROM (
      SELECT f.event_index, coalesce(
        (SELECT NOT coalesce({_FAILED}, false) {_CALLS} AND e.event_index < f.event_index
          AND coalesce(e.outcome, -1) NOT IN (:rejected, :interrupted)
          ORDER BY e.event_index DESC LIMIT 1), true) AS begins
      FROM (SELECT e.event_index {_CALLS} AND {_FAILED}) f) begun) numbered
  GROUP BY run) runs)
"""

_WROTE = f"""
FROM touched t JOIN event e USING (session_id, event_index)
  WHERE t.session_id = s.id AND t.access = 'write' AND {_OWN}
  AND (e.outcome IS NULL OR e.outcome NOT IN (:failed, :rejected, :interrupted) OR {_ANSWERED_LATER})
"""
_EDITS = f"(SELECT count(DISTINCT t.event_index) {_WROTE})"
_FILES = f"(SELECT count(DISTINCT t.path_id) {_WROTE})"

_REQUESTS = f"""
(SELECT count(*) FROM request r JOIN event e USING (session_id, event_index) WHERE r.session_id = s.id AND {_OWN})
"""

_COMPACTIONS = f"""
(SELECT count(*) FROM landmark l JOIN event e USING (session_id, event_index)
  WHERE l.session_id = s.id AND l.kind = 'compaction' AND {_OWN})
"""

_TURNS_THEN = """
(SELECT count(*) FROM turn t JOIN event e ON e.session_id = t.session_id AND e.event_index = t.first_event
  WHERE t.session_id = s.id AND NOT t.copied AND e.id <= :newest)
"""


def _as_then(now: str, then: str) -> str:
    """Return a stored figure as SQL; of a session that grew since the snapshot, the figure that it had then."""
    return f"CASE WHEN s.id IN (SELECT session_id FROM event WHERE id > :newest) THEN {then} ELSE {now} END"


ENDED = _as_then(
    "s.ended_at",
    "(SELECT coalesce(max(CASE WHEN e.copy_of IS NULL THEN nullif(e.ts, 0) END), max(nullif(e.ts, 0))) "
    f"FROM event e WHERE e.session_id = s.id AND e.id <= :newest AND {LIVE})",
)
"""When something happened last in a `session` s, as of the snapshot whose newest event is :newest; a copy tells it only
of a session that has nothing else."""

MEASURES: dict[str, str] = {
    "failed_calls": _as_then("s.failed_calls", f"(SELECT count(*) {_CALLS} AND {_FAILED})"),
    "failure_run": _FAILURE_RUN,
    "output_tokens": _as_then("s.output_tokens", f"(SELECT sum(u.output_tokens) {_USED})"),
    "total_tokens": _as_then(
        f"(SELECT sum({_KNOWN_TOTAL}) FROM model_usage u WHERE u.session_id = s.id)",
        f"(SELECT sum({_KNOWN_TOTAL}) {_USED})",
    ),
    "tool_calls": _as_then("s.tool_calls", f"(SELECT count(*) {_CALLS})"),
    "turns": _as_then("s.turn_count", _TURNS_THEN),
    "duration": f"({ENDED} - s.started_at) / 1000",
    "compactions": _COMPACTIONS,
    "edits": _EDITS,
    "files": _FILES,
    "human_requests": _REQUESTS,
}
"""The measures, as SQL over `session` s: whole numbers, null if the log has no such figure. Durations are seconds.

failure_run: the longest run of tool calls that failed one after the other, whatever was cancelled between;
edits: calls that wrote files;
files: the files that they wrote;
human_requests: also the task that a sub-agent was given in place of one.
"""


def of_sessions(
    connection: sqlite3.Connection, sessions: Iterable[int], measure: str, *, newest_event: int
) -> dict[int, int | None]:
    """Return a measure (a key of `MEASURES`) of these sessions, by row id, as of a snapshot with this newest event."""
    sql = f"SELECT s.id, {MEASURES[measure]} FROM session s WHERE s.id IN (SELECT value FROM json_each(:sessions))"
    return pairs(connection, sql, {**CODES, "sessions": as_json(sessions), "newest": newest_event})
