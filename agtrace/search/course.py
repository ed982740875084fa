"""What came of the best session of a ranked search: often that is the answer already."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from agtrace_indexer.index.questions import calls, events, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import BestSession
from agtrace_schema.events import Outcome
from msgspec.structs import replace

from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.query import last_event_of
from agtrace.sessions.said import Line, human_words, last_message, open_call, opened, said

_LANDMARKS, _LAST, _SHORT = 4, 320, 160
"""The most landmarks, and the characters of the last message: of a session that is hardly what was wanted, fewer."""

_TURNS = 3
"""The turn of the best hit, and the next ones."""

_LINES, _LINE = 5, 150
"""So many of their requests, refusals and answers are shown, with so many characters."""

_REFUSALS = 20
"""So many calls that didn't end well are looked at for refusals with words."""


def with_ending(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    """Return a session with the beginning of its last message."""
    last = last_message(connection, row, last_event_of(connection, row), _SHORT)
    return replace(shown, last_message=None if last is None or last[0] in {hit[0] for hit in shown.hits} else last)


def with_course(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    """Return a session with its landmarks, how it went on after the best hit, and how it ended."""
    last_event, known = last_event_of(connection, row), {hit[0] for hit in shown.hits}
    last, left_open = last_message(connection, row, last_event, _LAST), open_call(connection, row, last_event)
    landmarks = telling_landmarks(connection, row.id, last_event).items[-_LANDMARKS:]
    course = _course(connection, row, shown.hits[0][0], last_event, {*known, last[0] if last else -1})
    told: dict[str, Any] = {
        "landmarks": landmarks or None,
        "course": course or None,
        "last_message": None if last is None or last[0] in known else last,
        "open_call": None if left_open is None or left_open[0] in known else left_open,
    }
    return replace(shown, **told)


def _course(
    connection: sqlite3.Connection, row: Session, hit: int, last_event: int, known: Collection[int]
) -> list[Line]:
    """What was asked, refused and answered in the turn of a hit and the next ones, and the last request.

    What is known already is left out.
    """
    turn = opened(connection, row.id, hit).row.turn_index or 0
    found = turns.page(connection, row.id, from_turn=turn, last_event=last_event, most=_TURNS)
    endings = turns.endings(connection, row.id, found, api_errors=AGENTS[row.provider].notices.api_errors)
    said_last = {ending.last_message for ending in endings.values()}
    asked = {turn.request_event for turn in (*found, *_last_turn(connection, row, last_event))}
    refused = [event for event in _refusals(connection, row, found, last_event) if event not in known]
    wanted = sorted({event for event in asked | said_last if event is not None and event not in known} | {*refused})
    some = [*wanted[: _LINES - 1], *wanted[_LINES - 1 :][-1:]]
    texts = with_texts(connection, events.several(connection, row.id, some))
    return [_line(connection, row.provider, event, refused=event.event_index in refused) for event in texts]


def _line(connection: sqlite3.Connection, provider: str, event: StoredEvent, *, refused: bool) -> Line:
    who, text = said(connection, provider, event, (), _LINE)
    return (event.event_index, "human", f"refused: {text}") if refused else (event.event_index, who, text)


def _refusals(
    connection: sqlite3.Connection, row: Session, found: Sequence[turns.Turn], last_event: int
) -> Iterator[int]:
    """Yield the calls in some turns that the human refused, saying why."""
    if not found:
        return
    meant, then = {turn.turn_index for turn in found}, events.Snapshot(last_event, events.NOW.newest_row)
    ended = calls.failures_then(connection, row.id, then, behind=found[0].first_event - 1, most=_REFUSALS)
    for one in ended:
        refused = one.outcome is Outcome.REJECTED and one.turn_index in meant
        if refused and human_words(opened(connection, row.id, one.shown).text):
            yield one.call_event


def _last_turn(connection: sqlite3.Connection, row: Session, last_event: int) -> list[turns.Turn]:
    last = turns.last(connection, row.id)
    found = [] if last is None else turns.several(connection, row.id, [last])
    return [turn for turn in found if turn.first_event <= last_event]
