"""A report in words, for the terminal, Markdown and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from agtrace_indexer.providers import registry
from agtrace_schema.analysis import Change, Figures, Report, ReportedSession
from agtrace_schema.answers import Made

from agtrace.sessions.terms import ENDINGS
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted, dollars, how_made, percent, short
from agtrace.times import when

WORST = 5
"""The number of worst sessions that are listed."""

LOW, GOOD = 60, 80
"""Scores below the first are low, from the second on good."""

AGENTS = {agent.name: agent.title for agent in registry.AGENTS.values()}
"""The agents' display names, by provider."""

AT_LEAST = "≥\u202f"
"""Stands before a total that is only a lower bound."""

_COST_MADE: dict[Made, str] = {
    "exact": "as recorded for every response",
    "estimated": "estimated from list prices",
    "unknown": "no known prices",
}

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
    return "token figures of some responses are missing, incomplete or not understood in the logs"


def words_of(name: str) -> str:
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
    done = ((row, words_of(row.kind)) for row in report.deeds)
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


# -- figures on pages --------------------------------------------------------------------------------


def plain(number: float) -> str:
    """Format a number as `1,234` or `1.5`, with at most two decimals."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def shown_dollars(amount: float) -> str:
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
    """Format a time as `2026-11-19 09:30`, in the machine's zone like all times in a report."""
    return when(time) or "time unknown"


# -- markdown --------------------------------------------------------------------------------------
# The health of many sessions in Markdown, for the summary of a CI run. Text from logs appears in code spans only, so
# that nothing in it becomes a link, an image, HTML, a mention or a column.

_ROWS = 10
_LONGEST_CELL = 200


def markdown(report: Report) -> str:
    """Return the report as GitHub Flavored Markdown, ending with a newline."""
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: Report) -> Iterator[str]:
    yield f"## {headline(report)}"
    yield from ("", quoted(about(report)))
    for warning in filter(None, (report.behind, report.new_secrets)):
        yield from ("", f"**{quoted(warning)}**")
    if not report.figures.sessions:
        return
    yield from _table(
        "What keeps failing", ("lesson", "failed", "sessions"),
        ((quoted(lesson.advice), f"{lesson.times:,}", f"{lesson.sessions:,}") for lesson in report.lessons),
    )  # fmt: skip
    endings, priced = report.figures.endings, report.figures.cost_made is not None
    yield from _table(
        "How they ended", ("ending", "sessions"),
        ((name, f"{endings[ending]:,}") for ending, name in ENDINGS.items() if endings.get(ending)),
    )  # fmt: skip
    if report.compared is not None:
        changes = (
            (change.what, *values(change), "" if change.verdict == "neither" else change.verdict)
            for change in report.changes
        )
        yield from _table("Compared", ("", "before", "now", "verdict"), changes)
        yield from ("", quoted(report.compared))
    failing = [tool for tool in report.tools if tool.failed][:_ROWS]
    yield from _table(
        "Tools that failed most", ("tool", "failed", "calls", "rate", "sessions"),
        ((quoted(tool.tool), f"{tool.failed:,}", f"{tool.calls:,}", percent(tool.failed / max(tool.calls, 1)),
          f"{tool.sessions:,}") for tool in failing),
    )  # fmt: skip
    yield from _table(
        "Findings", ("detector", "sessions", "findings", "critical"),
        ((words_of(row.detector), f"{row.sessions:,}", f"{row.findings:,}", f"{row.critical:,}")
         for row in report.detectors),
    )  # fmt: skip
    yield from _table(
        "What was done", ("what", "count", "failed", "sessions"),
        ((words_of(row.kind), f"{row.count:,}", f"{row.failed:,}" if row.failed else "", f"{row.sessions:,}")
         for row in report.deeds),
    )  # fmt: skip
    yield from _table(
        spent(report), ("model", "tokens", *(("cost",) if priced else ())),
        ((quoted(name), short(used), *((dollars(cost),) if priced else ()))
         for name, used, cost in models(report)[:_ROWS]),
    )  # fmt: skip
    yield from _table(
        "Worst sessions", ("session", "score", "title", "what was wrong"),
        ((quoted(session.session_id), str(session.score), quoted(session.title), quoted(wrong(session)))
         for session in worst(report)),
    )  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a heading and a table; nothing if there are no rows."""
    written = [f"| {' | '.join(row)} |" for row in rows]
    if written:
        yield from ("", f"### {title}", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *written)


def quoted(text: str) -> str:
    """Return a text as a code span; these have no escapes, so ` and | are replaced by characters that look alike."""
    line = one_line(text, _LONGEST_CELL).replace("`", "\u02cb").replace("|", "\u00a6")
    return f"`{line}`" if line else ""
