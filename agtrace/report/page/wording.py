"""Formats of figures on the page."""

from __future__ import annotations

from agtrace_schema.analysis import Figures
from agtrace_schema.answers import Made

from agtrace.report import wording
from agtrace.report.figures import GOOD, LOW
from agtrace.report.wording import why_at_least

ENDINGS = {ending: wording.ENDED[ending] for ending in wording.ENDINGS}
"""The endings in words, in the order of charts and filters."""

AT_LEAST = "≥\u202f"
"""Stands before a total that is only a lower bound."""

_COST_MADE: dict[Made, str] = {
    "exact": "as recorded for every response",
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


def cost_made(figures: Figures) -> str:
    """Say in words how a cost was made."""
    made = figures.cost_made or "unknown"
    return f"at least; {why_at_least(figures.tokens_made)}" if made == "partial" else _COST_MADE[made]


def at_least(figure: str, made: Made | None) -> str:
    """Mark a total that is only a lower bound."""
    return f"{AT_LEAST}{figure}" if figure and made == "partial" else figure


def grade(score: float | None) -> str:
    """Return the class of a score: good, fair or low, or none if there is no score."""
    if score is None:
        return "none"
    return "good" if score >= GOOD else "fair" if score >= LOW else "low"


def minute(time: str | None) -> str:
    """Format a time as `2026-11-19 09:30`, in UTC like all times in a report."""
    return time[:16].replace("T", " ") if time else "time unknown"
