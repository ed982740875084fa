"""The console, styles, and formats of times, sizes and counts, for all renderings.

Every string from a log goes through `plain`, so that none of its escape sequences reaches the terminal.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agtrace.text.lines import unbroken, without_controls
from agtrace.text.numbers import counted

UNCUT = 10_000
"""Columns of an output that isn't a terminal: what is piped into a program or a file is neither cut nor wrapped."""


class _Output(Console):
    """stdout, as wide as its terminal, as `COLUMNS` says, or `UNCUT`."""

    @property
    def size(self) -> ConsoleDimensions:
        """The columns and lines of the terminal, or of what stands in for it."""
        result = super().size
        if self.is_terminal:
            return result
        return ConsoleDimensions(shutil.get_terminal_size((UNCUT, result.height)).columns, result.height)

    @size.setter
    def size(self, _: tuple[int, int]) -> None:
        raise AttributeError("the terminal has its size")


OUT = _Output(highlight=False, soft_wrap=False, markup=False, emoji=False)  # logs hold [brackets] and :names:
STYLES = {
    "failed": "red", "rejected": "yellow", "interrupted": "yellow", "unknown": "dim", "running": "cyan", "ok": "green",
    "partial": "yellow", "success": "green", "Critical": "bold red", "Warning": "yellow", "Info": "dim",
}  # fmt: skip

_INDENT = 2
_UNLIMITED = 100_000
_DAY = 86_400
_AGES = (
    (730 * _DAY, 365 * _DAY, "y"), (90 * _DAY, 30 * _DAY, "mo"), (21 * _DAY, 7 * _DAY, "w"), (_DAY, _DAY, "d"),
    (3_600, 3_600, "h"), (60, 60, "m"),
)  # fmt: skip
"""From how many seconds on an age is given in a unit, and how many seconds that is."""

plain, plain_line = without_controls, unbroken
"""Remove from a text what a terminal would obey; the other one also puts it on one line."""

Row = dict[str, str | Text]
"""A row of a table, by column."""


def fills() -> bool:
    """Whether a table takes the whole width, as at a terminal."""
    return OUT.width < UNCUT


def line(text: Text) -> None:
    """Print a text on one line, which is cut only if there is a width to keep to."""
    if fills():
        OUT.print(text, no_wrap=True, overflow="ellipsis")
    else:
        OUT.print(text, soft_wrap=True)


def body(text: Text, deep: int) -> None:
    """Print a text with an indentation; its lines are wrapped only if there is a width to keep to."""
    if fills():
        OUT.print(Padding(text, (0, 0, 0, deep)))
    else:
        for part in text.split("\n", allow_blank=True):
            OUT.print(Text(" " * deep) + part, soft_wrap=True)


def aligned(columns: Sequence[str], rows: Sequence[Row], right: Collection[str]) -> None:
    """Print a table in full, whatever its width: columns with two spaces between them, and nothing after the last."""
    cells = [[name, *(str(row[name]) for row in rows)] for name in columns]
    widths = [max(map(cell_len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        padded = []
        for name, width, cell in zip(columns, widths, row, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(f"{space}{cell}" if name in right else f"{cell}{space}")
        OUT.print(Text("  ".join(padded).rstrip()), soft_wrap=True)


def age(at: int | None, now: float) -> str:
    """Format how long ago a moment was, in milliseconds since 1970 UTC: `now`, `5m`, `3h`, `2d`, `6w`, `8mo`, `2y`."""
    if at is None:
        return ""
    seconds = now - at / 1000
    for least, size, unit in _AGES:
        if seconds >= least:
            return f"{int(seconds // size)}{unit}"
    return "now"


def summary(answer: dict[str, Any]) -> None:
    """Print the line that every answer begins with."""
    OUT.print(Text(plain(answer["summary"]), style="bold"))


def nothing(advice: str) -> None:
    """Print what to do when nothing was found."""
    OUT.print(Text(advice, style="dim"))


def footer(answer: dict[str, Any], *, has_all: bool = False) -> None:
    """Print how to continue, if there is more; `has_all` tells whether the command has --all."""
    following = answer.get("pagination", {}).get("next_cursor")
    if following:
        more = "--limit N, or --all" if has_all else f"--cursor {following}"
        OUT.print(Text(f"more: {more}", style="dim"), soft_wrap=True)


def heading(text: str) -> None:
    """Print a heading with space above it."""
    OUT.print()
    OUT.print(Text(text, style="bold"))


def left_out(noun: str, shown: int, total: int) -> None:
    """Print how many items are not shown, if any; `noun` names one of them."""
    if shown < total:
        OUT.print(indented(Text(f"... and {counted(total - shown, f'more {noun}')}", style="dim")))


def compact(table: Table) -> Table:
    """Let a table be no wider than its content, if there is room for all of it: columns far apart are hard to read."""
    table.expand = False
    whole = Measurement.get(OUT, OUT.options.update(max_width=_UNLIMITED), table).maximum
    table.expand = whole > OUT.width - _INDENT
    return table


def indented(text: Text | Table) -> Any:
    """Indent a text or a table by two columns."""
    return Padding(text, (0, 0, 0, _INDENT), expand=fills())


def entry(label: str, body: Text, *, deep: int = 0) -> None:
    """Print a text next to a label; wrapped lines stay aligned."""
    grid = Table.grid(padding=(0, 2, 0, 0), expand=fills())
    grid.add_column(justify="right", min_width=5, style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(label, body)
    OUT.print(Padding(grid, (0, 0, 0, 2 + deep), expand=fills()))


def print_table(rows: Sequence[Row], right: frozenset[str], left_out: frozenset[str]) -> None:
    """Print a table whose last column takes the remaining width."""
    columns = [name for name in rows[0] if name not in left_out]
    table = Table(box=None, pad_edge=False, header_style="dim", expand=fills())
    for name in columns:
        last = name == columns[-1]
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=not last,
            overflow="fold" if last else "ellipsis",
            ratio=1 if last else None,
        )
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    OUT.print(table)


def figure(number: int | None) -> str:
    """Format a count with thousands separators; empty if it is None."""
    return "" if number is None else f"{number:,}"
