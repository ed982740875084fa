"""The best sessions of a ranked search as an answer shows them: a clear winner gets the room, the others a line."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.index.questions.sessions import Session, people_of
from agtrace_indexer.index.questions.texts import StoredEvent
from agtrace_schema.answers import BestMatches, BestSession, Worked
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later
from msgspec.structs import replace

from agtrace.search.course import with_course, with_ending
from agtrace.search.ranking import Ranked
from agtrace.sessions.aftermath import aftermath
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.said import TEXT, opened, said
from agtrace.sessions.steps import telling_argument
from agtrace.text.lines import LABEL, one_line
from agtrace.times import iso

_RIVAL = 0.7
"""Sessions with at least this share of the best score are shown with their hits."""

_HITS = {1: (4,), 2: (4, 2), 3: (3, 2, 1), 4: (3, 1, 1, 1), 5: (3, 1, 1, 1, 1)}
"""By the number of such sessions, how many hits each of them shows."""

_ALIKE = 0.6
"""A hit with this share of its words in one that is shown already only says it again."""

_ANSWERS = (490, 350, 260)
"""Characters of the messages among the hits of the best session: often the next sentence is what was asked for."""

_MESSAGE = "message"

_OF_BEST = 260
"""Characters of other hits of the best session."""

_OTHERS = 4
_OTHER = 0.4
"""Further sessions, those with at least this share of the best score, get a line."""

_DOUBTED = 2
"""The most sessions shown if words of the query are found nowhere and the rest is weak."""

_FIXED = 2
"""In so many of the best sessions, and so many of their hits, failures are looked for that were overcome."""

_WEAK = 0.25
"""Hits with a smaller share of the score of their session's best one aren't shown."""

_WORD = later(r"[^\W\d_]{4,}")
"""The words by which texts are compared: without numbers, and without those that all texts have."""


def best_matches(connection: sqlite3.Connection, ranked: Ranked, most: int) -> BestMatches:
    """Show the best of these sessions with their hits, and name a few more: at most so many in all.

    If words of the query are found nowhere and the rest is weak, the answer is short: it is hardly what was wanted.
    """
    found = ranked.sessions
    doubted = bool(ranked.nowhere) and not ranked.sure
    most = min(most, _DOUBTED) if doubted else most
    best = [one for one in found if one.score >= _RIVAL * found[0].score][: min(max(_HITS), most)]
    others = [one for one in found[len(best) : min(len(best) + _OTHERS, most)] if one.score >= _OTHER * found[0].score]
    names = labels(connection)
    rows = {row.id: row for row in sessions.in_rows(connection, (one.session_row for one in (*best, *others)))}
    users = people_of(connection, [one.session_row for one in best])
    shown = [
        replace(
            _session(connection, rows[one.session_row], names, one.hits, ranked.words, hits, best=one is best[0]),
            user=users.get(one.session_row),
        )
        for one, hits in zip(best, (1,) * len(best) if doubted else _HITS[len(best)], strict=True)
    ]
    completed = with_ending if doubted else with_course
    shown[0] = completed(connection, rows[best[0].session_row], shown[0])
    return BestMatches(
        worked=_worked(connection, [(rows[one.session_row], told) for one, told in zip(best, shown, strict=True)]),
        sessions=shown,
        nowhere=list(ranked.nowhere) or None,
        lacking=list(ranked.lacking) or None,
        others=[_line(connection, rows[one.session_row]) for one in others],
    )


def _session(
    connection: sqlite3.Connection,
    row: Session,
    names: Mapping[int, str],
    hits: Sequence[RankedEvent],
    words: Sequence[str],
    most: int,
    *,
    best: bool,
) -> BestSession:
    """Show a session with at most so many hits, more of each if it is the best one."""
    return BestSession(
        session_id=short_id(connection, row.uid),
        provider=row.provider,
        project=names.get(row.project_id or 0),
        date=_day(row),
        title=_title(row),
        hits=_shown(connection, row.provider, hits, words, most, best=best),
    )


def _worked(connection: sqlite3.Connection, found: Sequence[tuple[Session, BestSession]]) -> Worked | None:
    """Return what worked after the first of the best hits that failed."""
    for row, shown in found[:_FIXED]:
        for event_index, _, _ in shown.hits[:_FIXED]:
            event = opened(connection, row.id, event_index)
            told = aftermath(connection, row, event) if event.outcome is Outcome.FAILED else None
            if told is not None:
                return Worked(
                    session_id=shown.session_id,
                    failed=event_index,
                    succeeded=told.succeeded,
                    text=_did(connection, row.id, told.succeeded),
                    command=None if told.command is None else (told.command, _did(connection, row.id, told.command)),
                    changes=told.changes,
                )
    return None


def _did(connection: sqlite3.Connection, session_row: int, call: int) -> str:
    return one_line(telling_argument(opened(connection, session_row, call).rest.get("arguments")), TEXT)


def _line(connection: sqlite3.Connection, row: Session) -> tuple[str, str, str]:
    return short_id(connection, row.uid), _day(row) or "", one_line(_title(row), LABEL)


def _day(row: Session) -> str | None:
    time = iso(row.started_at)
    return time and time[:10]


def _title(row: Session) -> str:
    return one_line(row.title or row.snippet or "(no request)", 2 * LABEL)


# -- hits ------------------------------------------------------------------------------------------


def _shown(
    connection: sqlite3.Connection,
    provider: str,
    hits: Sequence[RankedEvent],
    words: Sequence[str],
    most: int,
    *,
    best: bool,
) -> list[tuple[int, str, str]]:
    """Up to so many hits that differ: a call and its result are one, what was said is not shown again."""
    shown: list[tuple[int, str, str]] = []
    seen: set[int] = set()
    told: list[frozenset[str]] = []
    for hit in hits:
        if hit.score < _WEAK * hits[0].score:
            break
        event = opened(connection, hit.session, hit.event_index)
        pair = {event.event_index} if event.row.link is None else {event.event_index, event.row.link}
        answers = sum(kind == _MESSAGE for _, kind, _ in shown)
        who, text = said(connection, provider, event, words, _room(event, answers) if best else TEXT)
        content = frozenset(_WORD.findall(text.lower()) or [text])
        if not text or pair & seen or any(_says_again(content, other) for other in told):
            continue
        seen |= pair
        told.append(content)
        shown.append((event.event_index, who, text))
        if len(shown) == most:
            break
    return shown


def _room(event: StoredEvent, answers: int) -> int:
    """Return the characters of a hit of the best session behind so many messages."""
    return _ANSWERS[min(answers, len(_ANSWERS) - 1)] if event.type == EventType.MESSAGE else _OF_BEST


def _says_again(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a text says little more than another that is shown already."""
    return len(words & other) >= _ALIKE * len(words)
