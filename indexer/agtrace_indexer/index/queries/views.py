"""Views of the index, for statements that others write, which may read nothing else; and a plain database of them.

They show what counts: neither copies nor superseded events nor warm-ups.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES, TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.opening import open_to_read
from agtrace_indexer.index.queries.base import CODES, COUNTED
from agtrace_indexer.index.sums import TOTAL
from agtrace_indexer.redact import redact


class View(NamedTuple):
    """A view: what a row of it is, its columns besides `COMMON` with their SQL, and where they come from."""

    row: str
    columns: dict[str, str]
    source: str


def _times(column: str) -> dict[str, str]:
    return {
        "at": f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({column}, 0) / 1000, 'unixepoch')",
        "day": f"date(nullif({column}, 0) / 1000, 'unixepoch', 'localtime')",
    }


def _named(column: str, names: Iterable[str]) -> str:
    cases = (f"WHEN {code} THEN '{name}'" for code, name in enumerate(names))
    return f"CASE {column} {' '.join(cases)} END"


COMMON = {
    "session": "x.session", "agent": "s.provider", "kind": "s.kind", "project": "x.project", **_times("s.started_at"),
}  # fmt: skip
"""The columns of every view."""

_EVENT = {"event": "e.event_index", "turn": "e.turn_index", "step": "e.step_index", **_times("e.ts")}
_TOKENS = {name: f"u.{name}" for name in ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")}
_OUTCOME = {
    "failed": f"CASE WHEN e.outcome != {CODES['unknown']} THEN e.outcome = {CODES['failed']} END",
    "outcome": _named("e.outcome", OUTCOME_CODES),
}
_NAME = "(SELECT text FROM name WHERE id = e.{}_id)"
_OF = "JOIN shown x ON x.row = e.session_id JOIN session s ON s.id = x.row WHERE e.id <= {newest}"
_COUNTED = f"JOIN event e USING (session_id, event_index) {_OF} AND {COUNTED}"

VIEWS = {
    "sessions": View(
        "what one agent did",
        {
            "title": "coalesce(s.title, s.snippet)", "parent": "x.parent", "folder": "s.cwd", "branch": "s.branch",
            "model": "s.model", "turns": "s.turn_count", "tool_calls": "s.tool_calls",
            "failed_calls": "CASE WHEN x.told THEN s.failed_calls END", "output_tokens": "s.output_tokens",
            "total_tokens": "s.total_tokens", "cost_usd": "cost_of(s.id)", "active_seconds": "s.active_ms / 1000",
        },
        "session s JOIN shown x ON x.row = s.id",
    ),
    "turns": View(
        "a request and the work for it",
        {
            **_EVENT, "request": "(SELECT r.text FROM request r "
            "WHERE r.session_id = t.session_id AND r.event_index = t.request_event)", "steps": "t.step_count",
            "tool_calls": "t.tool_calls", "failed_calls": "CASE WHEN x.told THEN t.failed_calls END",
            "output_tokens": "t.output_tokens", "active_seconds": "t.active_ms / 1000",
        },
        f"turn t JOIN event e ON e.session_id = t.session_id AND e.event_index = t.first_event {_OF} AND NOT t.copied",
    ),
    "events": View(
        "a prompt, message, thought, call, result, usage of tokens or notification",
        {
            **_EVENT, "type": _named("e.type", EVENT_TYPE_CODES), "name": _NAME.format("name"), **_OUTCOME,
            "text": "text_of(e.session_id, e.event_index)",
        },
        f"event e {_OF} AND {COUNTED}",
    ),
    "tool_calls": View(
        "a call; failed is 1, 0, or null if the log doesn't tell",
        {
            **_EVENT, "tool": _NAME.format("name"), "program": _NAME.format("program"), **_OUTCOME,
            "seconds": "e.duration_ms / 1000.0", "input": "text_of(e.session_id, e.event_index)", "result": "e.link",
            "output": "text_of(e.session_id, e.link)",
        },
        f"event e {_OF} AND {COUNTED} AND e.type = {TYPE_CODE[EventType.TOOL_CALL]}",
    ),
    "token_usage": View(
        "a response", {**_EVENT, "model": "u.model", **_TOKENS, "total_tokens": TOTAL},
        f"main.token_usage u {_COUNTED}",
    ),
    "files": View(
        "a file in a call; access is read or write",
        {
            **_EVENT, "path": "whole_path((SELECT text FROM path WHERE id = t.path_id), s.cwd)", "access": "t.access",
            "tool": _NAME.format("name"), **_OUTCOME,
        },
        f"touched t {_COUNTED}",
    ),
    "landmarks": View(
        "what became of the work: commit, branch, pull_request, issue, test_run, build, release, question, compaction",
        {**_EVENT, "what": "l.kind", "name": "l.name", "detail": "l.detail", "verdict": "l.verdict"},
        f"landmark l {_COUNTED}",
    ),
    "findings": View(
        "what went wrong; severity is Critical, Warning or Info",
        {
            "event": "f.value ->> '$.evidence[0].event_index'", "turn": "f.value ->> 'turn_index'",
            **{name: f"f.value ->> '{name}'" for name in ("severity", "detector", "message", "count")},
        },
        "session s JOIN shown x ON x.row = s.id JOIN json_each(findings_of(s.id)) f",
    ),
}  # fmt: skip
"""By name; `{newest}` is the row id of the newest event that they show."""

DESCRIPTION = "\n".join(
    (
        *(
            f"{name}({', '.join(n for n in view.columns if n not in COMMON)}): {view.row}"
            for name, view in VIEWS.items()
        ),
        f"All have {', '.join(COMMON)}; at is UTC. Copies and what was replaced aren't in them. Sub-agents are: "
        "kind != 'subagent' leaves them out.",
        "SELECT tool, sum(failed) FROM tool_calls WHERE day >= date('now', '-7 days') GROUP BY 1 ORDER BY 2 DESC",
        "SELECT model, sum(total_tokens) FROM token_usage WHERE kind != 'subagent' GROUP BY 1 ORDER BY 2 DESC",
        "SELECT u.model, avg(failed) FROM tool_calls JOIN token_usage u USING (session, turn, step) GROUP BY 1",
        "SELECT path, count(DISTINCT session) FROM files WHERE access = 'write' GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
        "SELECT event, input, output FROM tool_calls WHERE session = 'fb3cff44' AND failed",
    )
)
"""What is said of them."""

Shown: TypeAlias = tuple[int, str, str | None, str | None, bool]
"""Row id, id as it is shown, that of the parent, the project, and whether the log tells how calls ended."""


class Views:
    """A connection of its own to an index, which reads nothing but the views of these sessions."""

    def __init__(
        self,
        path: Path,
        functions: Mapping[str, Callable[..., Any]],
        sessions: Iterable[Shown],
        newest: int,
        over: Callable[[], bool],
        longest: int,
    ) -> None:
        """`functions` are those in the views that SQLite hasn't; no value takes more bytes than `longest`."""
        self._connection, self._known = open_to_read(path), set[tuple[int, str | None, str | None]]()
        self._functions = functions.keys()
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 100)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
        self.raised: Exception | None = None
        """What a function raised, of which SQLite tells only that something was."""
        for name, function in functions.items():
            self._connection.create_function(name, -1, self._noted(function), deterministic=True)
        columns = "row INTEGER PRIMARY KEY, session UNIQUE, parent, project, told"
        self._connection.execute(f"CREATE TEMP TABLE shown ({columns})")
        self._connection.executemany("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", sessions)
        for name, view in VIEWS.items():
            columns = ", ".join(f'{sql} AS "{column}"' for column, sql in (COMMON | view.columns).items())
            source = view.source.format(newest=newest)
            self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM {source}")
        self._connection.commit()
        self._connection.set_authorizer(self._learn)
        for name in VIEWS:
            self.ask(f"SELECT * FROM {name} LIMIT 0")
        self._connection.set_authorizer(self._judge)
        self._closed = Event()
        Thread(target=copy_context().run, args=(self._watch, over), daemon=True).start()

    def _watch(self, over: Callable[[], bool]) -> None:
        """Interrupt what runs too long, at its next row; SQLite's own handler counts steps, which may be slow."""
        while not self._closed.wait(0.02):
            if over():
                with suppress(sqlite3.ProgrammingError):  # it has just been closed
                    self._connection.interrupt()

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as error:
                self.raised = error
                raise

        return called

    def _learn(self, *part: Any) -> int:
        self._known.add(part[:3])
        return sqlite3.SQLITE_OK

    def _judge(self, action: int, one: str | None, two: str | None, _: str | None, view: str | None) -> int:
        """Allow what the views do, counting rows, and the functions of SQLite; ours only where a view calls them."""
        if action == sqlite3.SQLITE_FUNCTION:
            fine = two not in ("load_extension", "fts3_tokenizer") and (two not in self._functions or view in VIEWS)
        else:
            selects = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
            fine = selects or (action == sqlite3.SQLITE_READ and two == "") or (action, one, two) in self._known
        return sqlite3.SQLITE_OK if fine else sqlite3.SQLITE_DENY

    def ask(self, sql: str) -> sqlite3.Cursor:
        """Return what a statement finds, to be read from. Raises `sqlite3.Error`."""
        return self._connection.execute(sql)

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        self._connection.close()


# -- a plain database ---------------------------------------------------------------------------------


def export(views: Views, path: Path) -> None:
    """Write the views into a new database as tables, masked, with full-text search and what a row is."""
    from sqlite_utils import Database  # takes 0.2 s

    database = Database(path)
    for name, view in VIEWS.items():
        columns, table = COMMON | view.columns, database.table(name)
        id, parent = ("session", "parent") if name == "sessions" else (None, "session")
        table.create({one: _type(one) for one in columns}, pk=id, foreign_keys=[(parent, "sessions", "session")])
        rows = views.ask(f"SELECT * FROM {name}")
        masked = ((redact(value) if isinstance(value, str) else value for value in row) for row in rows)
        table.insert_all(dict(zip(columns, row, strict=True)) for row in masked)
    database.index_foreign_keys()
    for name, column in (("sessions", "title"), ("events", "text")):
        database.table(name).enable_fts([column])
    database.table("about").insert_all({"name": name, "a_row_is": view.row} for name, view in VIEWS.items())
    database.close()


def _type(column: str) -> type:
    counts = ("count", "event", "failed", "result", "step", "steps", "turn", "turns")
    whole = column in counts or column.endswith(("_calls", "_seconds", "_tokens"))
    return int if whole else float if column in ("cost_usd", "seconds") else str
