"""A report without dollars, for those who pay by subscription."""

from __future__ import annotations

from typing import Any

from agtrace_schema.analysis import Figures, Report

_NONE = {"cost_usd": None, "cost_made": None}


def without_dollars(report: Report) -> Report:
    """Return the same report without any cost: `figures.cost_made` is then None, and renderers leave costs out."""
    changed: dict[str, Any] = {
        "figures": report.figures.model_copy(update=_NONE),
        "before": _without(report.before),
        "later": _without(report.later),
        "changes": [change for change in report.changes if change.unit != "dollars"],
        "days": [day.model_copy(update={"cost_usd": None}) for day in report.days],
        "models": [model.model_copy(update={"cost_usd": None}) for model in report.models],
        "sessions": [session.model_copy(update=_NONE) for session in report.sessions],
    }
    return report.model_copy(update=changed)


def _without(figures: Figures | None) -> Figures | None:
    return None if figures is None else figures.model_copy(update=_NONE)
