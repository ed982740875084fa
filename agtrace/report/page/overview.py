"""The overview of a report as its template shows it: words, numbers, and the numbers of the period before."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Literal

from agtrace_schema.analysis import Change, Figures, Report, ReportedSession, Severity
from agtrace_schema.landmarks import LandmarkKind
from msgspec import Struct

from agtrace.health.examination import SEVERITIES
from agtrace.report import wording
from agtrace.report.wording import AGENTS, deeds, why_at_least, words_of
from agtrace.sessions.terms import ENDINGS
from agtrace.text.numbers import counted, duration, percent, short

WORST = 10
"""The most sessions in the table that works without a script; only sessions that aren't good are listed."""

RING = 2 * math.pi * 52
"""The circumference of the ring around the mean score."""

_CHECKS = {LandmarkKind.TEST_RUN, LandmarkKind.BUILD}
_NOT_GOOD = {"fair", "low"}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "share": percent, "tokens": short, "dollars": wording.shown_dollars,
    **dict.fromkeys(("points", "sessions"), lambda number: wording.plain(round(number, 1))),
}  # fmt: skip
_ARROWS = {"better": "▲", "worse": "▼", "same": "≈", "neither": "●"}
_VERDICTS = {"better": "better", "worse": "worse", "same": "no clear change", "neither": "changed"}


def overview(report: Report) -> dict[str, Any]:
    """Return the values for the templates of the overview."""
    begun, pieces = 0.0, []
    for ending, name in ENDINGS.items():
        number = report.figures.endings.get(ending, 0)
        if number:
            length = 1000 * number / max(report.figures.sessions, 1)
            pieces.append(
                {"ending": ending, "name": name, "number": number, "start": round(begun, 1), "length": round(length, 1)}
            )
            begun += length
    return {
        "selection": report.selection,
        "dollars": report.figures.cost_made is not None,
        "behind": " ".join(filter(None, (report.behind, report.new_secrets))) or None,
        "made": wording.minute(report.made_at) if report.made_at else None,
        "compared": report.compared,
        "mean": _mean(report.figures),
        "figures": _figures(report),
        "changes": [_change(change) for change in report.changes],
        "endings": pieces,
        "done": deeds(report),
        "lessons": [
            {
                "advice": lesson.advice,
                "often": f"{counted(lesson.times, 'time')} in {counted(lesson.sessions, 'session')}",
            }
            for lesson in report.lessons
        ],
        "worst": [
            _session(session) for session in report.sessions[:WORST] if wording.grade(session.score) in _NOT_GOOD
        ],
        "versions": [f"{words_of(name)} {version}" for name, version in report.versions.items()],
    }


def _mean(figures: Figures) -> dict[str, Any]:
    mean = figures.mean_score
    return {
        "score": "–" if mean is None else wording.plain(round(mean)),
        "grade": wording.grade(mean),
        "ring": f"{RING * (mean or 0) / 100:.1f} {RING:.1f}",
        "says": "no session has a score"
        if mean is None
        else f"mean health of {counted(figures.scored, 'scored session')}",
        "median": figures.median_score,
    }


def _figures(report: Report) -> list[dict[str, str | None]]:
    """Return what it took and how well it went: what a person asks first comes first."""
    figures = report.figures
    rate = figures.failed_rate
    share = f"{percent(figures.sessions_corrected / figures.sessions)} of all" if figures.sessions else "no such"
    corrected = f"by the human, in {share} sessions"
    failed = f"{wording.plain(figures.failed_calls)} of {wording.plain(figures.tool_calls)} tool calls"
    exactly = wording.plain(figures.total_tokens)
    about = f"at least {exactly}; {why_at_least('partial')}" if figures.tokens_made == "partial" else exactly
    known = [session.active_seconds for session in report.sessions if session.active_seconds is not None]
    active = duration(1000 * sum(known)) if known else None
    return [
        *_cost(figures),
        _figure("Active time", active, f"{counted(len(report.sessions), 'session')}, without long pauses"),
        _figure("Corrections", wording.plain(figures.corrections), corrected),
        _checks(report),
        _figure("Failed calls", None if rate is None else percent(rate), failed),
        _figure("Tokens", wording.at_least(short(figures.total_tokens), figures.tokens_made), about),
    ]


def _cost(figures: Figures) -> list[dict[str, str | None]]:
    if figures.cost_made is None:
        return [_figure("Sessions", wording.plain(figures.sessions), f"{wording.plain(figures.scored)} scored")]
    cost = "" if figures.cost_usd is None else wording.shown_dollars(figures.cost_usd)
    return [_figure("Cost", wording.at_least(cost, figures.cost_made) or None, wording.cost_made(figures))]


def _checks(report: Report) -> dict[str, str | None]:
    checks = [deed for deed in report.deeds if deed.kind in _CHECKS]
    run, failed = sum(deed.count for deed in checks), sum(deed.failed for deed in checks)
    rate = percent(failed / run) if run else "none run"
    return _figure("Failed checks", rate, f"{wording.plain(failed)} of {wording.plain(run)} test runs and builds")


def _figure(name: str, value: str | None, about: str) -> dict[str, str | None]:
    return {"name": name, "value": value or "unknown", "about": about, "known": value}


def _change(change: Change) -> dict[str, str]:
    write = _WRITTEN[change.unit]
    return {
        "what": change.what,
        "before": write(change.before),
        "now": write(change.now),
        "verdict": change.verdict,
        "arrow": _ARROWS[change.verdict],
        "word": _VERDICTS[change.verdict],
    }


def _session(session: ReportedSession) -> dict[str, Any]:
    return {
        "id": session.session_id,
        "title": session.title,
        "score": session.score,
        "grade": wording.grade(session.score),
        "ending": session.ending.ending,
        "ended": ENDINGS[session.ending.ending],
        "worst": worst(session) or "nothing found",
        "about": [
            AGENTS.get(str(session.provider), str(session.provider)),
            session.project or "no project",
            wording.minute(session.start_time),
        ],
        "failed": f"{session.failed_calls:,} of {session.tool_calls:,}",
        "lasted": "" if session.duration_seconds is None else duration(1000 * session.duration_seconds),
        "cost": wording.at_least(
            "" if session.cost_usd is None else wording.shown_dollars(session.cost_usd), session.cost_made
        ),
    }


# -- charts ----------------------------------------------------------------------------------------

Unit = Literal["number", "tokens", "dollars"]

MOST_DAYS, MOST_WEEKS = 45, 280
"""The most days that are shown by day, and by week; a longer span is shown by month."""

MOST_MODELS, MOST_TOOLS, MOST_PROJECTS = 5, 12, 12
_BEGAN = "A session counts when it began; `agtrace cost` tells when each token was spent"
_BY = {"day": "by day", "week": "by week", "month": "by month"}


class Chart(Struct, frozen=True):
    """A chart and its table: a row is a label, then a number for each series, None if unknown."""

    name: str
    title: str
    kind: Literal["columns", "bars"]
    """Vertical or horizontal."""
    unit: Unit
    says: str
    """What the chart shows, in a sentence, for readers who can't see it."""
    columns: list[str]
    """The headings of the labels and of each series."""
    colours: list[str]
    """A custom property of the style sheet for each series, or for each row if there is only one series."""
    rows: list[tuple[str, list[float | None]]]
    note: str | None = None
    stacked: bool = True
    """Whether the series of a row are parts of a whole; otherwise the second is a part of the first and covers it."""


def charts(report: Report) -> list[Chart]:
    """Return the charts for which a report has figures."""
    tokens = {(item.day, item.model): item.total_tokens for item in report.models}
    cost = {(item.day, item.model): item.cost_usd for item in report.models}
    made = (
        _sessions_chart(report), _by_model(report, "dollars", "Cost", cost), _projects_chart(report),
        _tools_chart(report), _detectors_chart(report), _by_model(report, "tokens", "Tokens", tokens),
        _scores_chart(report),
    )  # fmt: skip
    return [chart for chart in made if chart and chart.rows]


def _sessions_chart(report: Report) -> Chart | None:
    days = {day.day: day.endings for day in report.days}
    step, spans = _spans(days)
    ended = Counter({name: sum(day.get(name, 0) for day in days.values()) for name in ENDINGS})
    names = [name for name in ENDINGS if ended[name]]
    return Chart(
        name="sessions",
        title=f"Sessions {_BY[step]}, and how they ended",
        kind="columns",
        unit="number",
        says=", ".join(f"{wording.plain(ended[name])} {ENDINGS[name]}" for name in names),
        columns=[step.capitalize(), *(ENDINGS[name].capitalize() for name in names)],
        colours=[f"--ending-{name}" for name in names],
        rows=[(label, [sum(days[day].get(name, 0) for day in those) for name in names]) for label, those in spans],
        note=f"{counted(report.undated, 'session')} without a time: not shown here" if report.undated else None,
    )


def _scores_chart(report: Report) -> Chart | None:
    low = sum(report.scores[:6])
    return Chart(
        name="scores",
        title="Scores",
        kind="columns",
        unit="number",
        says=f"{low} of {report.figures.scored} scored sessions are below 60, {sum(report.scores[8:])} at 80 or more",
        columns=["Score", "Sessions"],
        colours=[f"--score-{wording.grade(ten * 10)}" for ten in range(10)],
        rows=[(f"{ten * 10}–{ten * 10 + 9 + (ten == 9)}", [float(n)]) for ten, n in enumerate(report.scores)],
        note=_unscored(report),
    )


def _unscored(report: Report) -> str | None:
    reasons = Counter(session.unscored or "reason unknown" for session in report.sessions if session.score is None)
    if not reasons:
        return None
    said = (why if len(reasons) == 1 else f"{wording.plain(n)} × {why}" for why, n in reasons.most_common())
    return f"{counted(reasons.total(), 'session')} without a score: {'; '.join(said)}"


def _tools_chart(report: Report) -> Chart | None:
    failing = sorted((tool for tool in report.tools if tool.failed), key=lambda tool: (-tool.failed, -tool.calls))
    tools = failing[:MOST_TOOLS]
    left = len(report.tools) - len(tools)
    worst = tools[0] if tools else None
    return Chart(
        name="tools",
        title="Failures by tool",
        kind="bars",
        unit="number",
        says=f"{worst.tool} failed most: {worst.failed} of {worst.calls} calls" if worst else "",
        columns=["Tool", "Calls", "Failed"],
        colours=["--quiet-bar", "--bad"],
        rows=[(tool.tool, [float(tool.calls), float(tool.failed)]) for tool in tools],
        note=f"{counted(left, 'other tool')} failed less or never" if left else None,
        stacked=False,
    )


def _detectors_chart(report: Report) -> Chart | None:
    found = sorted(report.detectors, key=lambda item: -item.sessions)
    most = found[0] if found else None
    worst: Counter[tuple[str, Severity]] = Counter()
    for session in report.sessions:
        of_detector: dict[str, int] = {}
        for insight in session.insights:
            rank = SEVERITIES.index(insight.severity)
            of_detector[insight.detector] = min(rank, of_detector.get(insight.detector, rank))
        worst.update((detector, SEVERITIES[rank]) for detector, rank in of_detector.items())
    return Chart(
        name="detectors",
        title="What was found",
        kind="bars",
        unit="number",
        says=f"{words_of(most.detector)} most often: in {counted(most.sessions, 'session')}" if most else "",
        columns=["Finding", *SEVERITIES],
        colours=["--bad", "--fair", "--info"],
        rows=[
            (words_of(item.detector), [float(worst[item.detector, severity]) for severity in SEVERITIES])
            for item in found
            if item.sessions
        ],
        note="Sessions with each finding, by its worst severity; a click lists them",
    )


def _projects_chart(report: Report) -> Chart | None:
    """Chart what each project cost, or its tokens if the report is without dollars."""
    priced = report.figures.cost_made is not None
    spent: dict[str, float] = defaultdict(float)
    for session in report.sessions:
        spent[session.project or "no project"] += (session.cost_usd if priced else session.total_tokens) or 0
    ranked = sorted(((name, used) for name, used in spent.items() if used), key=lambda item: -item[1])
    if not ranked:
        return None
    shown, left = ranked[:MOST_PROJECTS], len(ranked) - MOST_PROJECTS
    what = "Cost" if priced else "Tokens"
    name, used = shown[0]
    return Chart(
        name="projects",
        title=f"{what} by project",
        kind="bars",
        unit="dollars" if priced else "tokens",
        says=f"{name} most: {wording.shown_dollars(used) if priced else short(used)}",
        columns=["Project", what],
        colours=["--series-2"],
        rows=[(name, [used]) for name, used in shown],
        note=f"{counted(left, 'other project')} cost less" if left > 0 else "A click lists a project's sessions",
    )


def _by_model(report: Report, unit: Unit, what: str, used: Mapping[tuple[str, str], float | None]) -> Chart | None:
    """Chart what models used over time, None if unknown; the models with the fewest tokens share one series."""
    if not any(used.values()):
        return None
    shown, others = _ranked(report)
    step, spans = _spans({day.day for day in report.days} | {day for day, _ in used})
    series = [[model] for model in shown] + [others] * bool(others)
    rows = [
        (label, [_sum(used.get((day, model), 0) for day in days for model in those) for those in series])
        for label, days in spans
    ]
    written = wording.shown_dollars if unit == "dollars" else short
    totals = [_sum(used[key] for key in used if key[1] == model) for model in shown]
    return Chart(
        name=unit,
        title=f"{what} {_BY[step]} and model",
        kind="columns",
        unit=unit,
        says=", ".join(
            f"{model} {'unknown' if total is None else written(total)}"
            for model, total in zip(shown, totals, strict=True)
        ),
        columns=[step.capitalize(), *shown, *([f"{len(others)} other models"] if others else [])],
        colours=[f"--series-{n + 1}" for n in range(len(shown))] + ["--ending-unknown"] * bool(others),
        rows=rows,
        note=". ".join(
            filter(None, (wording.cost_made(report.figures).capitalize() if unit == "dollars" else "", _BEGAN))
        ),
    )


def _sum(numbers: Iterable[float | None]) -> float | None:
    every = list(numbers)
    known = [number for number in every if number is not None]
    return sum(known) if any(known) or len(known) == len(every) else None


def _ranked(report: Report) -> tuple[list[str], list[str]]:
    """Return the models with the most tokens, and all others; the same for every chart, so that colours agree."""
    totals: dict[str, int] = defaultdict(int)
    for item in report.models:
        totals[item.model] += item.total_tokens
    ranked = sorted(totals, key=lambda model: -totals[model])
    return ranked[:MOST_MODELS], ranked[MOST_MODELS:]


def _spans(known: Iterable[str]) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the days, weeks or months from the first to the last day, even empty ones, each with its known days."""
    known = set(known)
    if not known:
        return "day", []
    first, last = date.fromisoformat(min(known)), date.fromisoformat(max(known))
    length = (last - first).days
    step = "day" if length <= MOST_DAYS else "week" if length <= MOST_WEEKS else "month"
    spans: dict[str, list[str]] = {}
    for number in range(length + 1):
        day = first + timedelta(days=number)
        those = spans.setdefault(_label(day, step), [])
        if day.isoformat() in known:
            those.append(day.isoformat())
    return step, list(spans.items())


def _label(day: date, step: str) -> str:
    if step == "month":
        return day.isoformat()[:7]
    return (day - timedelta(days=day.weekday()) if step == "week" else day).isoformat()


def worst(session: ReportedSession) -> str | None:
    """Return the message of a session's first most severe finding; None if it has no findings."""
    found = min(session.insights, key=lambda item: SEVERITIES.index(item.severity), default=None)
    return found.message if found else None
