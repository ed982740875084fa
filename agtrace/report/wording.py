"""A report in words, for the terminal, Markdown and the page."""

from __future__ import annotations

from collections.abc import Callable

from agtrace_indexer.providers import registry
from agtrace_schema.analysis import Change, Ending, Report, ReportedSession
from agtrace_schema.answers import Made

from agtrace.report.figures import LOW
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted, dollars, how_made, percent, short

WORST = 5
"""The number of worst sessions that are listed."""

ENDINGS: tuple[Ending, ...] = (
    "finished", "question_left", "interrupted", "abandoned", "tool_left", "error_left", "unknown"
)  # fmt: skip
"""The endings of sessions, from best to worst."""

ENDED: dict[Ending, str] = {
    "finished": "finished",
    "question_left": "waiting for you",
    "interrupted": "interrupted",
    "abandoned": "abandoned",
    "tool_left": "cut off mid-call",
    "error_left": "ended on an error",
    "unknown": "unknown",
}
"""The endings in words."""

AGENTS = {agent.name: agent.title for agent in registry.AGENTS.values()}
"""The agents' display names, by provider."""

_LONGEST = 140
_OF_A_DETECTOR = 2


def headline(report: Report) -> str:
    """Sum up the report in one line."""
    figures = report.figures
    if not figures.sessions:
        return "No sessions"
    if figures.mean_score is None:
        return f"{counted(figures.sessions, 'session')}, none with a score"
    of_low = f"{figures.below_60:,} below {LOW}" if figures.below_60 else f"none below {LOW}"
    return f"{counted(figures.sessions, 'session')}: mean score {figures.mean_score:g} of 100, {of_low}"


def about(report: Report) -> str:
    """Describe the selection, and the sessions without a score or a time."""
    figures = report.figures
    unscored = figures.sessions - figures.scored
    dated = "without a time" if figures.since is None and figures.until is None else "without a time left out"
    parts = [
        report.selection,
        f"{unscored:,} without a score" if unscored and figures.scored else "",
        f"{report.undated:,} {dated}" if report.undated else "",
        f"{counted(report.sub_agents, 'sub-agent')} counted with their sessions" if report.sub_agents else "",
    ]
    return "; ".join(filter(None, parts))


def spent(report: Report) -> str:
    """Return tokens and cost of the whole report."""
    figures = report.figures
    tokens = how_made(f"{short(figures.total_tokens)} tokens", figures.tokens_made or "exact")
    cost = "" if figures.cost_usd is None else how_made(f"${figures.cost_usd:,.2f}", figures.cost_made)
    return ", ".join(filter(None, (tokens, cost)))


def why_at_least(tokens_made: Made | None) -> str:
    """Say why a total is only a lower bound, by how that of the tokens was made: a cost has no other reason then."""
    if tokens_made in ("exact", "estimated"):
        return "some responses have no known price"
    return "token figures of some responses are missing or incomplete in the logs"


def named(name: str) -> str:
    """Turn a name such as `edit_churn` or `error_left` into words."""
    return name.replace("_", " ")


def values(change: Change) -> tuple[str, str]:
    """Format both sides of a change."""
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
    """Return what each model used over all days: name, tokens, dollars; the most tokens first."""
    found: dict[str, tuple[int, float | None]] = {}
    for row in report.models:
        used, cost = found.get(row.model, (0, None))
        known = [amount for amount in (cost, row.cost_usd) if amount is not None]
        found[row.model] = (used + row.total_tokens, sum(known) if known else None)
    ranked = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    return [(name, used, cost) for name, (used, cost) in ranked]


def deeds(report: Report) -> str:
    """Sum up what was done: `12 commits, 41 test runs (3 failed)`."""
    done = ((row, named(row.kind)) for row in report.deeds)
    return ", ".join(
        f"{row.count:,} {what if row.count == 1 else _PLURALS.get(what, f'{what}s')}"
        + (f" ({row.failed:,} failed)" if row.failed else "")
        for row, what in done
    )


_PLURALS = {"branch": "branches", "push": "pushes"}


def worst(report: Report) -> list[ReportedSession]:
    """Return the sessions with the lowest scores, leaving out those that lost no points."""
    return [session for session in report.sessions if session.score is not None and session.score < 100][:WORST]


def worst_of(report: Report, detector: str) -> list[str]:
    """Return the ids of the worst sessions in which a detector found something, at most two."""
    return [session.session_id for session in report.sessions if detector in session.detectors][:_OF_A_DETECTOR]


def wrong(session: ReportedSession) -> str:
    """Say what was wrong in a session: its worst finding, else the part that lost the most points."""
    worst = next((insight.message for insight in session.insights if insight.severity != "Info"), None)
    part = max(session.parts, key=lambda part: part.lost, default=None)
    most = part.why if part is not None and part.lost else session.ending.reason
    return one_line(worst or most, _LONGEST)
