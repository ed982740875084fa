"""Lists of sessions and projects as tables, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_indexer.providers.registry import AGENTS
from rich.table import Table
from rich.text import Text

from agtrace.render.next_calls import offer
from agtrace.render.terminal import OUT, fills, footer, nothing, plain, summary, when
from agtrace.text.next_call import NextCall
from agtrace.text.numbers import dollars, short

_COLUMNS = ("session", "agent", "started", "turns", "tools", "failed", "tokens", "cost", "request")
_NARROW_COLUMNS = ("session", "started", "failed", "request")
_NARROWEST_COLUMNS = ("session", "failed", "request")
_OF_PROJECTS = ("project", "last", "sessions", "failed", "tokens", "cost")
_OF_PROJECTS_NARROW = ("project", "sessions", "cost")
_WIDE, _NARROW = 90, 60
_UNKNOWN = "?"


def _agent(provider: str) -> str:
    return provider.removesuffix("_code")


_WIDEST = {
    "session": 14, "agent": max(map(len, map(_agent, AGENTS))), "started": 16, "turns": 5, "tools": 5, "failed": 6,
    "tokens": 6, "cost": 7, "last": 16, "sessions": 8, "run": 5, "output": 6, "seconds": 9, "compacted": 9, "edits": 5,
}  # fmt: skip
_COLUMN_OF = {
    "failed_calls": "failed", "failure_run": "run", "output_tokens": "output", "total_tokens": "tokens", "cost": "cost",
    "tool_calls": "tools", "turns": "turns", "duration": "seconds", "compactions": "compacted", "edits": "edits",
}  # fmt: skip
"""The column of a measure by which the list is sorted; it is there on any terminal."""


def sessions(answer: dict[str, Any], next_calls: Sequence[NextCall], sort: str | None = None) -> None:
    """Print a table of sessions that fits the terminal's width, and that has the measure by which it is sorted."""
    summary(answer)
    columns = _columns(_COLUMN_OF.get(sort or ""))
    table = _table(*columns)
    for item in answer["data"].get("sessions", []):
        cells = _session_cells(item)
        table.add_row(*(cells[column] for column in columns))
    if table.row_count:
        OUT.print(table)
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer)


def projects(answer: dict[str, Any], next_calls: Sequence[NextCall]) -> None:
    """Print a table of projects that fits the terminal's width."""
    summary(answer)
    columns = _OF_PROJECTS if OUT.width >= _NARROW else _OF_PROJECTS_NARROW
    table = _table(*columns)
    for item in answer["data"].get("projects", []):
        cells: dict[str, str | Text] = {
            "project": Text(plain(item["name"]), style="bold"),
            "last": when(item.get("last_activity")),
            "sessions": f"{item['session_count']:,}",
            "failed": Text(f"{item['failed_calls']:,}" if item["failed_calls"] else "", style="red"),
            "tokens": short(item.get("total_tokens")),
            "cost": dollars(item.get("cost_usd")),
        }
        table.add_row(*(cells[column] for column in columns))
    if table.row_count:
        OUT.print(table)
    elif not offer(next_calls):
        nothing("`agtrace doctor` shows which logs were found; `agtrace index PATH` adds some.")
    footer(answer)


def _columns(measure: str | None) -> Sequence[str]:
    narrow = _NARROW_COLUMNS if OUT.width >= _NARROW else _NARROWEST_COLUMNS
    columns = _COLUMNS if OUT.width >= _WIDE else narrow
    if measure is None or measure in columns:
        return columns
    return (*columns[:-1], measure, columns[-1])


def _session_cells(item: dict[str, Any]) -> dict[str, str | Text]:
    return {
        "session": Text(item["id"], style="bold"),
        "agent": _agent(item["provider"]),
        "started": when(item.get("start_time")),
        "turns": str(item["turn_count"]),
        "tools": str(item["tool_calls"]),
        "failed": Text(str(item.get("failed_calls", _UNKNOWN) or ""), style="red"),
        "tokens": short(item.get("total_tokens")),
        "cost": dollars(item.get("cost_usd")),
        "run": str(item.get("failure_run", "")),
        "output": short(item.get("output_tokens")),
        "seconds": str(item.get("duration_seconds", "")),
        "compacted": str(item.get("compactions", "")),
        "edits": str(item.get("edits", "")),
        "request": _about(item),
    }


def _about(item: dict[str, Any]) -> Text:
    """Return what a session was about, after its kind if it isn't a main session."""
    kind = Text(f"{item['kind']}  ", style="cyan") if "kind" in item else Text()
    return kind.append(plain(item.get("title") or item.get("snippet") or "(no request)"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=fills())
    for column in columns:
        right = column not in ("session", "agent", "started", "request", "project", "last")
        widest = _WIDEST.get(column)
        table.add_column(
            column, justify="right" if right else "left", no_wrap=True, overflow="ellipsis",
            min_width=widest, max_width=widest, ratio=None if widest else 1,
        )  # fmt: skip
    return table
