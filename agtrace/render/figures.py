"""Figures by group as tables, for people: what was spent, counts of events, and requests to servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agtrace_schema.requests import RequestsBy
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, Row, compact, figure, nothing, plain, plain_line, print_table
from agtrace.text.numbers import counted, dollars, percent, short, size
from agtrace.times import when

if TYPE_CHECKING:
    from agtrace_schema.answers import Made
    from agtrace_schema.reports import AbComparison, ArmFigures, Costs, RequestFigures, RequestMetrics, Spent


def statement(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print what a statement of SQL found as a table, numbers on the right."""
    texts = {name for row in rows for name, value in zip(columns, row, strict=True) if isinstance(value, str)}
    cells: list[Row] = [
        dict(zip(columns, (Text(plain_line("" if value is None else str(value))) for value in row), strict=True))
        for row in rows
    ]
    print_table(cells, frozenset({*columns} - texts), frozenset())


_RIGHT = frozenset({"requests", "errors", "p50 ms", "p95 ms", "p99 ms", "p50 size", "largest", "pages", "cut"})
_NEEDED = {"p99 ms": 100, "largest": 100, "pages": 100, "cut": 100, "p95 ms": 60, "p50 size": 60}
"""The columns that a narrower terminal has no room for, so that what a row is about stays."""


def metrics(found: RequestMetrics, by: RequestsBy) -> None:
    """Print the figures of all requests and of each group, then what was too large and which errors there were."""
    total = found.total
    period = f", {when(found.first)} to {when(found.last)}" if found.first else ""
    OUT.print(Text(f"{counted(total.requests, 'request')}, {counted(total.errors, 'error')}{period}", style="bold"))
    if not total.requests:
        none = "No request is recorded yet: `agtrace setup` adds the server to an agent."
        nothing("No matching requests in this period." if found.recorded else none)
        return
    rows = [_group_row(group, by) for group in found.groups]
    if len(rows) > 1:
        rows.append(_group_row(total, by))
    print_table(rows, _RIGHT, frozenset(column for column, needed in _NEEDED.items() if OUT.width < needed))
    if total.oversized:
        before, after = size(total.oversized_asked_bytes), size(total.oversized_bytes)
        share = percent(total.oversized / total.requests)
        OUT.print(f"{counted(total.oversized, 'answer')} ({share}) made smaller to fit: {before} to {after}")
    if total.error_codes:
        errors = ", ".join(f"{code} {number:,}" for code, number in total.error_codes.items())
        OUT.print(Text(f"errors: {plain_line(errors)}", style=STYLES["failed"]))
    if found.dropped:
        OUT.print(Text(f"{counted(found.dropped, 'request')} could not be recorded", style=STYLES["failed"]))


def comparison(found: AbComparison) -> None:
    """Print a column for each side of a comparison: sizes, calls that followed, errors."""
    if not found.arms:
        nothing("Nothing was compared in this period. Set ab.mode to split to turn comparison on.")
        return
    sides = {arm.arm: _side(arm) for arm in found.arms}
    labels = {label: None for side in sides.values() for label in side}
    rows: list[Row] = [
        {**{arm: side.get(label, "") for arm, side in sides.items()}, "answers": label} for label in labels
    ]
    print_table(rows, frozenset(sides), frozenset())


def _side(found: ArmFigures) -> dict[str, str]:
    return {
        "connections": figure(found.connections),
        "requests": figure(found.requests),
        "requests per connection": f"{found.requests_per_connection:.1f}",
        "errors": percent(found.error_share),
        "bytes, p50": figure(round(found.bytes.p50)),
        "bytes, p95": figure(round(found.bytes.p95)),
    }


def _group_row(found: RequestFigures, by: RequestsBy) -> Row:
    assert found.milliseconds is not None and found.bytes is not None
    ms, sizes = found.milliseconds, found.bytes
    return {
        "requests": figure(found.requests),
        "errors": Text(figure(found.errors or None), style=STYLES["failed"]),
        "p50 ms": f"{ms.p50:.1f}",
        "p95 ms": f"{ms.p95:.1f}",
        "p99 ms": f"{ms.p99:.1f}",
        "p50 size": size(round(sizes.p50)),
        "largest": size(round(sizes.largest)),
        "pages": percent(found.paginated_share),
        "cut": percent(found.cut_share),
        by: Text("all" if found.group is None else plain_line(found.group)),
    }


_NARROW = ("tokens", "cost")
_USUAL = ("sessions", "output", *_NARROW)
_WIDE = ("sessions", "input", "cache write", "cache read", "output", *_NARROW)
_WIDTH_OF_USUAL, _WIDTH_OF_WIDE = 60, 90

_AT_LEAST = "+"
_NO_FIGURE = "?"


def costs(found: Costs) -> None:
    """Print the total as a sentence, the groups and their total as a table, and notes on the figures."""
    OUT.print(Text(plain(_headline(found)), style="bold"))
    OUT.print(Text(plain(found.selection), style="dim"))
    if not found.groups:
        OUT.print("`agtrace sessions` lists all sessions; `agtrace doctor` shows which logs were found.")
        return
    fitting = _WIDE if OUT.width >= _WIDTH_OF_WIDE else _USUAL if OUT.width >= _WIDTH_OF_USUAL else _NARROW
    fitting = _NARROW if found.titles else fitting
    columns = [name for name in fitting if name != "cost" or found.total.cost_made is not None]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(found.by, overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    marked = found.total.tokens_made == "partial", found.total.cost_made == "partial"
    if found.titles:
        table.add_column("title", no_wrap=True, overflow="ellipsis", ratio=1)
    for group in found.groups:
        cells = _cells(group, *marked)
        title = [Text(plain_line(found.titles[group.group]))] if found.titles else []
        table.add_row(Text(plain_line(group.group)), *(cells[name] for name in columns), *title)
    cells = _cells(found.total, *marked)
    table.add_row("total", *(cells[name] for name in columns), style="bold")
    OUT.print(compact(table) if found.titles else table)
    for note in _notes(found):
        OUT.print(Text(plain(note), style="dim"))


def _headline(found: Costs) -> str:
    total = found.total
    if not found.groups:
        return "nothing was spent"
    tokens = "no tokens known" if total.total_tokens is None else f"{short(total.total_tokens)} tokens"
    least = "at least " if total.tokens_made == "partial" and total.total_tokens is not None else ""
    said = [least + tokens]
    if total.cost_usd is not None:
        said.append(f"{'at least ' if total.cost_made == 'partial' else ''}{dollars(total.cost_usd)}")
    sessions = counted(total.sessions, "session")
    return ", ".join([*said, sessions])


def _cells(spent: Spent, tokens_marked: bool, cost_marked: bool) -> dict[str, str]:
    return {
        "sessions": figure(spent.sessions),
        "input": short(spent.input_tokens),
        "cache write": short(spent.cache_write_tokens),
        "cache read": short(spent.cache_read_tokens),
        "output": _marked(short(spent.output_tokens), spent.tokens_made, tokens_marked),
        "tokens": _marked(short(spent.total_tokens), spent.tokens_made, tokens_marked),
        "cost": _marked(dollars(spent.cost_usd), spent.cost_made, cost_marked),
    }


def _marked(figure: str, made: Made | None, room: bool) -> str:
    """Mark a figure that is a lower bound; with room for the mark if any in its column has one."""
    shown = figure or (_NO_FIGURE if made == "unknown" else "")
    return shown + (_AT_LEAST if made == "partial" else " " if room else "")


def _notes(found: Costs) -> Iterator[str]:
    """Yield what the figures lack, what they are made from, and which days are meant."""
    from agtrace.report.costs import UNKNOWN, left_of, missing_figures

    total = found.total
    if "partial" in (total.tokens_made, total.cost_made):
        yield f"{_AT_LEAST} at least so much"
    for model in found.unpriced or ():
        yield f"no price for {short(model.tokens)} tokens of {plain_line(model.model)}"
    for faster in found.faster or ():
        yield (
            f"no price for the faster (fast, priority) processing of {short(faster.tokens)} tokens of "
            f"{plain_line(faster.model)}: counted at the standard price, so at least so much"
        )
    yield from missing_figures(found)
    if total.cost_usd is not None and found.prices:
        yield f"dollars are estimates ({found.prices}), not what a subscription costs"
    yield from map(left_of, found.limits or ())
    if found.by in ("day", "week", "month"):
        yield "local days" + (", weeks from Monday" if found.by == "week" else "")
    if found.by == "day" and (day := found.groups[-1].group) != UNKNOWN:
        yield f"its sessions: agtrace cost --by session --since {day} --until {day}"
