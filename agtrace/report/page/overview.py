"""The overview of a report as its template shows it: words, numbers, and the numbers of the period before."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from agtrace_schema.analysis import Change, Figures, Report, ReportedSession
from agtrace_schema.landmarks import LandmarkKind

from agtrace.report.page import wording
from agtrace.report.page.session_data import worst
from agtrace.report.wording import AGENTS, deeds, named, why_at_least
from agtrace.text.numbers import counted, duration, percent, short

WORST = 10
"""The most sessions in the table that works without a script; only sessions that aren't good are listed."""

RING = 2 * math.pi * 52
"""The circumference of the ring around the mean score."""

_CHECKS = {LandmarkKind.TEST_RUN, LandmarkKind.BUILD}
_NOT_GOOD = {"fair", "low"}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "share": percent, "tokens": short, "dollars": wording.dollars,
}  # fmt: skip
_ARROWS = {"better": "▲", "worse": "▼", "same": "≈", "neither": "●"}
_VERDICTS = {"better": "better", "worse": "worse", "same": "no clear change", "neither": "changed"}


def overview(report: Report) -> dict[str, Any]:
    """Return the values for the templates of the overview."""
    return {
        "selection": report.selection,
        "dollars": report.figures.cost_made is not None,
        "behind": report.behind,
        "made": wording.minute(report.made_at) if report.made_at else None,
        "compared": report.compared,
        "mean": _mean(report.figures),
        "figures": _figures(report),
        "changes": [_change(change) for change in report.changes],
        "endings": _endings(report.figures),
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
        "versions": [f"{named(name)} {version}" for name, version in report.versions.items()],
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
    corrected = f"by the human, in {_share(figures.sessions_corrected, figures.sessions, 'all')}"
    failed = f"{wording.plain(figures.failed_calls)} of {wording.plain(figures.tool_calls)} tool calls"
    return [
        *_cost(figures),
        _hours(report.sessions),
        _figure("Corrections", wording.plain(figures.corrections), corrected),
        _checks(report),
        _figure("Failed calls", None if rate is None else percent(rate), failed),
        _tokens(figures),
    ]


def _tokens(figures: Figures) -> dict[str, str | None]:
    """Return the tokens, rounded and to the last one, which are a lower bound if the logs don't have all."""
    exactly = wording.plain(figures.total_tokens)
    about = f"at least {exactly}; {why_at_least('partial')}" if figures.tokens_made == "partial" else exactly
    return _figure("Tokens", wording.at_least(short(figures.total_tokens), figures.tokens_made), about)


def _cost(figures: Figures) -> list[dict[str, str | None]]:
    """Return the cost, unless the report is without dollars."""
    if figures.cost_made is None:
        return [_figure("Sessions", wording.plain(figures.sessions), f"{wording.plain(figures.scored)} scored")]
    cost = "" if figures.cost_usd is None else wording.dollars(figures.cost_usd)
    return [_figure("Cost", wording.at_least(cost, figures.cost_made) or None, wording.cost_made(figures))]


def _hours(sessions: Sequence[ReportedSession]) -> dict[str, str | None]:
    known = [session.active_seconds for session in sessions if session.active_seconds is not None]
    active = duration(1000 * sum(known)) if known else None
    return _figure("Active time", active, f"{counted(len(sessions), 'session')}, without long pauses")


def _checks(report: Report) -> dict[str, str | None]:
    """Return how often tests and builds were run, and how often they failed."""
    checks = [deed for deed in report.deeds if deed.kind in _CHECKS]
    run, failed = sum(deed.count for deed in checks), sum(deed.failed for deed in checks)
    rate = percent(failed / run) if run else "none run"
    return _figure("Failed checks", rate, f"{wording.plain(failed)} of {wording.plain(run)} test runs and builds")


def _figure(name: str, value: str | None, about: str) -> dict[str, str | None]:
    return {"name": name, "value": value or "unknown", "about": about, "known": value}


def _share(part: int, whole: int, of: str) -> str:
    return f"{percent(part / whole)} of {of} sessions" if whole else "no such sessions"


def _change(change: Change) -> dict[str, str]:
    write = _WRITTEN.get(change.unit, _number)
    return {
        "what": change.what,
        "before": write(change.before),
        "now": write(change.now),
        "verdict": change.verdict,
        "arrow": _ARROWS[change.verdict],
        "word": _VERDICTS[change.verdict],
    }


def _number(number: float) -> str:
    return wording.plain(round(number, 1))


def _endings(figures: Figures) -> list[dict[str, Any]]:
    """Return the endings that occur, each with the start and length of its piece in a bar of 1,000."""
    begun, pieces = 0.0, []
    for ending, name in wording.ENDINGS.items():
        number = figures.endings.get(ending, 0)
        if number:
            length = 1000 * number / max(figures.sessions, 1)
            pieces.append(
                {"ending": ending, "name": name, "number": number, "start": round(begun, 1), "length": round(length, 1)}
            )
            begun += length
    return pieces


def _session(session: ReportedSession) -> dict[str, Any]:
    return {
        "id": session.session_id,
        "title": session.title,
        "score": session.score,
        "grade": wording.grade(session.score),
        "ending": session.ending.ending,
        "ended": wording.ENDINGS[session.ending.ending],
        "worst": worst(session) or "nothing found",
        "about": [
            AGENTS.get(str(session.provider), str(session.provider)),
            session.project or "no project",
            wording.minute(session.start_time),
        ],
        "failed": f"{session.failed_calls:,} of {session.tool_calls:,}",
        "lasted": "" if session.duration_seconds is None else duration(1000 * session.duration_seconds),
        "cost": wording.at_least(
            "" if session.cost_usd is None else wording.dollars(session.cost_usd), session.cost_made
        ),
    }
