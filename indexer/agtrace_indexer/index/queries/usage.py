"""The token usage of single responses, and totals of sessions; the measures by which lists are sorted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from agtrace_schema.codes import OUTCOME_CODE
from agtrace_schema.events import Outcome
from msgspec import Struct

from agtrace_indexer.index.queries.base import (
    CODES,
    COUNTED,
    GIVEN,
    LIVE,
    OF_PROJECTS,
    OF_STEP,
    OWN_THEN,
    REPOSITORY,
    Row,
    as_json,
    conditions,
    first,
    local_day,
    only,
    pairs,
    rows,
    tuples,
)
from agtrace_indexer.index.queries.events import Snapshot
from agtrace_indexer.index.queries.turns import TOKEN_COLUMNS, Step, TokenCounts
from agtrace_indexer.index.sums import CONTEXT_CLASS, MODEL_USAGE, TOTAL, WHOLE_INPUT

_FIGURES = f"u.event_index, u.model, u.response_id, u.complete, u.context_window, {TOKEN_COLUMNS}"

_LARGEST_REQUEST = f"""
SELECT max({WHOLE_INPUT}), max(u.context_window) FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = ? AND {COUNTED} AND e.step_index IS NOT NULL
"""

_FILLED = f"""
SELECT u.event_index, u.model, {WHOLE_INPUT}, u.context_window
FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = ? AND e.step_index IS NOT NULL AND e.superseded_by IS NULL AND {WHOLE_INPUT} > 0
ORDER BY u.event_index DESC LIMIT 1
"""

# Answers of agtrace that stand alone between two responses, and what the input of the second one has more.
_TOOK = f"""
WITH answer AS (
  SELECT e.id, e.session_id, e.event_index, max(b.event_index) AS before,
    (SELECT min(a.event_index) FROM token_usage a WHERE a.session_id = e.session_id AND a.event_index > e.event_index)
      AS after
  FROM event e JOIN token_usage b ON b.session_id = e.session_id AND b.event_index < e.event_index
  WHERE e.own = 1 AND e.type = :result AND {COUNTED} GROUP BY 1, 2, 3)
SELECT n.session_id, n.event_index,
  (SELECT {WHOLE_INPUT} FROM token_usage u WHERE u.session_id = n.session_id AND u.event_index = n.after)
  - (SELECT {TOTAL} FROM token_usage u
     WHERE u.session_id = n.session_id AND u.event_index = n.before AND u.complete = 1)
FROM answer n WHERE NOT EXISTS (
  SELECT 1 FROM event o WHERE o.session_id = n.session_id AND o.event_index BETWEEN n.before AND n.after
    AND o.event_index != n.event_index AND o.type IN (:result, :user))
ORDER BY n.id DESC LIMIT :most
"""

_MODELS_THEN = f"""
SELECT coalesce(u.model, ''), min(u.event_index)
FROM event e JOIN token_usage u USING (session_id, event_index) WHERE {OWN_THEN} GROUP BY 1 ORDER BY 2
"""

# Whether the provider states the cost of a whole session, or of the one that started it as a sub-agent.
_WHOLE = """EXISTS (
  SELECT 1 FROM session o JOIN model_usage w ON w.session_id IN (o.id, o.parent_session)
  WHERE o.id = {} AND w.told = 2)"""

_BY_MODEL = f"""
SELECT {{key}}, m.model, m.speed, m.context_class,
  CASE WHEN m.told > 0 OR {_WHOLE.format("m.session_id")} THEN 1 ELSE 0 END,
  sum(m.responses), sum(m.incomplete), sum(m.cost_usd), {", ".join(f"sum(m.{kind})" for kind in TokenCounts._fields)}
FROM {{usage}} m JOIN session s ON s.id = m.session_id WHERE {{condition}}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1 NULLS FIRST, sum(m.responses) DESC, 2, 3, 4, 5
"""

# Sessions that grew since have more in `model_usage` by now.
_GREW = "IN (SELECT e.session_id FROM event e WHERE e.id > :newest)"
_USAGE_THEN = f"""
(SELECT * FROM model_usage WHERE session_id NOT {_GREW} UNION ALL
{MODEL_USAGE.format(condition=f"u.session_id {_GREW} AND e.id <= :newest AND e.copy_of IS NULL AND {LIVE}")})
"""

# CROSS JOIN makes SQLite look up the figures of these sessions only, each with its event.
_BY_DAY = f"""
WITH wanted AS MATERIALIZED (SELECT j.value, {_WHOLE.format("j.value")} AS whole FROM json_each(:sessions) j)
SELECT {{day}}, u.session_id, coalesce(u.model, ''),
  coalesce(u.speed, ''), {CONTEXT_CLASS}, u.cost_usd IS NOT NULL OR wanted.whole, count(*), sum(NOT u.complete),
  sum(u.cost_usd),
  {", ".join(f"sum(u.{kind})" for kind in TokenCounts._fields)}
FROM wanted CROSS JOIN token_usage u CROSS JOIN event e
WHERE u.session_id = wanted.value AND e.session_id = u.session_id AND e.event_index = u.event_index AND {COUNTED}
  AND (:since IS NULL OR e.ts >= :since) AND (:until IS NULL OR e.ts <= :until)
GROUP BY 1, 2, 3, 4, 5, 6
"""

_WITHOUT_FIGURES = """
SELECT {key}, count(*) FROM session s
WHERE {condition} AND s.responses = 0 AND s.copied_responses = 0
  AND EXISTS (SELECT 1 FROM turn t WHERE t.session_id = s.id AND t.step_count > 0 AND NOT t.copied) GROUP BY 1
"""

_OF_STARTS = """
SELECT count(*), coalesce(sum(total_tokens), 0) FROM session WHERE kind = 'warmup' AND total_tokens > 0
  AND (:since IS NULL OR ended_at >= :since) AND (:until IS NULL OR started_at <= :until)
"""

_NOT_UNDERSTOOD = """
SELECT {key}, count(*) FROM session s WHERE {condition}
  AND (EXISTS (SELECT 1 FROM record_type t WHERE t.file_id = s.file_id AND t.status = 'unknown')
    OR EXISTS (SELECT 1 FROM file f WHERE f.id = s.file_id AND f.unreadable_lines > 0)
    OR (s.thread = '' AND EXISTS (SELECT 1 FROM record_type WHERE file_id = s.file_id AND type = 'usage/compaction')
      AND NOT EXISTS (SELECT 1 FROM record_type WHERE file_id = s.file_id AND type = 'cost-state')
      AND NOT EXISTS (SELECT 1 FROM session c WHERE c.parent_session = s.id AND c.own_id LIKE 'agent-acompact%'))
    OR (s.responses > 0 AND EXISTS (SELECT 1 FROM event e, event u WHERE e.session_id = s.id AND u.session_id = s.id
      AND e.event_index = (SELECT max(m.event_index) FROM event m WHERE m.session_id = s.id AND m.type IN (1, 2, 3)
        AND m.superseded_by IS NULL AND m.step_index IS NOT NULL)
      AND u.event_index = (SELECT max(event_index) FROM token_usage WHERE session_id = s.id)
      AND u.event_index < e.event_index AND u.step_index IS NOT NULL
      AND (u.turn_index, u.step_index) != (e.turn_index, e.step_index)))) GROUP BY 1
"""

_KINDS = len(TokenCounts._fields)
_HOUR_MS = 3_600_000


# -- single responses ------------------------------------------------------------------------------


class Figures(Struct, frozen=True):
    """The token figures of a response."""

    event_index: int
    """Index of the TokenUsage event with these figures."""
    model: str | None
    response_id: str | None
    complete: int
    """0 if the log has only placeholders."""
    context_window: int | None
    tokens: TokenCounts


def _with_counts(form: Callable[..., Row], *columns: Any) -> Row:
    return form(*columns[:-_KINDS], TokenCounts(*columns[-_KINDS:]))


def figures(connection: sqlite3.Connection, session_row: int, indices: Iterable[int]) -> list[Figures]:
    """Return the token figures in these events of a session, in file order."""
    sql = f"SELECT {_FIGURES} FROM token_usage u WHERE session_id = ? AND event_index IN {GIVEN} ORDER BY 1"
    return list(rows(connection, partial(_with_counts, Figures), sql, (session_row, as_json(indices))))


def of_step(connection: sqlite3.Connection, session_row: int, step: Step) -> list[Figures]:
    """Return the token figures of a step, in file order."""
    sql = (
        f"SELECT {_FIGURES} FROM event e JOIN token_usage u USING (session_id, event_index) "
        f"WHERE {OF_STEP} ORDER BY e.event_index"
    )
    return list(rows(connection, partial(_with_counts, Figures), sql, {**step._asdict(), "session": session_row}))


def largest_request(connection: sqlite3.Connection, session_row: int) -> tuple[int | None, int | None]:
    """Return the input of a session's largest request, without copies, and the context window according to the log."""
    return only(connection, lambda *row: row, _LARGEST_REQUEST, (session_row,))


def answer_tokens(connection: sqlite3.Connection, most: int) -> Iterator[tuple[int, int, int | None]]:
    """Yield (session, event, tokens) of the newest answers of agtrace, as their readers counted them, if they did."""
    return tuples(connection, _TOOK, {**CODES, "most": most})


class Filled(NamedTuple):
    """What the model was given with its last request."""

    event_index: int
    model: str | None
    tokens: int
    """Input of all kinds."""
    context_window: int | None
    """The size of the window, according to the log."""


def filled(connection: sqlite3.Connection, session_row: int) -> Filled | None:
    """Return the figures of the last response of a session that has some."""
    return first(connection, Filled, _FILLED, (session_row,))


def models_then(connection: sqlite3.Connection, session_row: int, then: Snapshot) -> dict[str, int]:
    """Return model -> event of its first figures, for the models that a session had used, in that order.

    A model without a name is ''.
    """
    return pairs(connection, _MODELS_THEN, then.named(session_row))


# -- sums of sessions ------------------------------------------------------------------------------


class Among(Struct, frozen=True):
    """The sessions to sum up, and the key to group them by: each session, each repository, or all together."""

    by: Literal["session", "project", "all"]
    sessions: tuple[int, ...] | None = None
    """The row ids of sessions; None means all."""
    projects: tuple[int, ...] | None = None
    """The row ids of projects; None means all."""
    newest: int | None = None
    """The mark of the sessions that existed when a list was begun; None means all."""
    newest_event: int | None = None
    """The mark of the events that existed then, for `by_model`; None means all."""


class ModelSums(Struct, frozen=True):
    """The usage of responses with the same price."""

    key: int
    """The row id of the session or of the repository; 0 if all are summed up together."""
    model: str
    """Empty if the log doesn't name it."""
    speed: str
    """Empty for standard speed."""
    context_class: int
    """How large each request was, and when."""
    told: int
    """1 if the provider says what these responses cost, by themselves or as part of a session."""
    responses: int
    incomplete: int
    """Responses with only placeholder figures in the log, or none."""
    cost_usd: float | None
    """Their cost according to the provider; None if that is part of others'."""
    tokens: TokenCounts


def by_model(connection: sqlite3.Connection, among: Among) -> Iterator[ModelSums]:
    """Yield the usage of sessions by key and by everything that affects the price, the most used first."""
    return rows(connection, partial(_with_counts, ModelSums), *_filled_in(_BY_MODEL, among))


class DaySums(NamedTuple):
    """The usage of a session's responses of one day, or hour, with the same price."""

    day: int | None
    """The day of the responses, in the machine's zone, or their hour, counted from 1970-01-01; None if the log has no
    time."""
    sums: ModelSums
    """Its key is the row id of the session."""


def _day_sums(day: int | None, *columns: Any) -> DaySums:
    return DaySums(day, _with_counts(ModelSums, *columns))


def by_day(
    connection: sqlite3.Connection,
    sessions: Iterable[int],
    *,
    since: int | None,
    until: int | None,
    hours: bool = False,
) -> Iterator[DaySums]:
    """Yield the usage of these sessions by day, or by hour, by session and everything that affects the price.

    A response belongs to the day of its own event, and to the period if that event does; times are milliseconds since
    1970 UTC, both ends included.
    """
    return rows(
        connection,
        _day_sums,
        _BY_DAY.format(day=f"e.ts / {_HOUR_MS}" if hours else local_day()),
        {"sessions": as_json(sessions), "since": since, "until": until},
    )


def without_figures(connection: sqlite3.Connection, among: Among) -> dict[int, int]:
    """Return, by key, the number of sessions in which a model answered but whose log has no figures at all."""
    return pairs(connection, *_filled_in(_WITHOUT_FIGURES, among))


def of_starts(connection: sqlite3.Connection, *, since: int | None, until: int | None) -> tuple[int, int]:
    """Return how many mere starts of agents in a period have figures, and their tokens, which are in no other sum."""
    return only(connection, lambda *row: row, _OF_STARTS, {"since": since, "until": until})


def not_understood(connection: sqlite3.Connection, among: Among) -> dict[int, int]:
    """Return, by key, the number of sessions whose logs may tell of more usage than is known.

    They have lines that can't be read, records of unknown kinds, unknown fields in a usage object, or no figures of
    their last response, during which the agent was ended, or of a compaction.
    """
    return pairs(connection, *_filled_in(_NOT_UNDERSTOOD, among))


def _filled_in(query: str, among: Among) -> tuple[str, dict[str, Any]]:
    """Return a query of totals with its key and condition filled in, and its arguments."""
    sessions, projects = (None if rows is None else as_json(rows) for rows in (among.sessions, among.projects))
    wanted, arguments = conditions(
        ("s.id IN (SELECT value FROM json_each(:sessions))", "sessions", sessions),
        (OF_PROJECTS, "projects", projects),
        ("s.id <= :newest_session", "newest_session", among.newest),
    )
    usage = "model_usage" if among.newest_event is None else _USAGE_THEN
    arguments |= {} if among.newest_event is None else {"newest": among.newest_event}
    key = {"session": "s.id", "project": REPOSITORY, "all": "0"}[among.by]
    return query.format(key=key, usage=usage, condition=" AND ".join(wanted) or "true"), arguments


# -- measures -----------------------------------------------------------------------------------------

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
