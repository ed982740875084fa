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

from agtrace.text import failing_lines
from agtrace.text.lines import LABEL, one_line, without_controls

Line = tuple[int, str, str]
"""[event_index, who, text]"""

TEXT = 210
"""Characters of a line."""

LAST = 480
"""Characters of the last message of a session: what it came to is often what was asked for."""

_ERROR = re.compile(
    r"\b(?:errors?|fatal|denied|cannot|can't|could not|not found|no such|unable to)\b(?!=)", re.IGNORECASE
)
"""What a line says that names an error, whatever program wrote it."""

_RESULT = 90
"""Characters of a line of an output that stands with its call."""

_SAID = re.compile(r"(?:the user said|The user provided the following reason for the rejection):\s*(.+)", re.DOTALL)
"""How Claude Code hands on what the human said."""

_LOOKED_AT = 40_000
"""Characters of a text in which the best part is looked for."""


def opened(connection: sqlite3.Connection, session_row: int, event_index: int) -> StoredEvent:
    """Return an event with its text."""
    (event,) = with_texts(connection, [events.one(connection, session_row, event_index)])
    return event


def around(connection: sqlite3.Connection, session: Session, event_index: int, most: int) -> list[Line]:
    """Return a line for each event of a session that is at most so many before or after one.

    A result stands in the line of its call if that is among them; usage of tokens is left out.
    """
    near = events.several(connection, session.id, range(max(event_index - most, 0), event_index + most + 1))
    there = {event.event_index for event in near}
    shown = [
        event
        for event in near
        if event.type != EventType.TOKEN_USAGE and not (event.type == EventType.TOOL_RESULT and event.link in there)
    ]
    return [(event.event_index, *said(connection, session.provider, event)) for event in with_texts(connection, shown)]


def last_message(
    connection: sqlite3.Connection, session: Session, last_event: int, most: int = LAST
) -> tuple[int, str] | None:
    """Return the last message of a model in a session, up to an event, as [event_index, its beginning]."""
    index = events.last_of_type(connection, session.id, EventType.MESSAGE, last_event)
    return None if index is None else (index, _part(opened(connection, session.id, index).text, (), most))


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
        error = _from_error(output)
        output = error if _holds(error, words) or not _holds(output, words) else output
    return f"{asked} -> {failed}{_part(output, words, most - len(asked))}"


def _output(provider: str, result: StoredEvent) -> str:
    """The beginning of an output, without what the agent writes before it; of a refusal, the human's own words."""
    if result.outcome == Outcome.REJECTED and (words := human_words(result.text[:_LOOKED_AT])):
        return words
    header = AGENTS[provider].output_header
    return (result.text if header is None else header.sub("", result.text, count=1))[:_LOOKED_AT]


def error_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return the line of a failed call's output that tells of the failure; None for a call that didn't fail."""
    if call.outcome != Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    return one_line(_from_error(output).partition("\n")[0], LABEL * 2) or None


def result_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return the first and the last line of what a call that didn't fail gave; None if there is nothing."""
    if call.outcome == Outcome.FAILED or call.row.link is None:
        return None
    output = _output(provider, opened(connection, call.row.session_row, call.row.link))
    lines = [line for line in output.splitlines() if line.strip()]
    return " ... ".join(_part(line, (), _RESULT) for line in (*lines[:1], *lines[1:][-1:])) or None


def gist_of(connection: sqlite3.Connection, provider: str, call: StoredEvent) -> str | None:
    """Return what `error_of` or `result_of` says of a call."""
    return error_of(connection, provider, call) or result_of(connection, provider, call)


def telling(provider: str, result: StoredEvent) -> str:
    """Return what a result that isn't good says: the human's own words, or from the line on that tells of a failure."""
    return _from_error(_output(provider, result))


def human_words(refusal: str) -> str | None:
    """Return what the human said when refusing a call, if anything; the rest of such a text is always the same."""
    found = _SAID.search(refusal)
    return found[1] if found else None


def _from_error(output: str) -> str:
    """An output from the first line on that tells of a failure or names an error; all of it where none does."""
    lines = output.splitlines()
    told = enumerate(zip(lines, failing_lines.read(lines), strict=True))
    first = next((number for number, (line, failing) in told if failing or _ERROR.search(line)), 0)
    return "\n".join(lines[first:])


def _holds(text: str, words: Sequence[str]) -> bool:
    return any(True for _ in _found(text, words))


def _part(text: str, words: Sequence[str], most: int) -> str:
    """At most so many characters on one line, where most of the words stand, cut between words."""
    seen = " ".join(without_controls(redact(text[:_LOOKED_AT])).split())
    if len(seen) <= most:
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
