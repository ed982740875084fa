"""How figures are written on the page."""

from __future__ import annotations

from agtrace_schema.analysis import Ending
from agtrace_schema.answers import Made

ENDINGS: dict[Ending, str] = {
    "finished": "finished",
    "question_left": "question left",
    "error_left": "error left",
    "tool_left": "tool left",
    "interrupted": "interrupted",
    "abandoned": "abandoned",
    "unknown": "unknown",
}
"""How a session ended, in the order of charts and filters."""

PROVIDERS = {"claude_code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}

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
            return f"{number / size:.1f}".removesuffix(".0") + f"\u00a0{unit}"
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
    """`0 %`, `4.3 %`, `41 %`."""
    return f"{100 * share:.0f}\u00a0%" if share >= 0.1 or not share else f"{100 * share:.1f}\u00a0%"


def cost_made(made: Made | None) -> str:
    """How a cost was made, as words."""
    return _COST_MADE[made or "unknown"]


def grade(score: float | None) -> str:
    """The class of a score: good from 80 on, fair from 60 on, else low; none where there is no score."""
    if score is None:
        return "none"
    return "good" if score >= 80 else "fair" if score >= 60 else "low"


def detector(name: str) -> str:
    """`edit_churn` as words."""
    return name.replace("_", " ")


def minute(time: str | None) -> str:
    """`2026-11-19 09:30`, in UTC as everything in a report."""
    return time[:16].replace("T", " ") if time else "time unknown"
