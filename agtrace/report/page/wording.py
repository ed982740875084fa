"""Formats of figures on the page."""

from __future__ import annotations

from agtrace_schema.answers import Made

from agtrace.report import wording
from agtrace.report.figures import GOOD, LOW
from agtrace.text import numbers

ENDINGS = {ending: wording.named(ending) for ending in wording.ENDINGS}
"""The endings in words, in the order of charts and filters."""

_NO_BREAK = "\u00a0"

_COST_MADE: dict[Made, str] = {
    "exact": "as recorded for every response",
    "partial": "at least: some responses have no price",
    "estimated": "estimated from list prices",
    "unknown": "no known prices",
}


def short(number: float) -> str:
    """Format a number as `950`, `12.3 k`, `4.1 M` or `2 G`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.1f}".removesuffix(".0") + f"{_NO_BREAK}{unit}"
    return plain(number)


def plain(number: float) -> str:
    """Format a number as `1,234` or `1.5`, with at most two decimals."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def dollars(amount: float) -> str:
    """Format dollars as `$1,204`, `$3.20` or `$0.0042`."""
    if amount >= 1000:
        return f"${amount:,.0f}"
    return f"${amount:.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def percent(share: float) -> str:
    """Format a share of 1 as `0 %`, `4.3 %` or `41 %`, with a space that doesn't break."""
    return numbers.percent(share).replace(" ", _NO_BREAK)


def cost_made(made: Made | None) -> str:
    """Say in words how a cost was made."""
    return _COST_MADE[made or "unknown"]


def grade(score: float | None) -> str:
    """Return the class of a score: good, fair or low, or none if there is no score."""
    if score is None:
        return "none"
    return "good" if score >= GOOD else "fair" if score >= LOW else "low"


def minute(time: str | None) -> str:
    """Format a time as `2026-11-19 09:30`, in UTC like all times in a report."""
    return time[:16].replace("T", " ") if time else "time unknown"
