"""What an event says, on one line: who speaks, and a part of the text; a call and its result are one line."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from agtrace_indexer.index.questions import events
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later

from agtrace.text.excerpts import LONGEST, LOOKED_AT, excerpt, stems_in
from agtrace.text.lines import LABEL, one_line
from agtrace.text.signatures import from_telling_line, telling_failure

Line = tuple[int, str, str]
"""[event_index, who, text]"""

TEXT = 210
"""Characters of a line."""

LAST = 480
"""Characters of the last message of a session: what it came to is often what was asked for."""

_EXECUTION = 385
"""Characters of a call with its output in a line: each of the two may be a little longer than its part."""

_OPENED = 2_000
"""Characters of the event around which others are listed."""

_WHY = 160
"""Characters of the error of a call."""

_NOTE = 60
"""Characters of what the agent notes for itself: hooks, attachments, settings."""

_RESULT = 90
"""Characters of a line of an output that stands with its call."""

UNANSWERED = " -> (the log ends here, without a result)"
"""Stands behind the call on which a log ends."""

_SPEAKING = (EventType.USER, EventType.MESSAGE)

_SAID = later(r"(?:the user said|The user provided the following reason for the rejection):\s*(.+)", re.DOTALL)
"""How Claude Code hands on what the human said."""


def opened(connection: sqlite3.Connection, session_row: int, event_index: int) -> StoredEvent:
    """Return an event with its text."""
    (event,) = with_texts(connection, [events.one(connection, session_row, event_index)])
    return event


def around(connection: sqlite3.Connection, session: Session, event_index: int, most: int) -> list[Line]:
    """Return a line for each event of a session that is at most so many before or after one, which has more room.

    A result stands in the line of its call if that is among them; usage of tokens and what has no text are left out.
    """
    near = events.several(connection, session.id, range(max(event_index - most, 0), event_index + most + 1))
    there = {event.event_index for event in near}
    shown = [
        event
        for event in near
        if event.type != EventType.TOKEN_USAGE and not (event.type == EventType.TOOL_RESULT and event.link in there)
    ]
    lines = [
        (event.event_index, *said(connection, session.provider, event, (), _most(event, event_index)))
        for event in with_texts(connection, shown)
    ]
    return [line for line in lines if line[2] or line[0] == event_index]


def _most(event: StoredEvent, asked: int) -> int:
    """Return the most characters of the line of an event: of the one that was asked for, or of another near it."""
    if asked in (event.event_index, event.row.link if event.type == EventType.TOOL_CALL else None):
        return _OPENED
    return _NOTE if event.type == EventType.NOTIFICATION else TEXT


def last_message(
    connection: sqlite3.Connection, session: Session, last_event: int, most: int = LAST
) -> tuple[int, str] | None:
    """Return the last message of a model in a session, up to an event, as [event_index, its beginning]."""
    index = events.last_of_type(connection, session.id, EventType.MESSAGE, last_event)
    return None if index is None else (index, excerpt(opened(connection, session.id, index).text, (), most))


def open_call(connection: sqlite3.Connection, session: Session, last_event: int) -> Line | None:
    """Return the call on which a log ends, up to an event: nothing says what came of it. None if it ends otherwise."""
    if not AGENTS[session.provider].logs_results:
        return None
    index = events.last_of_type(connection, session.id, EventType.TOOL_CALL, last_event)
    if index is None or index < (events.last_of_type(connection, session.id, EventType.TOOL_RESULT, last_event) or 0):
        return None
    call = opened(connection, session.id, index)
    if call.row.link is not None or call.outcome not in (None, Outcome.UNKNOWN, Outcome.RUNNING):
        return None
    later = max(events.last_of_type(connection, session.id, kind, last_event) or 0 for kind in _SPEAKING)
    if later > index:
        return None
    who, text = said(connection, session.provider, call, (), _WHY)
    return index, who, f"{text}{UNANSWERED}"


def beginnings(connection: sqlite3.Connection, session: Session, indexes: Iterable[int], most: int) -> dict[int, str]:
    """Return the beginnings of the texts of these events of a session, with at most so many characters, by index."""
    found = with_texts(connection, events.several(connection, session.id, indexes))
    return {event.event_index: excerpt(event.text, (), most) for event in found}


def said(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str] = (), most: int = TEXT
) -> tuple[str, str]:
    """Return who speaks in an event, and the part of its text with the most of these words; else its beginning.

    The part has at most so many characters. An output follows its call.
    """
    match event.type:
        case EventType.USER:
            return one_line(event.row.name or "human", LABEL), excerpt(event.text, words, most)
        case EventType.MESSAGE:
            return "message", excerpt(event.text, words, most)
        case EventType.REASONING:
            return "thought", excerpt(event.text, words, most)
        case EventType.TOOL_CALL | EventType.TOOL_RESULT:
            return one_line(event.row.name or "tool", LABEL), _execution(connection, provider, event, words, most)
        case _:
            return one_line(event.row.name or "notification", LABEL), excerpt(event.text, words, most)


def _execution(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str], most: int
) -> str:
    """A call, an arrow, and its output: where it has the words, or else the error, or else its beginning."""
    most = min(most, _EXECUTION) if most <= LONGEST else most
    other = None if event.row.link is None else opened(connection, event.row.session_row, event.row.link)
    call, result = (event, other) if event.type == EventType.TOOL_CALL else (other, event)
    asked = "" if call is None else excerpt(call.text.partition("\n")[2], words, most * 3 // 7 if result else most)
    if result is None:
        return asked
    failed = "failed: " if result.outcome == Outcome.FAILED else ""
    output = _output(provider, result)
    if failed:
        error = from_telling_line(output)
        output = error if _holds(error, words) or not _holds(output, words) else output
    return f"{asked} -> {failed}{excerpt(output, words, most - len(asked))}"


def _output(provider: str, result: StoredEvent) -> str:
    """The beginning of an output, without what the agent writes before it; of a refusal, the human's own words."""
    if result.outcome == Outcome.REJECTED and (words := human_words(result.text[:LOOKED_AT])):
        return words
    header = AGENTS[provider].output_header
    return (result.text if header is None else header.sub("", result.text))[:LOOKED_AT]


def error_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return the line of a failed call's output that tells why, with the test that failed; None if the call didn't."""
    if call.outcome != Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    return excerpt(telling_failure(output), (), _WHY) or None


def result_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return what a call that didn't fail gave, its first and last line if it is long, or why the human refused it."""
    if call.outcome == Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    if call.outcome == Outcome.REJECTED:
        return excerpt(output, (), LAST) or None
    if len(output) <= TEXT:
        return excerpt(output, (), TEXT) or None
    lines = [line for line in output.splitlines() if line.strip()]
    return " ... ".join(excerpt(line, (), _RESULT) for line in (*lines[:1], *lines[1:][-1:])) or None


def gist_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return what `error_of` or `result_of` says of a call."""
    return error_of(connection, provider, call) or result_of(connection, provider, call)


def telling(provider: str, result: StoredEvent) -> str:
    """Return what a result that isn't good says: the human's own words, or from the line on that tells of a failure."""
    return from_telling_line(_output(provider, result))


def human_words(refusal: str) -> str | None:
    """Return what the human said when refusing a call, if anything; the rest of such a text is always the same."""
    found = _SAID.search(refusal)
    return found[1] if found else None


def _holds(text: str, words: Sequence[str]) -> bool:
    return any(True for _ in stems_in(text, words))
