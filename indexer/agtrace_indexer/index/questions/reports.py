"""The queries of a report on many sessions at once: the sessions, their projects, the tools they called."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome
from msgspec import Struct

from agtrace_indexer.index.questions.queries import COUNTED, as_json, rows

_PARENTS = "SELECT id, kind, parent_session FROM session WHERE kind != 'warmup' ORDER BY id"

_PROJECTS = "SELECT id, hash, root_path FROM project ORDER BY root_path IS NULL, root_path, hash"

_CALLS = f"""
SELECT e.session_id, n.text, count(*), coalesce(sum(e.outcome = {OUTCOME_CODE[Outcome.FAILED]}), 0)
FROM json_each(?) wanted JOIN event e ON e.session_id = wanted.value LEFT JOIN name n ON n.id = e.name_id
WHERE e.type = {TYPE_CODE[EventType.TOOL_CALL]} AND {COUNTED} GROUP BY 1, 2
"""


class Relative(NamedTuple):
    """A session with its kind and parent."""

    id: int
    kind: str
    parent: int | None


class Project(Struct, frozen=True):
    """A project; its root is None if only its hash is known (Gemini CLI)."""

    id: int
    hash: str
    root_path: str | None


class ToolCalls(NamedTuple):
    """How often a session called a tool."""

    session: int
    tool: str | None
    calls: int
    failed: int


def relatives(connection: sqlite3.Connection) -> Iterator[Relative]:
    """Yield all sessions except warm-ups, by row id."""
    return rows(connection, Relative, _PARENTS)


def projects(connection: sqlite3.Connection) -> list[Project]:
    """Return all projects, by root."""
    return list(rows(connection, Project, _PROJECTS))


def calls_by_tool(connection: sqlite3.Connection, sessions: Iterable[int]) -> Iterator[ToolCalls]:
    """Yield the tools that each of these sessions called, without copied and superseded calls."""
    return rows(connection, ToolCalls, _CALLS, (as_json(sessions),))
