"""Calls, uses of files and tokens of many sessions, by group.

What counts in a session counts here, so that the sums agree with those of lists: no copies, no superseded events, no
warm-ups.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from agtrace_schema.requests import GroupBy

from agtrace_indexer.index.questions.matches import EventFilters, of_ranked_events
from agtrace_indexer.index.questions.queries import CODES, COUNTED, HAS_PATH, REPOSITORY, is_team, local_day, rows
from agtrace_indexer.index.sums import TOTAL

# The model of the response that made a call; if the log doesn't tell, the session's.
_MODELS = """
LEFT JOIN (
  SELECT session_id, min(model) AS model FROM model_usage WHERE model != '' GROUP BY 1 HAVING count(DISTINCT model) = 1
) single ON single.session_id = e.session_id
LEFT JOIN (
  SELECT r.session_id, r.turn_index, r.step_index, max(u.model) AS model
  FROM token_usage u JOIN event r USING (session_id, event_index)
  WHERE u.session_id IN (
    SELECT session_id FROM model_usage WHERE model != '' GROUP BY 1 HAVING count(DISTINCT model) > 1)
  GROUP BY 1, 2, 3
) step ON step.session_id = e.session_id AND step.turn_index = e.turn_index AND step.step_index = e.step_index
"""

_KEYS: dict[GroupBy, str] = {
    "tool": "e.name_id",
    "program": "e.program_id",
    "project": REPOSITORY,
    "agent": "s.provider",
    "model": "coalesce(step.model, single.model, s.model)",
    "session": "s.id",
    "user": "(SELECT p.shown FROM person p WHERE p.id = s.person_id)",
}
"""Group -> the key of a call, as SQL; only a team's index has users."""

_NAMED = "(SELECT text FROM name WHERE id = key)"
"""The name of a tool or a program, looked up once for each group."""

# CROSS JOIN makes SQLite read the events in order, instead of those of one session after the other.
_COUNTED = f"""
CROSS JOIN session s {{joins}} WHERE s.id = e.session_id AND {COUNTED} AND s.kind != 'warmup' {{conditions}}
"""


_FAILED = "CASE WHEN max(e.outcome != :unknown) THEN count(*) FILTER (WHERE e.outcome = :failed) END"
"""How many calls failed; NULL if the logs don't say of any of them how it ended."""

_CALLS = f"""
SELECT {{label}}, calls, failed, sessions FROM (
  SELECT {{key}} AS key, count(*) AS calls, {_FAILED} AS failed,
    count(DISTINCT e.session_id) AS sessions
  FROM event e {_COUNTED} AND e.type = :call GROUP BY 1) grouped
"""

_FILES = f"""
SELECT p.text, s.cwd, s.id, count(*), {_FAILED}
FROM touched t JOIN event e USING (session_id, event_index)
{_COUNTED} AND (:path IS NULL OR {HAS_PATH.format("p.text")}) GROUP BY p.id, s.id
"""

_TOKENS = f"""
SELECT {{key}}, coalesce(sum({TOTAL}), 0), coalesce(sum(u.output_tokens), 0), count(*), count(DISTINCT e.session_id)
FROM token_usage u JOIN event e USING (session_id, event_index)
{_COUNTED} GROUP BY 1
"""


class Group(NamedTuple):
    """A group with its figures."""

    key: str | int | None
    """A name, or the row id of a session or a project, or a day; None if the log doesn't tell."""
    figures: tuple[int | None, ...]
    """Its calls and how many of them failed, None if that is unknown of all; or its tokens, those of the output, and
    its responses."""
    sessions: int


class FileUses(NamedTuple):
    """The calls of a session that name a file."""

    path: str
    cwd: str | None
    """The working directory of the session."""
    session: int
    calls: int
    failed: int | None
    """None if it isn't known of any of them how it ended."""


def calls(connection: sqlite3.Connection, by: GroupBy, filters: EventFilters, kind: str | None) -> list[Group]:
    """Return the calls that pass the filters, by group; `kind` as in `SessionFilters`.

    By program only calls that run a command.
    """
    label = _NAMED if by in ("tool", "program") else "key"
    runs = " AND e.program_id IS NOT NULL" if by == "program" else ""
    parts = {"key": _key(connection, by), "label": label, "joins": _MODELS if by == "model" else ""}
    return list(rows(connection, _group, *_asked(_CALLS, filters, kind, more=runs, **parts)))


def files(connection: sqlite3.Connection, filters: EventFilters, kind: str | None) -> Iterator[FileUses]:
    """Yield the files that such calls name, by session."""
    return rows(connection, FileUses, *_asked(_FILES, filters, kind, joins="JOIN path p ON p.id = t.path_id"))


def tokens(connection: sqlite3.Connection, by: GroupBy, filters: EventFilters, kind: str | None) -> list[Group]:
    """Return the tokens of the responses that pass the filters, by group; none but calls have tools and programs."""
    key = "u.model" if by == "model" else _key(connection, by)
    return list(rows(connection, _group, *_asked(_TOKENS, filters, kind, key=key)))


def _group(key: str | int | None, *figures: int) -> Group:
    return Group(key, figures[:-1], figures[-1])


def _key(connection: sqlite3.Connection, by: GroupBy) -> str:
    """Return the key of a call, as SQL; one's own index has nobody's sessions but one's own."""
    if by == "day":
        return local_day()
    return "NULL" if by == "user" and not is_team(connection) else _KEYS[by]


def _asked(
    query: str, filters: EventFilters, kind: str | None, *, more: str = "", joins: str = "", **parts: str
) -> tuple[str, dict[str, Any]]:
    """Return a query with its parts and conditions filled in, and its arguments."""
    conditions, arguments = of_ranked_events(filters)
    if kind is not None:
        conditions += " AND (s.kind = 'subagent') = (:kind = 'subagent')"
        arguments["kind"] = kind
    filled = query.format(joins=joins, conditions=conditions + more, **parts)
    return filled, {**CODES, "path": None, **arguments}
