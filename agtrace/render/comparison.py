"""Two sessions side by side, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import (
    OUT,
    STYLES,
    compact,
    figure,
    fills,
    heading,
    indented,
    left_out,
    plain,
    summary,
    when,
)
from agtrace.text.numbers import dollars, how_made, seconds

_SIDE_FACTS = (
    ("agent", "provider"), ("kind", "kind"), ("title", "title"), ("request", "snippet"), ("project", "root_path"),
    ("started", "start_time"), ("last turn", "outcome"), ("turns", "turns"), ("steps", "steps"),
    ("tool calls", "tool_calls"),
)  # fmt: skip
_SIDE_TOKENS = (
    ("input", "input_tokens"), ("cache written", "cache_creation_5m_tokens"),
    ("cache written, 1 h", "cache_creation_1h_tokens"), ("cache read", "cache_read_tokens"),
    ("output", "output_tokens"), ("reasoning in it", "reasoning_tokens"),
)  # fmt: skip
_OUTCOMES_COUNTED = ("failed", "rejected", "interrupted")


def comparison(answer: dict[str, Any]) -> None:
    """Print two sessions side by side: the differences, the facts, the tools, the files, the first failures."""
    data = answer["data"]
    summary(answer)
    if "session_1" not in data:  # the answer had to be too small for it
        OUT.print(Text(", ".join(f"{name} {count}" for name, count in data.items()), style="dim"))
        return
    sides = (data["session_1"], data["session_2"])
    if "relation" in data:
        OUT.print(Text(plain(data["relation"]["summary"]), style="italic"))
    for difference in data["differences"]:
        OUT.print(indented(Text(plain(difference))))
    OUT.print(_side_table(*sides))
    if data["tools"]:
        OUT.print()
        OUT.print(compact(_tool_table(data["tools"])))
        left_out("tool", len(data["tools"]), data["total_tools"])
    _compared_files(data["files"])
    for number, side in enumerate(sides, 1):
        _failed_calls(number, side)


def _side_table(*sides: dict[str, Any]) -> Table:
    """Return a table with a row for each fact and a column for each session; facts unknown for both are left out."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=fills())
    table.add_column("", style="dim", no_wrap=True)
    for number, side in enumerate(sides, 1):
        table.add_column(f"{number}  {plain(side['session_id'])}", no_wrap=True, overflow="ellipsis", ratio=1)
    for label, cells in _side_rows(sides):
        if any(map(str, cells)):
            table.add_row(label, *cells)
    return table


def _side_rows(sides: tuple[dict[str, Any], ...]) -> Iterator[tuple[str, list[str | Text]]]:
    for label, name in _SIDE_FACTS:
        yield label, [_fact(name, side.get(name)) for side in sides]
    for outcome in _OUTCOMES_COUNTED:
        yield (
            f"  {outcome}",
            [Text(figure(side["failures"][outcome] or None), style=STYLES[outcome]) for side in sides],
        )
    yield "lasted", [seconds(side.get("duration_seconds")) for side in sides]
    yield "active", [seconds(side.get("active_seconds")) for side in sides]
    yield "models", [", ".join(plain(model["model"]) for model in side["models"]) for side in sides]
    yield "tokens", [how_made(figure(side.get("total_tokens")), side.get("tokens_made")) for side in sides]
    for label, kind in _SIDE_TOKENS:
        yield f"  {label}", [figure(side.get("tokens", {}).get(kind)) for side in sides]
    yield "cost", [how_made(dollars(side.get("cost_usd")), side.get("cost_made")) for side in sides]
    yield "copied events", [figure(side.get("copied", {}).get("events")) for side in sides]


def _fact(name: str, value: Any) -> str | Text:
    if name == "start_time":
        return when(value)
    if name == "outcome":
        return Text(value, style=STYLES.get(value, ""))
    return figure(value) if isinstance(value, int) else plain(value or "")


def _tool_table(tools: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=fills())
    table.add_column("tool", no_wrap=True, overflow="ellipsis", ratio=1)
    for column in ("calls 1", "failed 1", "calls 2", "failed 2"):
        table.add_column(column, justify="right", no_wrap=True, style="red" if "failed" in column else "")
    for tool in tools:
        counts = [tool[name] for name in ("calls_1", "failed_1", "calls_2", "failed_2")]
        table.add_row(Text(plain(tool["name"])), *(figure(count or None) for count in counts))
    return table


def _compared_files(files: dict[str, Any]) -> None:
    for name, where in (("only_in_1", "only in 1"), ("only_in_2", "only in 2"), ("in_both", "in both")):
        if not files[f"total_{name}"]:
            continue
        heading(f"files {where}: {files[f'total_{name}']}")
        for file in files[name]:
            OUT.print(indented(Text(plain(file["path"])).append(f"  {_accesses(file)}", style="dim")))
        left_out("file", len(files[name]), files[f"total_{name}"])


def _accesses(file: dict[str, Any]) -> str:
    """Return `read 3, written 1`; for a file of both sessions, that of each."""
    if "reads" in file:
        return _accessed(file["reads"], file["writes"])
    return "; ".join(f"{n}: {_accessed(file[f'reads_{n}'], file[f'writes_{n}'])}" for n in (1, 2))


def _accessed(reads: int, writes: int) -> str:
    return ", ".join(f"{what} {count}" for what, count in (("read", reads), ("written", writes)) if count)


def _failed_calls(number: int, side: dict[str, Any]) -> None:
    total = sum(side["failures"][outcome] for outcome in _OUTCOMES_COUNTED)
    if not total:
        return
    heading(f"unsuccessful calls in {number}: {total}")
    for call in side["failures"]["examples"]:
        place = Text(f"{plain(side['session_id'])}:{call['event_index']}  ", style="bold")
        place.append(f"{call['outcome']}  ", style=STYLES[call["outcome"]])
        place.append(f"{plain(call['tool'])}  ", style="cyan").append(plain(call["quote"]), style="dim not bold")
        OUT.print(indented(place))
    left_out("call", len(side["failures"]["examples"]), total)
