"""Markdown tables that are readable as plain text, and the few statistics in them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

NOTHING = "-"
"""Shown if there is no figure."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the first column is aligned to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    rule = [f":{'-' * (widths[0] - 1)}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return "\n".join(_line(row, widths) for row in (head, rule, *rows))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values doesn't exceed; the median if the share is one half."""
    if share == 0.5:
        return statistics.median(values)
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


def number(value: float | None, digits: int = 1) -> str:
    """Format a number with this many decimals."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def ratio(one: float | None, other: float | None) -> str:
    """Format how many times as large the first is as the second."""
    if one is None or not other:
        return NOTHING
    quotient = one / other
    digits = 0 if quotient >= 20 else 2 if quotient >= 0.1 else 3
    return f"{quotient:,.{digits}f}x"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    padded = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
    return f"| {' | '.join(padded)} |"
