"""`agtrace report` at the terminal: the health of many sessions, understood in ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

from agtrace_schema.analysis import Ending, Report, ReportedSession
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, compact, figure, fills, heading, indented, left_out, plain
from agtrace.report import wording
from agtrace.report.wording import GOOD, LOW
from agtrace.sessions.terms import ENDINGS
from agtrace.text.lines import one_line
from agtrace.text.next_call import command
from agtrace.text.numbers import dollars, percent, short

_ROWS = 5
_WIDE = 60
"""The terminal's width from which a table has room for all its columns."""
_WIDEST = 80
"""The one from which that of the findings names sessions, too."""

_LOOKS: dict[Ending, tuple[str, str]] = {
    "finished": ("█", "green"),
    "question_left": ("▓", "cyan"),
    "interrupted": ("▒", "blue"),
    "abandoned": ("░", "yellow"),
    "tool_left": ("▄", "magenta"),
    "error_left": ("▚", "red"),
    "unknown": ("·", "dim"),
}
"""Each ending's mark in the bar, for readers who don't see colours, and its colour."""

_BESIDE_A_TITLE = 11
"""Columns that a title's row needs besides the session's id: the score, and the space between columns."""

_LESSONS = 2
"""The most lessons; `agtrace lessons` has all."""

_BAR = 76
"""The most cells of the bar."""

_VERDICTS = {"better": "green", "worse": "red"}


def report(found: Report) -> None:
    """Print the headline, then how sessions ended, what changed, what failed, what it cost, and the worst ones."""
    OUT.print(Text(plain(wording.headline(found)), style="bold"))
    OUT.print(Text(plain(wording.about(found)), style="dim"))
    for warning in filter(None, (found.behind, found.new_secrets)):
        OUT.print(Text(plain(warning), style="yellow"))
    if not found.figures.sessions:
        if found.behind is None:
            OUT.print("`agtrace sessions` lists all sessions; `agtrace doctor` shows which logs were found.")
        return
    _lessons(found)
    heading("how they ended")
    there = [(ending, found.figures.endings[ending]) for ending in ENDINGS if found.figures.endings.get(ending)]
    bar, legend = Text(no_wrap=True), [Text()]
    widest = OUT.width - 2
    for (ending, count), cells in zip(there, _cells([count for _, count in there], min(widest, _BAR)), strict=True):
        mark, style = _LOOKS[ending]
        bar.append(mark * cells, style=style)
        named = Text.assemble((mark, style), f" {ENDINGS[ending]} {count:,}   ")
        if legend[-1].cell_len + named.cell_len > widest:
            legend.append(Text())
        legend[-1].append_text(named)
    for line in (bar, *legend):
        line.rstrip()
        OUT.print(indented(line))
    _changes(found)
    _failing_tools(found)
    _findings(found)
    if found.deeds:
        heading("what was done")
        OUT.print(indented(Text(wording.deeds(found))))
    _spent(found)
    _worst(wording.worst(found))


def _lessons(found: Report) -> None:
    if not found.lessons:
        return
    heading("what keeps failing, and what works")
    for lesson in found.lessons[:_LESSONS]:
        OUT.print(indented(Text(one_line(plain(lesson.advice), OUT.width - 4))))
    left_out("lesson", min(len(found.lessons), _LESSONS), len(found.lessons))


def _cells(counts: Sequence[int], width: int) -> list[int]:
    """Return the cells for each count: its share of the width, at least one, in total the width."""
    total = sum(counts)
    cells = [max(count * width // total, 1) for count in counts]
    cells[cells.index(max(cells))] += width - sum(cells)
    return cells


def _changes(found: Report) -> None:
    if found.compared is None:
        return
    heading("compared")
    OUT.print(indented(Text(plain(found.compared), style="dim")))
    table = _table("", "", ("before", "right"), ("now", "right"))
    verdicts = [change for change in found.changes if change.verdict in _VERDICTS]
    amounts = [change for change in found.changes if change.verdict == "neither"]
    for change in [*verdicts, *amounts]:
        style = _VERDICTS.get(change.verdict, "dim")
        verdict = change.verdict if change.verdict in _VERDICTS else ""
        table.add_row(Text(change.what), Text(verdict, style=style), *wording.values(change))
    if table.row_count:
        OUT.print(indented(compact(table)))
    same = [change.what for change in found.changes if change.verdict == "same"]
    if same:
        OUT.print(indented(Text(f"changed no more than by chance: {', '.join(same)}", style="dim")))


def _failing_tools(found: Report) -> None:
    failing = [tool for tool in found.tools if tool.failed]
    if not failing:
        return
    heading("tools that failed most")
    wide = OUT.width >= _WIDE
    table = _table("tool", ("failed", "right"), *([("calls", "right")] * wide), ("rate", "right"), *(
        [("sessions", "right")] * wide))  # fmt: skip
    for tool in failing[:_ROWS]:
        calls, sessions = ([figure(tool.calls)], [figure(tool.sessions)]) if wide else ([], [])
        rate = percent(tool.failed / max(tool.calls, 1))
        table.add_row(Text(plain(tool.tool)), Text(figure(tool.failed), style="red"), *calls, rate, *sessions)
    OUT.print(indented(compact(table)))
    left_out("tool", _ROWS, len(failing))


def _findings(found: Report) -> None:
    if not found.detectors:
        return
    heading("findings")
    wide, widest = OUT.width >= _WIDE, OUT.width >= _WIDEST
    table = _table(
        "detector", ("sessions", "right"), *([("findings", "right")] * wide), ("critical", "right"),
        *(["worst"] * widest),
    )  # fmt: skip
    for row in found.detectors[:_ROWS]:
        findings = [figure(row.findings)] if wide else []
        critical = Text(figure(row.critical or None), style=STYLES["Critical"])
        worst = [Text(plain(" ".join(wording.worst_of(found, row.detector))), style="dim")] if widest else []
        table.add_row(wording.words_of(row.detector), figure(row.sessions), *findings, critical, *worst)
    OUT.print(indented(compact(table)))
    left_out("detector", _ROWS, len(found.detectors))


def _spent(found: Report) -> None:
    models = wording.models(found)
    if not models:
        return
    heading(wording.spent(found))
    priced = found.figures.cost_made is not None
    table = _table("model", ("tokens", "right"), *((("cost", "right"),) if priced else ()))
    for name, used, cost in models[:_ROWS]:
        table.add_row(Text(plain(name)), short(used), *((dollars(cost),) if priced else ()))
    OUT.print(indented(compact(table)))
    left_out("model", _ROWS, len(models))


def _worst(sessions: Sequence[ReportedSession]) -> None:
    if not sessions:
        return
    heading("worst sessions")
    table = _table("session", ("score", "right"), "")
    table.columns[-1].overflow, table.columns[-1].no_wrap = "fold", False
    room = OUT.width - _BESIDE_A_TITLE - max(len("session"), *(len(session.session_id) for session in sessions))
    for session in sessions:
        about = Text(plain(session.title), style="dim")
        about.truncate(max(room, 1), overflow="ellipsis")
        about = Text.assemble(about, "\n", plain(wording.wrong(session)))
        table.add_row(
            Text(plain(session.session_id), style="bold"), Text(str(session.score), style=_grade(session.score)), about
        )
    OUT.print(indented(compact(table)))
    OUT.print()
    OUT.print(Text(plain(command("analyze", sessions[0].session_id)), style="bold"), soft_wrap=True)


def _grade(score: int | None) -> str:
    return "green" if score is None or score >= GOOD else "yellow" if score >= LOW else "red"


def _table(*columns: str | tuple[str, str]) -> Table:
    """Return a table without lines whose first column, or last one if it has no name, shrinks to fit."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=fills(), show_header=any(columns[1:]))
    for number, column in enumerate(columns):
        name, justify = (column, "left") if isinstance(column, str) else column
        gives = number == (len(columns) - 1 if columns[-1] == "" else 0)
        table.add_column(
            name, justify="right" if justify == "right" else "left", no_wrap=True, overflow="ellipsis",
            ratio=1 if gives else None,
        )  # fmt: skip
    return table
