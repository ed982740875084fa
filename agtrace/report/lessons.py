"""Lessons: failures grouped by what failed and how, over the sessions of a project, with what worked in the end."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.reports import Lesson, Lessons, Unsolved

from agtrace.health.analysis import examinations
from agtrace.health.examination import Experience
from agtrace.report.selection import Selection, families, in_period
from agtrace.sessions.events import aftermath
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import find_event, short_id
from agtrace.text.numbers import counted
from agtrace.times import iso, when

FEWEST_SESSIONS, FEWEST_TIMES = 2, 3
"""A lesson failed in so many sessions, or so often in one."""
_UNSOLVED = 5
"""The most failures without a fix that are named."""
_AGREEING = 0.5
"""What works is what overcame at least this share of the failures that were overcome."""


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
    known = examinations(connection, failing, now=now, prices=prices, most_events=most_events)
    cases = [Case(session, told) for session in failing for told in known[session.id].experiences]
    found, again = learned(connection, cases)
    return Lessons(
        selection=selection.sentence(len(chosen)),
        sessions=len(chosen),
        lessons=found,
        unsolved=len(again),
        worst_unsolved=[_unsolved(connection, alike) for alike in again[:_UNSOLVED]],
        made_at=iso(int(now * 1000)),
    )


def learned(connection: sqlite3.Connection, cases: Iterable[Case]) -> tuple[list[Lesson], list[list[Case]]]:
    """Return what these experiences teach, and the failures that taught nothing, those of the most sessions first."""
    cases = list(cases)
    ways: dict[tuple[str, str], set[int]] = defaultdict(set)
    for case in cases:
        if way := _general(case.told):
            ways[way].add(case.session.id)
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        way = _general(case.told)
        proven = way is not None and len(ways[way]) >= FEWEST_SESSIONS
        groups[way if way is not None and proven else (case.told.what, case.told.error)].append(case)
    found, unsolved = [], []
    for alike in groups.values():
        if len(_sessions(alike)) < FEWEST_SESSIONS and len(alike) < FEWEST_TIMES:
            continue
        lesson = _lesson(connection, alike)
        if lesson is None:
            unsolved.append(alike)
        else:
            found.append(lesson)
    found.sort(key=lambda one: (-one.sessions, -one.times, one.what, one.error))
    best = {one.what: one for one in reversed(found) if one.how == "before"}
    found = [one for one in found if one.how != "before" or best[one.what] is one]
    unsolved.sort(key=lambda alike: (-len(_sessions(alike)), -len(alike), alike[0].told.what, alike[0].told.error))
    return found, unsolved


def _general(experience: Experience) -> tuple[str, str] | None:
    """Return the remedy if it is one whatever the error: a command without its wrapper, a formatter before a check."""
    if experience.way is not None and (experience.how == "before" or experience.way.startswith(("with ", "without "))):
        return experience.what, experience.way
    return None


def _unsolved(connection: sqlite3.Connection, cases: Sequence[Case]) -> Unsolved:
    newest_first = sorted(cases, key=lambda case: -case.told.at)
    newest, succeeded = newest_first[0], (_succeeded(connection, case) for case in newest_first)
    return Unsolved(
        what=newest.told.what,
        error=newest.told.line,
        times=_times(cases),
        sessions=len(_sessions(cases)),
        failed=_reference(connection, newest.session, newest.told.failed_event),
        succeeded=next(filter(None, succeeded), None),
    )


def _succeeded(connection: sqlite3.Connection, case: Case) -> str | None:
    """Return what succeeded after a failure, as `show` names it there."""
    failed = find_event(connection, case.session, case.told.failed_event)
    later = aftermath(connection, case.session, failed)
    return None if later is None else _reference(connection, case.session, later.succeeded)


def _times(cases: Iterable[Case]) -> int:
    return sum(case.told.times for case in cases)


def _sessions(cases: Iterable[Case]) -> set[int]:
    return {case.session.id for case in cases}


def _lesson(connection: sqlite3.Connection, cases: Sequence[Case]) -> Lesson | None:
    """Sum up the cases of one failure; None if nothing is known to work."""
    fix = _what_worked(cases)
    if fix is None:
        return None
    told = fix.told
    assert told.how is not None and told.worked is not None and told.worked_event is not None
    newest = max(case.told.at for case in cases)
    return Lesson(
        what=told.what,
        error=told.line,
        times=_times(cases),
        sessions=len(_sessions(cases)),
        overcome=sum(case.told.worked_event is not None for case in cases),
        last=iso(newest or None),
        seconds=sum(case.told.milliseconds for case in cases) // 1000,
        tokens=sum(case.told.tokens for case in cases),
        tried=told.tried,
        how=told.how,
        worked=told.worked,
        advice=_advice(told, told.worked),
        failed=_reference(connection, fix.session, told.failed_event),
        succeeded=_reference(connection, fix.session, told.worked_event),
    )


def _what_worked(cases: Sequence[Case]) -> Case | None:
    """Return the newest case that was overcome as most were, in two sessions or more; None if there is none."""
    overcome = [case for case in cases if case.told.way is not None]
    if not overcome:
        return None
    way = Counter(case.told.way for case in overcome).most_common(1)[0][0]
    same = [case for case in overcome if case.told.way == way]
    if len(_sessions(same)) < FEWEST_SESSIONS or len(same) < _AGREEING * len(overcome):
        return None
    return max(same, key=lambda case: case.told.at)


def _advice(experience: Experience, worked: str) -> str:
    error = experience.line.removesuffix(".").removesuffix(":")
    if experience.how == "before":
        return f"Before `{experience.tried}`, run `{worked}`: otherwise it fails with “{error}”."
    return f"Instead of `{experience.tried}`, run `{worked}`: the first fails with “{error}”."


def _reference(connection: sqlite3.Connection, session: Session, event: int) -> str:
    return f"ax://event/{short_id(connection, session.uid)}/{event}"


def text(found: Lessons, place: Callable[[str], str] = str) -> str:
    """Return lessons as Markdown, ending with a newline; `place` makes of a reference what the reader opens it by."""
    lines = [f"# {counted(len(found.lessons), 'lesson')} from {found.selection}"]
    for number, lesson in enumerate(found.lessons, 1):
        lines += ["", f"{number}. {lesson.advice}"]
        lines.append(f"   failed {often(lesson)}, {_cost(lesson)}: {place(lesson.failed)}")
        lines.append(f"   worked: {place(lesson.succeeded)}")
    if found.unsolved:
        have = "has" if found.unsolved == 1 else "have"
        lines += ["", f"{counted(found.unsolved, 'more recurring failure')} {have} no proven fix:"]
        for one in found.worst_unsolved:
            where = f"{counted(one.times, 'time')} in {counted(one.sessions, 'session')}: {place(one.failed)}"
            where += f"; it succeeded afterwards: {place(one.succeeded)}" if one.succeeded else ""
            lines.append(f"- `{one.what}`: “{one.error}”, {where}")
    elif not found.lessons:
        few = f"in {FEWEST_SESSIONS} sessions, or {FEWEST_TIMES} times in one"
        lines += ["", f"Nothing failed with the same error {few}."]
    return "\n".join(lines) + "\n"


def often(lesson: Lesson) -> str:
    """Return how often it failed: `5 times in 3 sessions`."""
    return f"{counted(lesson.times, 'time')} in {counted(lesson.sessions, 'session')}"


def _cost(lesson: Lesson) -> str:
    last = f"last on {when(lesson.last)[:10]}" if lesson.last else "at an unknown time"
    spent = [f"{lesson.seconds // 60} min" if lesson.seconds >= 60 else f"{lesson.seconds} s"] if lesson.seconds else []
    spent += [f"{lesson.tokens:,} tokens"] if lesson.tokens else []
    return f"{' and '.join(spent)} until it worked, cache reads included, {last}" if spent else last
