"""A report without dollars, for those who pay by subscription."""

from __future__ import annotations

from typing import Any

from agtrace_schema.analysis import Figures, Report
from msgspec.structs import replace

_NONE: dict[str, Any] = {"cost_usd": None, "cost_made": None}


def without_dollars(report: Report) -> Report:
    """Return the same report without any cost: `figures.cost_made` is then None, and renderers leave costs out."""
    changed: dict[str, Any] = {
        "figures": replace(report.figures, **_NONE),
        "before": _without(report.before),
        "later": _without(report.later),
        "changes": [change for change in report.changes if change.unit != "dollars"],
        "days": [replace(day, cost_usd=None) for day in report.days],
        "models": [replace(model, cost_usd=None) for model in report.models],
        "sessions": [replace(session, **_NONE) for session in report.sessions],
    }
    return replace(report, **changed)


def _without(figures: Figures | None) -> Figures | None:
    return None if figures is None else replace(figures, **_NONE)
