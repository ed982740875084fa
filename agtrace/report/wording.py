"""A report in words: what the terminal and Markdown both say."""

from __future__ import annotations

from collections.abc import Callable

from agtrace_indexer.providers import registry
from agtrace_schema.analysis import Change, Ending, Report, ReportedSession

from agtrace.report.figures import LOW
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted, dollars, percent, short

WORST = 5
"""Sessions that are named."""

ENDINGS: tuple[Ending, ...] = (
    "finished", "question_left", "interrupted", "abandoned", "tool_left", "error_left", "unknown"
)  # fmt: skip
"""How sessions end, from best to worst."""

AGENTS = {agent.name: agent.title for agent in registry.AGENTS.values()}
"""What the agents are called, by provider."""

_LONGEST = 140


def headline(report: Report) -> str:
    """What the report comes to, in one line."""
    figures = report.figures
    if not figures.sessions:
        return "No sessions"
    if figures.mean_score is None:
        return f"{counted(figures.sessions, 'session')}, none with a score"
    of_low = f"{figures.below_60:,} below {LOW}" if figures.below_60 else f"none below {LOW}"
    return f"{counted(figures.sessions, 'session')}: mean score {figures.mean_score:g} of 100, {of_low}"


def about(report: Report) -> str:
    """What was looked at, and what couldn't be."""
    figures = report.figures
    unscored = figures.sessions - figures.scored
    dated = "of no known time" if figures.since is None and figures.until is None else "of no known time left out"
    parts = [
        report.selection,
        f"{unscored:,} without a score" if unscored and figures.scored else "",
        f"{report.undated:,} {dated}" if report.undated else "",
    ]
    return "; ".join(filter(None, parts))


def spent(report: Report) -> str:
    """Tokens and cost of the whole report."""
    figures = report.figures
    cost = "" if figures.cost_usd is None else f", ${figures.cost_usd:,.2f}"
    made = f" ({figures.cost_made})" if cost and figures.cost_made != "exact" else ""
    return f"{short(figures.total_tokens)} tokens{cost}{made}"


def named(name: str) -> str:
    """`edit_churn` and `error_left` as words."""
    return name.replace("_", " ")


def values(change: Change) -> tuple[str, str]:
    """Both sides of a change."""
    write = _WRITTEN[change.unit]
    return write(change.before), write(change.now)


_WRITTEN: dict[str, Callable[[float], str]] = {
    "points": lambda value: f"{value:g}",
    "share": percent,
    "sessions": lambda value: f"{value:,.0f}",
    "tokens": short,
    "dollars": dollars,
}


def models(report: Report) -> list[tuple[str, int, float | None]]:
    """What each model used over all days: name, tokens, dollars; the most tokens first."""
    found: dict[str, tuple[int, float | None]] = {}
    for row in report.models:
        used, cost = found.get(row.model, (0, None))
        known = [amount for amount in (cost, row.cost_usd) if amount is not None]
        found[row.model] = (used + row.total_tokens, sum(known) if known else None)
    ranked = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    return [(name, used, cost) for name, (used, cost) in ranked]


def worst(report: Report) -> list[ReportedSession]:
    """The sessions with the lowest scores, as far as they lost any points."""
    return [session for session in report.sessions if session.score is not None and session.score < 100][:WORST]


def wrong(session: ReportedSession) -> str:
    """What was wrong in a session: its worst finding, else what cost it most."""
    worst = next((insight.message for insight in session.insights if insight.severity != "Info"), None)
    part = max(session.parts, key=lambda part: part.lost, default=None)
    most = part.why if part is not None and part.lost else session.ending.reason
    return one_line(worst or most, _LONGEST)
