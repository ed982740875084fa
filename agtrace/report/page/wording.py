"""How figures are written on the page."""

from __future__ import annotations

from agtrace_schema.answers import Made

from agtrace.report import wording
from agtrace.report.figures import GOOD, LOW
from agtrace.text import numbers

ENDINGS = {ending: wording.named(ending) for ending in wording.ENDINGS}
"""How a session ended, in the order of charts and filters."""

_NO_BREAK = "\u00a0"

_COST_MADE: dict[Made, str] = {
    "exact": "priced by every response",
    "partial": "at least: some responses have no price",
    "estimated": "estimated from list prices",
    "unknown": "no prices are known",
}


def short(number: float) -> str:
    """`950`, `12.3 k`, `4.1 M`, `2 G`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.1f}".removesuffix(".0") + f"{_NO_BREAK}{unit}"
    return plain(number)


def plain(number: float) -> str:
    """`1,234`; at most two decimals, none where there are none."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def dollars(amount: float) -> str:
    """`$1,204`, `$3.20`, `$0.0042`."""
    if amount >= 1000:
        return f"${amount:,.0f}"
    return f"${amount:.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def percent(share: float) -> str:
    """`0 %`, `4.3 %`, `41 %`, on one line."""
    return numbers.percent(share).replace(" ", _NO_BREAK)


def cost_made(made: Made | None) -> str:
    """How a cost was made, as words."""
    return _COST_MADE[made or "unknown"]


def grade(score: float | None) -> str:
    """The class of a score: good, fair or low; none where there is no score."""
    if score is None:
        return "none"
    return "good" if score >= GOOD else "fair" if score >= LOW else "low"


def minute(time: str | None) -> str:
    """`2026-11-19 09:30`, in UTC as everything in a report."""
    return time[:16].replace("T", " ") if time else "time unknown"
