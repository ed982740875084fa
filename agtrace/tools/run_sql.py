"""Counts and comparisons of any kind: a statement of SQL over read-only views of the index."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from typing import Annotated, Any

from agtrace_indexer.index.opening import path_of
from agtrace_indexer.index.queries import events, sessions
from agtrace_indexer.index.queries.base import is_team
from agtrace_indexer.index.queries.views import COMMON, VIEWS, Shown, Views
from agtrace_indexer.redact import redact
from agtrace_schema.answers import Rows
from agtrace_schema.model import dump
from msgspec import Meta, json

from agtrace.health.analysis import examinations
from agtrace.problems import InvalidParameter, SearchTimeout
from agtrace.sessions.counting import file_key
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.terms import failures_known
from agtrace.sessions.usage import Snapshot, snapshot_now, usage_of
from agtrace.settings.limits import limits, stopped
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.lines import cut, without_controls
from agtrace.text.next_call import call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import Arguments, Cursor
from agtrace.tools.tool import Context, Tool, query_of, unless_behind

_MOST_ROWS, _LONGEST_CELL = 200, 500
_LONGEST_VALUE = 250_000  # bytes; of an event's text a statement sees a fifth as many characters


class RunSql(Arguments):
    """Arguments of run_sql."""

    sql: Annotated[str, Meta(min_length=1, max_length=10_000)]
    cursor: Cursor = None


def answer(context: Context, request: RunSql) -> Reply:
    """Answer with the rows that a statement finds. Raises `InvalidParameter` if it can't be run."""
    if is_team(context.connection):
        raise InvalidParameter("sql", "sql: the index of a team takes no SQL; list_sessions sorts and counts there")
    query, skip, then = query_of(request), 0, snapshot_now(context.connection)
    if request.cursor is not None:
        skip, *marks = context.cursors.read(TOOL.name, query, request.cursor)
        then = Snapshot(*marks)
    end = time.monotonic() + context.search_seconds
    with closing(views_of(context.connection, context.now, context.prices, then, end=end)) as views:
        try:
            found = views.ask(request.sql)
            columns = [column[0] for column in found.description or ()]
            rows = [[*map(_cell, row)] for row in islice(found, skip, skip + _MOST_ROWS + 1)]
        except (sqlite3.Error, sqlite3.Warning) as error:
            if stopped() or time.monotonic() >= end:
                raise SearchTimeout(context.search_seconds) from None
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            raise views.raised or _refusal(request.sql, error) from None
    more, rows = len(rows) > _MOST_ROWS, rows[:_MOST_ROWS]
    return Reply(
        summary=unless_behind(counted(len(rows), "row"), len(rows), context),
        data=Pages(
            size=len(rows),
            build=lambda count: dump(Rows(columns=columns, rows=rows[:count])),
            cursor=lambda count: context.cursors.make(TOOL.name, query, (skip + count, *then)),
            more=more,
            first=not skip,
        ),
        budget=limits().list_bytes(0),
        hint=None if rows else call("read_artifact", ref="ax://sql").saying("describes the views"),
        untrusted=bool(rows),
    )


def views_of(
    connection: sqlite3.Connection,
    now: float,
    prices: PriceTable,
    then: Snapshot | None = None,
    *,
    end: float = float("inf"),
    whole_ids: bool = False,
) -> Views:
    """Return the views of an index as it was then, until a time of the monotonic clock, with short or whole ids."""
    then, read = then or snapshot_now(connection), events.text_reader(connection)
    longest = 10**9 if whole_ids else _LONGEST_VALUE

    def over() -> bool:
        return stopped() or time.monotonic() >= end

    def text_of(session: int, event: int | None) -> str | None:
        found = None if event is None else events.at(connection, session, event)
        return found and read(found).text[: longest // 5]

    def findings_of(session: int) -> str:
        if over():
            raise TimeoutError
        found = examinations(connection, sessions.in_rows(connection, [session]), now=now, prices=prices)
        return json.encode(found[session].insights).decode()

    functions: dict[str, Callable[..., Any]] = {
        "cost_of": lambda session: usage_of(connection, prices, [session])[session].cost,
        "findings_of": findings_of,
        "text_of": text_of,
        "whole_path": lambda path, cwd: file_key(path, cwd, None),
    }
    shown = _shown(connection, then, whole_ids=whole_ids)
    return Views(path_of(connection), functions, shown, then.event, over, longest)


def _shown(connection: sqlite3.Connection, then: Snapshot, *, whole_ids: bool) -> Iterator[Shown]:
    known = [one for one in sessions.of_provider(connection, None) if one.id <= then.session]
    ids = {one.id: one.uid if whole_ids else short_id(connection, one.uid) for one in known}
    projects = labels(connection)
    for one in known:
        told = failures_known(one.provider, one.tool_calls)
        yield one.id, ids[one.id], ids.get(one.parent_session or 0), projects.get(one.project_id or 0), told


def _cell(value: Any) -> str | int | float | None:
    """Return a value as an answer shows it."""
    if isinstance(value, str):
        return cut(redact(without_controls(value[: 40 * _LONGEST_CELL])), _LONGEST_CELL)
    return f"{len(value)} bytes" if isinstance(value, bytes) else round(value, 4) if isinstance(value, float) else value


def _refusal(sql: str, error: Exception) -> InvalidParameter:
    """Return why a statement can't be run, and which views or columns there are."""
    message = str(error)
    if "authoriz" in message or "prohibited" in message or "one statement" in message:
        message = "only a SELECT from the views is run"
    named = [name for name in VIEWS if "column" in message and re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
    columns = [f"{name} has {', '.join(COMMON | VIEWS[name].columns)}" for name in named]
    there = "; ".join(columns) or f"there are {', '.join(VIEWS)}: see ax://sql"
    return InvalidParameter("sql", f"sql: {message}; {there}")


TOOL = Tool(
    "run_sql",
    "Run SQL",
    "Count and compare: a SELECT (SQLite) from sessions(title, turns, tool_calls, failed_calls, total_tokens, "
    "cost_usd), tool_calls(event, tool, program, failed, seconds, input, output), token_usage(model, output_tokens, "
    "total_tokens), files(path, access), events(event, type, text), turns, landmarks, findings; all have session, "
    "agent, kind, project, at and day. Sub-agents are included; kind != 'subagent' leaves them out. More: ax://sql.",
    RunSql,
    (Rows,),
    answer,
)
