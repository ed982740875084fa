"""Counts by group as a table, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_schema.requests import CountOf, GroupBy, columns
from rich.text import Text

from agtrace.render.next_calls import offer
from agtrace.render.terminal import OUT, STYLES, Row, figure, plain_line, print_table
from agtrace.text.next_call import NextCall

_WIDE = 70
_WIDE_ONLY = frozenset({"output_tokens", "responses"})
"""Columns that a narrow terminal has no room for."""


def counts(answer: dict[str, Any], next_calls: Sequence[NextCall], by: GroupBy, counted: CountOf) -> None:
    """Print the groups with their figures, and what is left out."""
    OUT.print(Text(answer["summary"].partition("; [")[0], style="bold"))
    names = columns(by, counted)
    rows = [_row(names, values) for values in answer["data"].get("rows", [])]
    if not rows:
        offer(next_calls)
        return
    print_table(rows, frozenset(names) - {by, "title"}, frozenset() if OUT.width >= _WIDE else _WIDE_ONLY)
    others = answer["data"].get("others")
    if others:
        known = ((name, number) for name, number in zip(names[1:], others[1:], strict=False) if number is not None)
        figures = ", ".join(f"{number:,} {name}" for name, number in known)
        OUT.print(Text(f"and {others[0]:,} more: {figures}", style="dim"))


def _row(names: Sequence[str], values: Sequence[str | int | None]) -> Row:
    """Return a row with its figures first, then the name of the group and its title."""
    cells = {name: _cell(name, value) for name, value in zip(names, values, strict=True)}
    texts = [names[0], *(name for name in names if name == "title")]
    return {name: cells[name] for name in (*(name for name in names if name not in texts), *texts)}


def _cell(name: str, value: str | int | None) -> str | Text:
    if value is None:
        return "?"
    if isinstance(value, str):
        return Text(plain_line(value))
    return Text(figure(value or None), style=STYLES["failed"]) if name == "failed" else figure(value)
