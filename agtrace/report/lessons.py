"""Lessons: failures grouped by what failed and how, over the sessions of a project, with what worked in the end."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.lessons import Lesson, Lessons

from agtrace.health.experience import Experience, experiences
from agtrace.health.history_reader import read_history
from agtrace.problems import TooManyEvents
from agtrace.report.selection import Selection, families, in_period
from agtrace.sessions.query import iso, short_id
from agtrace.text.numbers import counted
from agtrace.usage.prices import PriceTable

FEWEST_SESSIONS, FEWEST_TIMES = 2, 3
"""A lesson failed in so many sessions, or so often in one."""
_AGREEING = 0.5
"""The share of the failures that were overcome in the same way from which on this is what works."""


class Case(NamedTuple):
    """An experience, with its session."""

    session: Session
    told: Experience


def lessons(
    connection: sqlite3.Connection,
    selection: Selection,
    *,
    now: float,
    prices: PriceTable,
    most_events: int | None = None,
) -> Lessons:
    """Return the lessons of the selected sessions, those of the most sessions first. Raises `TooManyEvents`."""
    chosen = [family.row for family in in_period(families(connection, selection), selection.since, selection.until)]
    failing = [session for session in chosen if session.failed_calls]
    if most_events is not None and sum(session.event_count for session in failing) > most_events:
        raise TooManyEvents(len(failing))
    cases = [
        Case(session, told)
        for session in failing
        for told in experiences(read_history(connection, session, now=now, prices=prices))
    ]
    return Lessons(
        selection=selection.sentence(len(chosen)),
        sessions=len(chosen),
        lessons=learned(connection, cases),
        made_at=iso(int(now * 1000)),
    )


def learned(connection: sqlite3.Connection, cases: Iterable[Case]) -> list[Lesson]:
    """Return what these experiences teach: first what is known to work, then what failed in the most sessions."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.told.what, case.told.error].append(case)
    found = [_lesson(connection, alike) for alike in groups.values() if _is_enough(alike)]
    return sorted(found, key=lambda one: (one.worked is None, -one.sessions, -one.times, one.what, one.error))


def _is_enough(cases: Sequence[Case]) -> bool:
    return len(_sessions(cases)) >= FEWEST_SESSIONS or len(cases) >= FEWEST_TIMES


def _sessions(cases: Iterable[Case]) -> set[int]:
    return {case.session.id for case in cases}


def _lesson(connection: sqlite3.Connection, cases: Sequence[Case]) -> Lesson:
    """Sum up the cases of one failure."""
    newest = max(cases, key=lambda case: case.told.at)
    fix = _what_worked(cases)
    shown = fix or newest
    told = shown.told
    return Lesson(
        what=told.what,
        error=told.line,
        times=len(cases),
        sessions=len(_sessions(cases)),
        overcome=sum(case.told.worked_event is not None for case in cases),
        last=iso(newest.told.at or None),
        seconds=sum(case.told.milliseconds for case in cases) // 1000,
        tokens=sum(case.told.tokens for case in cases),
        tried=told.tried,
        how=None if fix is None else fix.told.how,
        worked=None if fix is None else fix.told.worked,
        advice=_advice(told, fix is not None),
        failed=_reference(connection, shown.session, told.failed_event),
        succeeded=None if fix is None else _reference(connection, fix.session, fix.told.worked_event or 0),
    )


def _what_worked(cases: Sequence[Case]) -> Case | None:
    """Return the newest case that was overcome as most were; None if each was in another way."""
    overcome = [case for case in cases if case.told.worked is not None]
    if not overcome:
        return None
    way, times = Counter(_way(case.told) for case in overcome).most_common(1)[0]
    if times < _AGREEING * len(overcome):
        return None
    return max((case for case in overcome if _way(case.told) == way), key=lambda case: case.told.at)


def _way(told: Experience) -> tuple[str | None, str]:
    """Return how a failure was overcome, equal for the same program with other arguments."""
    return told.how, " ".join((told.worked or "").split()[:2])


def _advice(told: Experience, known: bool) -> str:
    """Return a sentence for CLAUDE.md or AGENTS.md."""
    if not known or told.worked is None:
        return f"`{told.what}` keeps failing with “{told.line}”; nothing has fixed it in the same way twice."
    if told.how == "before" and told.worked.endswith(" the file"):
        return f"{told.worked} before `{told.what}`: otherwise it fails with “{told.line}”."
    if told.how == "before":
        return f"Before `{told.tried}`, run `{told.worked}`: otherwise it fails with “{told.line}”."
    return f"Instead of `{told.tried}`, run `{told.worked}`: the first fails with “{told.line}”."


def _reference(connection: sqlite3.Connection, session: Session, event: int) -> str:
    return f"ax://event/{short_id(connection, session.uid)}/{event}"


def text(found: Lessons) -> str:
    """Return lessons as Markdown, ending with a newline."""
    lines = [f"# {counted(len(found.lessons), 'lesson')} from {found.selection}"]
    if not found.lessons:
        lines += [
            "",
            f"Nothing failed in {FEWEST_SESSIONS} sessions, or {FEWEST_TIMES} times in one, with the same error.",
        ]
    for number, lesson in enumerate(found.lessons, 1):
        lines += ["", f"{number}. {lesson.advice}", f"   failed {often(lesson)}, {_cost(lesson)}: {lesson.failed}"]
        if lesson.succeeded:
            lines.append(f"   worked: {lesson.succeeded}")
    return "\n".join(lines) + "\n"


def often(lesson: Lesson) -> str:
    """Return how often it failed: `5 times in 3 sessions`."""
    return f"{counted(lesson.times, 'time')} in {counted(lesson.sessions, 'session')}"


def _cost(lesson: Lesson) -> str:
    last = f"last on {lesson.last[:10]}" if lesson.last else "at an unknown time"
    spent = [f"{lesson.seconds // 60} min" if lesson.seconds >= 60 else f"{lesson.seconds} s"] if lesson.seconds else []
    spent += [f"{lesson.tokens:,} tokens"] if lesson.tokens else []
    return f"which took {' and '.join(spent)}, {last}" if spent else last
