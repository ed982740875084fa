"""Formats of figures on the page."""

from __future__ import annotations

from agtrace_schema.answers import Made

from agtrace.report import wording
from agtrace.report.figures import GOOD, LOW

ENDINGS = {ending: wording.ENDED[ending] for ending in wording.ENDINGS}
"""The endings in words, in the order of charts and filters."""

_COST_MADE: dict[Made, str] = {
    "exact": "as recorded for every response",
    "partial": "at least; some responses have no known price",
    "estimated": "estimated from list prices",
    "unknown": "no known prices",
}


def plain(number: float) -> str:
    """Format a number as `1,234` or `1.5`, with at most two decimals."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def dollars(amount: float) -> str:
    """Format dollars as `$1,204`, `$3.20` or `$0.0042`."""
    if amount >= 1000:
        return f"${amount:,.0f}"
    return f"${amount:.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


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
