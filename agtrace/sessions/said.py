"""What an event says, on one line: who speaks, and a part of the text; a call and its result are one line."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from agtrace_indexer.index.questions import events
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later

from agtrace.text.lines import LABEL, one_line, without_controls
from agtrace.text.signatures import from_telling_line, telling_failure

Line = tuple[int, str, str]
"""[event_index, who, text]"""

TEXT = 210
"""Characters of a line."""

LAST = 480
"""Characters of the last message of a session: what it came to is often what was asked for."""

_WHY = 160
"""Characters of the error of a call."""

_LONGEST = 500
"""The most characters of a text in an answer that wasn't asked for as such (R-008)."""

_NOTE = 60
"""Characters of what the agent notes for itself: hooks, attachments, settings."""

_LITTLE = 1.25
"""A text that is longer only by so much is shown whole: what is cut off is often the point."""

_RESULT = 90
"""Characters of a line of an output that stands with its call."""

_SPEAKING = (EventType.USER, EventType.MESSAGE)

_SAID = later(r"(?:the user said|The user provided the following reason for the rejection):\s*(.+)", re.DOTALL)
"""How Claude Code hands on what the human said."""

_LOOKED_AT = 40_000
"""Characters of a text in which the best part is looked for."""


def opened(connection: sqlite3.Connection, session_row: int, event_index: int) -> StoredEvent:
    """Return an event with its text."""
    (event,) = with_texts(connection, [events.one(connection, session_row, event_index)])
    return event


def around(connection: sqlite3.Connection, session: Session, event_index: int, most: int) -> list[Line]:
    """Return a line for each event of a session that is at most so many before or after one.

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
        (event.event_index, *said(connection, session.provider, event, (), _most(event)))
        for event in with_texts(connection, shown)
    ]
    return [line for line in lines if line[2] or line[0] == event_index]


def _most(event: StoredEvent) -> int:
    return _NOTE if event.type == EventType.NOTIFICATION else TEXT


def last_message(
    connection: sqlite3.Connection, session: Session, last_event: int, most: int = LAST
) -> tuple[int, str] | None:
    """Return the last message of a model in a session, up to an event, as [event_index, its beginning]."""
    index = events.last_of_type(connection, session.id, EventType.MESSAGE, last_event)
    return None if index is None else (index, _part(opened(connection, session.id, index).text, (), most))


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
    return None if later > index else (index, *said(connection, session.provider, call, (), _WHY))


def beginnings(connection: sqlite3.Connection, session: Session, indexes: Iterable[int], most: int) -> dict[int, str]:
    """Return the beginnings of the texts of these events of a session, with at most so many characters, by index."""
    found = with_texts(connection, events.several(connection, session.id, indexes))
    return {event.event_index: _part(event.text, (), most) for event in found}


def said(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str] = (), most: int = TEXT
) -> tuple[str, str]:
    """Return who speaks in an event, and the part of its text with the most of these words; else its beginning.

    The part has at most so many characters. An output follows its call.
    """
    match event.type:
        case EventType.USER:
            return one_line(event.row.name or "human", LABEL), _part(event.text, words, most)
        case EventType.MESSAGE:
            return "message", _part(event.text, words, most)
        case EventType.REASONING:
            return "thought", _part(event.text, words, most)
        case EventType.TOOL_CALL | EventType.TOOL_RESULT:
            return one_line(event.row.name or "tool", LABEL), _execution(connection, provider, event, words, most)
        case _:
            return one_line(event.row.name or "notification", LABEL), _part(event.text, words, most)


def _execution(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str], most: int
) -> str:
    """A call, an arrow, and its output: where it has the words, or else the error, or else its beginning."""
    other = None if event.row.link is None else opened(connection, event.row.session_row, event.row.link)
    call, result = (event, other) if event.type == EventType.TOOL_CALL else (other, event)
    asked = "" if call is None else _part(call.text.partition("\n")[2], words, most * 3 // 7 if result else most)
    if result is None:
        return asked
    failed = "failed: " if result.outcome == Outcome.FAILED else ""
    output = _output(provider, result)
    if failed:
        error = from_telling_line(output)
        output = error if _holds(error, words) or not _holds(output, words) else output
    return f"{asked} -> {failed}{_part(output, words, most - len(asked))}"


def _output(provider: str, result: StoredEvent) -> str:
    """The beginning of an output, without what the agent writes before it; of a refusal, the human's own words."""
    if result.outcome == Outcome.REJECTED and (words := human_words(result.text[:_LOOKED_AT])):
        return words
    header = AGENTS[provider].output_header
    return (result.text if header is None else header.sub("", result.text, count=1))[:_LOOKED_AT]


def error_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return the line of a failed call's output that tells why, with the test that failed; None if the call didn't."""
    if call.outcome != Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    return _part(telling_failure(output), (), _WHY) or None


def result_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return what a call that didn't fail gave, its first and last line if it is long, or why the human refused it."""
    if call.outcome == Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    if call.outcome == Outcome.REJECTED:
        return _part(output, (), LAST) or None
    if len(output) <= TEXT:
        return _part(output, (), TEXT) or None
    lines = [line for line in output.splitlines() if line.strip()]
    return " ... ".join(_part(line, (), _RESULT) for line in (*lines[:1], *lines[1:][-1:])) or None


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
    return any(True for _ in _found(text, words))


def _part(text: str, words: Sequence[str], most: int) -> str:
    """At most so many characters on one line, where most of the words stand, cut between words."""
    seen = " ".join(without_controls(redact(text[:_LOOKED_AT])).split())
    if len(seen) <= min(most * _LITTLE, _LONGEST):
        return seen
    start = max(_best_place(seen, words, most) - most // 5, 0)
    start = 0 if start == 0 else seen.find(" ", start) + 1
    end = seen.rfind(" ", start, start + most)
    end = start + most if end <= start + most // 2 else end
    return f"{'...' if start else ''}{seen[start:end]}{'...' if end < len(seen) else ''}"


def _best_place(text: str, words: Sequence[str], most: int) -> int:
    """Where a part of this length begins that holds the most different words; 0 where none stands."""
    within: deque[tuple[int, str]] = deque()
    held = Counter[str]()
    best, place = 0, 0
    for match in _found(text, words):  # `within` is what the part that ends here can hold
        within.append((match.start(), match[0].casefold()))
        held[within[-1][1]] += 1
        while within[0][0] <= match.start() - most * 4 // 5:
            _, gone = within.popleft()
            held[gone] -= 1
            if not held[gone]:
                del held[gone]
        if len(held) > best:
            best, place = len(held), within[0][0]
    return place


def _found(text: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """Where the stems of words stand in a text."""
    stems = "|".join(re.escape(word[: max(len(word) - 2, 3)]) for word in words)
    return re.finditer(stems, text, re.IGNORECASE) if stems else iter(())
