"""Lists of sessions and projects as tables, for people."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.patterns import later
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from agtrace.render.next_calls import offer
from agtrace.render.terminal import OUT, Row, age, aligned, fills, footer, nothing, plain_line, summary, when
from agtrace.sessions.describing import Described
from agtrace.text.next_call import NextCall
from agtrace.text.numbers import dollars, duration, least, short, spent

_WIDEST_COLUMNS = (
    "session", "started", "last", "agent", "project", "lasted", "turns", "tools", "failed", "tokens", "cost", "request",
)  # fmt: skip
_COLUMNS = (
    (150, _WIDEST_COLUMNS),
    (120, ("session", "began", "last", "agent", "project", "lasted", "turns", "failed", "tokens", "cost", "request")),
    (90, ("session", "last", "agent", "project", "failed", "cost", "request")),
    (72, ("session", "last", "agent", "project", "request")),
    (50, ("session", "last", "project", "request")),
    (0, ("session", "last", "request")),
)
"""From a width on, the columns of sessions; the wider the terminal, the more there is of the request, too."""

_BY_START = frozenset({None, "newest", "oldest"})
"""The orders of a list that goes by the start of sessions: where there is room for one time, it is that."""

WHOLE_IDS = 180
"""The width from which ids are shown whole."""

_COST = later(r"[\d.]+ cost_usd$")
"""The total by which a list is sorted, in the words of an answer to an agent."""

_OF_PROJECTS = ("project", "last", "sessions", "failed", "tokens", "cost")
_OF_PROJECTS_NARROW = ("project", "sessions", "cost")
_UNKNOWN = "?"
_NARROW = 60
_LEFT = ("session", "agent", "started", "request", "project", "began", "last")


def _agent(provider: str) -> str:
    return provider.removesuffix("_code")


_MOST_PROJECT = 20
"""The width of a project's name in a list of sessions."""

_WIDEST = {
    "session": 14, "agent": max(map(len, map(_agent, AGENTS))), "started": 10, "turns": 5, "tools": 5, "failed": 6,
    "tokens": 6, "cost": 9, "began": 5, "last": 4,
    "project": _MOST_PROJECT, "lasted": 11, "run": 5, "output": 6, "seconds": 9, "compacted": 9, "edits": 5, "files": 5,
}  # fmt: skip
_WIDEST_OF_PROJECTS = {"last": 16, "sessions": 8, "failed": 6, "tokens": 6, "cost": 9}
_COLUMN_OF = {
    "failed_calls": "failed", "failure_run": "run", "output_tokens": "output", "total_tokens": "tokens", "cost": "cost",
    "tool_calls": "tools", "turns": "turns", "duration": "seconds", "compactions": "compacted", "edits": "edits",
    "files": "files",
}  # fmt: skip
"""The column of a measure by which the list is sorted; it is there on any terminal."""


def sessions(
    answer: dict[str, Any],
    next_calls: Sequence[NextCall],
    sort: str | None = None,
    described: Mapping[str, Described] | None = None,
    *,
    whole_ids: bool = False,
) -> None:
    """Print a table of sessions that fills the terminal's width, and that has the measure by which it is sorted.

    Without a width to fit, nothing is cut, and the titles are those of `described`. With `whole_ids`, the ids are.
    """
    summary(answer | {"summary": _COST.sub(lambda found: dollars(float(found[0][:-9])) + " in all", answer["summary"])})
    columns = _columns(sort)
    whole = described or {}
    rows = [
        _session_cells(item, whole.get(item["id"]), whole_ids=whole_ids) for item in answer["data"].get("sessions", [])
    ]
    if rows:
        widest = max(len(str(row["session"])) for row in rows) if whole_ids else _WIDEST["session"]
        _print(columns, rows, _WIDEST | {"session": widest})
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer, has_all=True)


def projects(answer: dict[str, Any], next_calls: Sequence[NextCall]) -> None:
    """Print a table of projects that fills the terminal's width."""
    summary(answer)
    columns = _OF_PROJECTS if OUT.width >= _NARROW or not fills() else _OF_PROJECTS_NARROW
    rows: list[Row] = [
        {
            "project": Text(plain_line(item["name"]), style="bold"),
            "last": when(item.get("last_activity")),
            "sessions": f"{item['session_count']:,}",
            "failed": Text(_failed(item), style="red"),
            "tokens": least(short(item.get("total_tokens")), item.get("tokens_made")),
            "cost": _cost(item),
        }
        for item in answer["data"].get("projects", [])
    ]
    if rows:
        _print(columns, rows, _WIDEST_OF_PROJECTS)
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer, has_all=True)


def _columns(sort: str | None) -> Sequence[str]:
    columns: Sequence[str] = _WIDEST_COLUMNS
    if fills():
        columns = next(names for width, names in _COLUMNS if OUT.width >= width)
    if sort in _BY_START and not {"started", "began"} & {*columns}:
        columns = ["began" if name == "last" else name for name in columns]
    measure = _COLUMN_OF.get(sort or "")
    if measure is None or measure in columns:
        return columns
    return (*columns[:-1], measure, columns[-1])


def _session_cells(item: dict[str, Any], whole: Described | None, *, whole_ids: bool) -> Row:
    seconds = item.get("duration_seconds")
    return {
        "session": Text(plain_line(whole.session_id if whole and whole_ids else item["id"]), style="bold"),
        "agent": _agent(item["provider"]),
        "started": when(item.get("start_time"))[:10],
        "began": age(_began(item), time.time()),
        "last": age(_ended(item), time.time()),
        "project": Text(plain_line(" · ".join(filter(None, (item.get("user"), item.get("project")))))),
        "lasted": duration(seconds * 1000) if seconds else "",
        "turns": str(item["turn_count"]),
        "tools": str(item["tool_calls"]),
        "failed": Text(_failed(item), style="red"),
        "tokens": least(short(item.get("total_tokens")), item.get("tokens_made")),
        "cost": _cost(item),
        "run": str(item.get("failure_run", "")),
        "output": short(item.get("output_tokens")),
        "seconds": str(item.get("duration_seconds", "")),
        "compacted": str(item.get("compactions", "")),
        "edits": str(item.get("edits", "")),
        "files": str(item.get("files", "")),
        "request": _about(item, whole),
    }


def _cost(item: dict[str, Any]) -> str:
    return spent(item.get("cost_usd"), item.get("cost_made"))


def _failed(item: dict[str, Any]) -> str:
    """Return how many calls failed: nothing if none did, and a sign if the logs don't say."""
    failed = item.get("failed_calls")
    return _UNKNOWN if failed is None else f"{failed:,}" if failed else ""


def _began(item: dict[str, Any]) -> int | None:
    """Return when a session began, in milliseconds since 1970 UTC."""
    start = item.get("start_time")
    return None if start is None else int(datetime.fromisoformat(start).timestamp() * 1000)


def _ended(item: dict[str, Any]) -> int | None:
    """Return when something happened last, in milliseconds since 1970 UTC."""
    began = _began(item)
    return None if began is None else began + int(item.get("duration_seconds", 0) * 1000)


def _about(item: dict[str, Any], whole: Described | None) -> Text:
    """Return what a session was about, after its kind if it isn't a main session, and what made it one of the list."""
    kind = Text(f"{item['kind']}  ", style="cyan") if "kind" in item else Text()
    for landmark in item.get("landmarks", [])[:1]:
        kind.append(plain_line(_deed(*landmark)), style="green").append("  ")
    title = whole.title if whole and not fills() else None
    return kind.append(plain_line(title or item.get("title") or item.get("snippet") or "(no request)"))


def _deed(_event: int, kind: str, name: str | None, did: str | None, detail: str | None) -> str:
    """Return a commit, or what was done with a pull request, on one line: its link is in the session."""
    about = " ".join(word for word in (detail or "").split(" ") if not word.startswith("https://"))
    return " ".join(filter(None, (name if kind == "commit" or name is None else f"#{name}", did, about)))


def _print(columns: Sequence[str], rows: Sequence[Row], widest: Mapping[str, int]) -> None:
    """Print a table in the terminal's width, or in full if there is none to fit."""
    if not fills():
        aligned(columns, rows, {name for name in columns if name not in _LEFT})
        return
    table = Table(box=None, pad_edge=False, header_style="dim", expand="request" in columns)
    for column in columns:
        longest = max(cell_len(str(cell)) for cell in (column, *(row[column] for row in rows)))
        width = min(longest, widest[column]) if column in widest else None
        table.add_column(
            column, justify="left" if column in _LEFT else "right", no_wrap=True, overflow="ellipsis",
            min_width=width, max_width=width, ratio=1 if column == "request" else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    OUT.print(table)
