"""The sizes of answers for people: a line a kind of call, with how much of its budget the largest one took."""

from __future__ import annotations

from agtrace_schema.health import SizeOfCall, Sizes
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT

_FULL = 10  # cells of a bar
_WITH_BAR, _WITH_MEDIAN = 70, 100
"""Columns of the terminal from which on a table has room for these."""


def sizes(found: Sizes) -> None:
    """A table of calls, and the medians below it."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("call", ratio=1, overflow="fold")
    usual = ("answers", "median") if OUT.width >= _WITH_MEDIAN else ()
    for name in (*usual, "largest", "budget"):
        table.add_column(name, justify="right", no_wrap=True)
    if OUT.width >= _WITH_BAR:
        table.add_column("", no_wrap=True, min_width=_FULL)
    for call in found.calls:
        figures = {"answers": call.answers, "median": call.median_bytes}
        bar = [_bar(call)] if OUT.width >= _WITH_BAR else []
        table.add_row(
            call.call,
            *(f"{figures[name]:,}" for name in usual),
            f"{call.largest_bytes:,}",
            f"{call.budget_bytes:,}",
            *bar,
        )
    OUT.print(table)
    OUT.print(
        f"{found.answers:,} answers, median {found.median_bytes:,} bytes, "
        f"{found.median_default_bytes:,} with default arguments"
    )
    over = f"{found.over_budget} answers are larger than they may be" if found.over_budget else "none over its budget"
    OUT.print(Text(over, style="bold red" if found.over_budget else "green"))


def _bar(call: SizeOfCall) -> Text:
    share = call.largest_bytes / call.budget_bytes
    cells = min(round(share * _FULL), _FULL)
    return Text("█" * cells + "░" * (_FULL - cells), style="red" if share > 1 else "dim")
