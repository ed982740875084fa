"""The health of many sessions in Markdown, for the summary of a CI run.

Text from logs appears in code spans only, so that nothing in it becomes a link, an image, HTML, a mention or a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agtrace_schema.analysis import Change, Report

from agtrace.report import wording
from agtrace.text.lines import one_line
from agtrace.text.numbers import dollars, percent, short

_ROWS = 10
_LONGEST = 200


def markdown(report: Report) -> str:
    """Return the report as GitHub Flavored Markdown, ending with a newline."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"## {wording.headline(report)}"
    yield from ("", _quoted(wording.about(report)))
    if report.behind:
        yield from ("", f"**{_quoted(report.behind)}**")
    if not report.figures.sessions:
        return
    yield from _table(
        "What keeps failing", ("lesson", "failed", "sessions"),
        ((_quoted(lesson.advice), f"{lesson.times:,}", f"{lesson.sessions:,}") for lesson in report.lessons),
    )  # fmt: skip
    endings, priced = report.figures.endings, report.figures.cost_made is not None
    yield from _table(
        "How they ended", ("ending", "sessions"),
        ((wording.ENDED[ending], f"{endings[ending]:,}") for ending in wording.ENDINGS if endings.get(ending)),
    )  # fmt: skip
    if report.compared is not None:
        changes = ((change.what, *wording.values(change), _verdict(change)) for change in report.changes)
        yield from _table("Compared", ("", "before", "now", "verdict"), changes)
        yield from ("", _quoted(report.compared))
    failing = [tool for tool in report.tools if tool.failed][:_ROWS]
    yield from _table(
        "Tools that failed most", ("tool", "failed", "calls", "rate", "sessions"),
        ((_quoted(tool.tool), f"{tool.failed:,}", f"{tool.calls:,}", percent(tool.failed / max(tool.calls, 1)),
          f"{tool.sessions:,}") for tool in failing),
    )  # fmt: skip
    yield from _table(
        "Findings", ("detector", "sessions", "findings", "critical"),
        ((wording.named(row.detector), f"{row.sessions:,}", f"{row.findings:,}", f"{row.critical:,}")
         for row in report.detectors),
    )  # fmt: skip
    yield from _table(
        "What was done", ("what", "count", "failed", "sessions"),
        ((wording.named(row.kind), f"{row.count:,}", f"{row.failed:,}" if row.failed else "", f"{row.sessions:,}")
         for row in report.deeds),
    )  # fmt: skip
    yield from _table(
        wording.spent(report), ("model", "tokens", *(("cost",) if priced else ())),
        ((_quoted(name), short(used), *((dollars(cost),) if priced else ()))
         for name, used, cost in wording.models(report)[:_ROWS]),
    )  # fmt: skip
    yield from _table(
        "Worst sessions", ("session", "score", "title", "what was wrong"),
        ((_quoted(session.session_id), str(session.score), _quoted(session.title), _quoted(wording.wrong(session)))
         for session in wording.worst(report)),
    )  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a heading and a table; nothing if there are no rows."""
    written = [f"| {' | '.join(row)} |" for row in rows]
    if written:
        yield from ("", f"### {title}", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *written)


def _verdict(change: Change) -> str:
    return "" if change.verdict == "neither" else change.verdict


def _quoted(text: str) -> str:
    """Return a text as a code span; these have no escapes, so ` and | are replaced by characters that look alike."""
    line = one_line(text, _LONGEST).replace("`", "\u02cb").replace("|", "\u00a6")
    return f"`{line}`" if line else ""
