"""What came of the best session of a ranked search: often that is the answer already."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from agtrace_indexer.index.questions import calls, events, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import BestSession
from agtrace_schema.events import EventType, Outcome
from msgspec.structs import replace

from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.query import last_event_of
from agtrace.sessions.said import Line, human_words, last_message, open_call, opened, said

_LANDMARKS, _LAST, _SHORT = 6, 320, 160
"""The most landmarks, and the characters of the last message: of a session that is hardly what was wanted, fewer."""

_ABOVE = "(the hit above)"
"""Stands for the text of a last message that is among the hits."""

_TURNS = 3
"""The turn of the best hit, and the next ones."""

_LINES, _LINE = 6, 150
"""So many of their requests, refusals, failures and answers are shown, with so many characters."""

_ELEMENT, _FIRST_PART, _LITTLE = r"<[^<>]*>", 2_000, 12
"""What marks commands and outputs, and how many characters of a text must be more than that."""

_ERROR = 240
"""Characters of a call that failed, with its error."""

_TELLING = ("failed", "error", "passed")
"""What is looked for in what the human ran last: it stands behind the last message of the model."""

_ILL_ENDED, _FAILURES = 20, 2
"""So many calls that didn't end well are looked at; of failures in the turn of the best hit so many, if there is room.
"""


def with_ending(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    """Return a session with the beginning of its last message."""
    return replace(shown, last_message=_last(connection, row, last_event_of(connection, row), shown, _SHORT))


def with_course(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    """Return a session with its landmarks, how it went on after the best hit, and how it ended."""
    last_event, known = last_event_of(connection, row), {hit[0] for hit in shown.hits}
    last, left_open = _last(connection, row, last_event, shown, _LAST), open_call(connection, row, last_event)
    landmarks = telling_landmarks(connection, row.id, last_event, brief=True)
    course = _course(connection, row, shown.hits[0][0], last_event, {*known, last[0] if last else -1})
    told: dict[str, Any] = {
        "landmarks": landmarks.items[-_LANDMARKS:] or None,
        "course": course or None,
        "last_message": last,
        "open_call": left_open,
    }
    return replace(shown, **told)


def _last(
    connection: sqlite3.Connection, row: Session, last_event: int, shown: BestSession, most: int
) -> tuple[int, str] | None:
    """Return the last message of a session, without its text if that is shown already."""
    last = last_message(connection, row, last_event, most)
    return last if last is None or last[0] not in {hit[0] for hit in shown.hits} else (last[0], _ABOVE)


def _course(
    connection: sqlite3.Connection, row: Session, hit: int, last_event: int, known: Collection[int]
) -> list[Line]:
    """What was asked, refused and answered in the turn of a hit and the next ones, what failed in it, the last request.

    What is known already is left out.
    """
    turn = opened(connection, row.id, hit).row.turn_index or 0
    found = turns.page(connection, row.id, from_turn=turn, last_event=last_event, most=_TURNS)
    last = [one for one in _last_turn(connection, row, last_event) if one not in found]
    endings = _endings(connection, row, found) | _endings(connection, row, last)  # there may be much in between
    asked = {one.request_event: endings.get(one.turn_index) for one in (*found, *last) if one.request_event is not None}
    said_last = {endings[one.turn_index].last_message for one in found if one.turn_index in endings}
    ill_ended = {event: kind for event, kind in _ill_ended(connection, row, found, last_event) if event not in known}
    refused = {event for event, kind in ill_ended.items() if kind is Outcome.REJECTED}
    behind = _behind(connection, row, last_event)
    meant = {*asked, *said_last, *refused, behind}
    wanted = sorted({event for event in meant if event is not None and event not in known})
    some = [*wanted[: _LINES - 1], *wanted[_LINES - 1 :][-1:]]
    some += sorted(ill_ended.keys() - refused)[: min(_FAILURES, _LINES - len(some))]
    texts = with_texts(connection, events.several(connection, row.id, some))
    return [
        _line(connection, row.provider, event, ill_ended.get(event.event_index), asked.get(event.event_index))
        for event in texts
        if event.event_index != behind or event.event_index in asked or _says_something(event.text)
    ]


def _endings(
    connection: sqlite3.Connection, row: Session, found: Sequence[turns.Turn]
) -> dict[int | None, turns.Ending]:
    return turns.endings(connection, row.id, found, api_errors=AGENTS[row.provider].notices.api_errors)


def _line(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, ill: Outcome | None, ending: turns.Ending | None
) -> Line:
    words = () if ending or event.type != EventType.USER else _TELLING
    who, text = said(connection, provider, event, words, _ERROR if ill is Outcome.FAILED else _LINE)
    if ill is Outcome.REJECTED:
        return event.event_index, "human", f"refused: {text}"
    return event.event_index, who, f"{text}{_unanswered(ending) if ending else ''}"


def _behind(connection: sqlite3.Connection, row: Session, last_event: int) -> int | None:
    """Return what stands last behind the last message of the model, if the human or a program wrote it."""
    said_last = events.last_of_type(connection, row.id, EventType.MESSAGE, last_event)
    written = events.last_of_type(connection, row.id, EventType.USER, last_event)
    return written if written is not None and written > (-1 if said_last is None else said_last) else None


def _says_something(text: str) -> bool:
    """Whether there is more in a text than elements without contents, or the command that ended the session."""
    return len(re.sub(_ELEMENT, "", text[:_FIRST_PART]).strip()) >= _LITTLE


def _unanswered(ending: turns.Ending) -> str:
    """Say of a request that its turn came to nothing; nothing of one that was answered."""
    if ending.last_message is not None:
        return ""
    return " -> (interrupted)" if ending.stopped else "" if ending.responses else " -> (no answer)"


def _ill_ended(
    connection: sqlite3.Connection, row: Session, found: Sequence[turns.Turn], last_event: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield the calls in some turns that the human refused, saying why, and those that failed in the first one."""
    if not found:
        return
    meant, then = {turn.turn_index for turn in found}, events.Snapshot(last_event, events.NOW.newest_row)
    ended = calls.failures_then(connection, row.id, then, behind=found[0].first_event - 1, most=_ILL_ENDED)
    for one in ended:
        if one.outcome is Outcome.REJECTED and one.turn_index in meant:
            if human_words(opened(connection, row.id, one.shown).text):
                yield one.call_event, Outcome.REJECTED
        elif one.outcome is Outcome.FAILED and one.turn_index == found[0].turn_index:
            yield one.call_event, Outcome.FAILED


def _last_turn(connection: sqlite3.Connection, row: Session, last_event: int) -> list[turns.Turn]:
    last = turns.last(connection, row.id)
    found = [] if last is None else turns.several(connection, row.id, [last])
    return [turn for turn in found if turn.first_event <= last_event]
