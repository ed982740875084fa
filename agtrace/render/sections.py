"""The sections of a session, for people: facts, and lists as tables that fit the terminal's width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from agtrace_schema.events import Outcome
from rich.table import Table
from rich.text import Text

from agtrace.render.session import SessionView, print_stats
from agtrace.render.terminal import OUT, STYLES, Row, figure, fills, heading, nothing, plain, print_table, summary, when
from agtrace.text.numbers import short, spent

FACTS = frozenset({"session", "stats"})
"""Sections that aren't lists."""

_WIDE = 70
_TIMES = frozenset({"start_time", "end_time"})


def sections_head(answer: dict[str, Any]) -> None:
    """Print the line above all sections."""
    summary(answer)


def section(name: str, content: Any) -> None:
    """Print a section under its name; `content` is all items of a list, or for facts the answer that has them."""
    heading(name if name in FACTS else f"{name}: {_counted(name, content)}")
    if name == "session":
        _session(content["data"])
    elif name == "stats":
        print_stats(content["data"])
    elif name == "turns":
        SessionView().turns(content)
    elif content:
        rows, right, wide_only = _LISTS[name]
        print_table([rows(item) for item in content], right, frozenset() if OUT.width >= _WIDE else wide_only)
    else:
        nothing("none")


def _counted(name: str, items: list[Any]) -> str:
    """Return the number of items; of failures by outcome if not all of them failed: `2 failed, 1 rejected`."""
    outcomes = Counter(item["outcome"] for item in items) if name == "failures" else Counter()
    if not outcomes.keys() - {Outcome.FAILED}:
        return f"{len(items):,}"
    return ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())


def _session(data: dict[str, Any]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=fills())
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for name, value in data.items():
        if not isinstance(value, list | dict) and not name.startswith("total_"):
            shown = when(value) if name in _TIMES else plain(str(value))
            grid.add_row(name.replace("_", " "), Text(shown))
    OUT.print(grid)


def _tool(item: dict[str, Any]) -> Row:
    return {
        "calls": figure(item["calls"]),
        "failed": Text(figure(item["failed"] or None), style=STYLES["failed"]),
        "tool": Text(plain(item["name"])),
    }


def _file(item: dict[str, Any]) -> Row:
    return {
        "writes": figure(item["writes"] or None),
        "reads": figure(item["reads"] or None),
        "file": Text(plain(item["path"])),
    }


def _failure(item: dict[str, Any]) -> Row:
    turn = item.get("turn_index")
    return {
        "event": str(item.get("result_event", item["call_event"])),
        "turn": "" if turn is None else str(turn),
        "tool": Text(plain(item["tool"])[:20]),
        "outcome": Text(item["outcome"], style=STYLES.get(item["outcome"], "")),
        "what it said": Text(plain(item["quote"])),
    }


def _child(item: dict[str, Any]) -> Row:
    return {"session": plain(item["id"]), "by event": str(item.get("started_by", "")), "kind": plain(item["kind"])}


def _model(item: dict[str, Any]) -> Row:
    return {
        "responses": figure(item["responses"]),
        "tokens": short(item.get("total_tokens")),
        "cost": spent(item.get("cost_usd"), item.get("cost_made")),
        "model": Text(plain(item["model"])),
    }


def _landmark(item: list[Any]) -> Row:
    event_index, kind, name, verdict, detail = (*item, None, None, None)[:5]
    return {
        "event": str(event_index),
        "what": kind.replace("_", " "),
        "verdict": Text(verdict or "", style=STYLES.get(verdict or "", "")),
        "which": Text(plain(f"{name or ''}  {detail or ''}".strip())),
    }


def _request(item: dict[str, Any]) -> Row:
    return {
        "event": str(item["event_index"]),
        "turn": str(item.get("turn_index", "")),
        "request": Text(plain(item["text"])),
    }


_LISTS: dict[str, tuple[Callable[[Any], Row], frozenset[str], frozenset[str]]] = {
    "tools": (_tool, frozenset({"calls", "failed"}), frozenset()),
    "files": (_file, frozenset({"writes", "reads"}), frozenset()),
    "failures": (_failure, frozenset({"event", "turn"}), frozenset({"turn", "outcome"})),
    "children": (_child, frozenset({"by event"}), frozenset()),
    "requests": (_request, frozenset({"event", "turn"}), frozenset({"turn"})),
    "landmarks": (_landmark, frozenset({"event"}), frozenset()),
    "models": (_model, frozenset({"responses", "tokens", "cost"}), frozenset({"responses"})),
}
"""For each list: how an item becomes a row, its columns of numbers, and those left out on a narrow terminal."""
