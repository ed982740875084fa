"""What an event says, on one line: who speaks, and the telling part of the text, redacted before it is cut."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from agtrace_indexer.index.queries import events
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS, TOOLS
from agtrace_indexer.redact import redact, redact_json
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later

from agtrace.settings.limits import limits
from agtrace.shaping.ladder import flattened, shortened
from agtrace.text.lines import LABEL, cut, end_of_path, one_line, without_controls
from agtrace.text.signatures import from_telling_line, telling_failure

LOOKED_AT = 40_000
"""Characters of a text in which the best part is looked for."""

LONGEST = 500
"""The most characters of a text in an answer that wasn't asked for as such (R-008)."""

_LITTLE = 1.25
"""A text that is longer only by so much is shown whole: what is cut off is often the point."""

_TWO = 400
"""From so many characters on there is room for a second part, with words that the first one lacks."""

_FIRST_OF_TWO = 0.6
_RARE = 8
"""A word that a text has at most so often is worth a second part."""

_SHORT, _EXCERPTS_SHORTEST = 5, 3
"""The length of a word up to which its stem lacks one letter instead of two, and the least length of a stem."""

_BEFORE, _ALIGNED = 0.2, 60
"""The share of a part that stands before its first word, and how many characters more may be, for a whole sentence."""

_ENDING = 0.85
"""A part ends with a sentence that ends behind this share of it."""

_SENTENCE = later(r"[.!?:;]['\"`*)]{0,3} |- (?=[A-Z*`\"])")
"""Where a sentence or a part of it begins."""

_END = later(r"[.!?]['\"`*)]{0,3} ")
"""Where a sentence ends."""


class _Place(NamedTuple):
    start: int
    """Where the first of its words stands."""
    words: frozenset[str]


def excerpt(text: str, words: Sequence[str], most: int) -> str:
    """Return at most so many characters of a text on one line, where most of the words stand; else its beginning.

    If there is much room and a rare word stands elsewhere, the line has two parts. Secrets are masked before cutting.
    """
    result = " ".join(without_controls(redact(text[:LOOKED_AT])).split())
    if len(result) <= max(min(most * _LITTLE, LONGEST), most):
        return result
    found = list(stems_in(result, words))
    parts = _two(found, most) if most >= _TWO else []
    return _excerpt(result, [_bounds(result, *part) for part in parts or [(_best_place(found, most).start, most)]])


def stems_in(text: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield where words of a text, or parts of a name such as `readFile`, begin with the stems of these."""
    lengths = ((word, max(len(word) - (2 if len(word) > _SHORT else 1), _EXCERPTS_SHORTEST)) for word in words if word)
    stems = "|".join(re.escape(word[:length]) for word, length in lengths)
    found = re.finditer(stems, text, re.IGNORECASE) if stems else iter(())
    return (match for match in found if _begins(text, match.start()))


def _begins(text: str, at: int) -> bool:
    """Whether a word or a part of a name begins at a place; it does anywhere in scripts that don't divide words."""
    before, first = text[at - 1 : at], text[at]
    return not (before.isalnum() and first.isascii()) or (first.isupper() and not before.isupper())


def _best_place(matches: Sequence[re.Match[str]], most: int) -> _Place:
    """Where a part of this length begins that holds the most different words; 0 where none stands."""
    within: deque[tuple[int, str]] = deque()
    held = Counter[str]()
    best = _Place(0, frozenset())
    for match in matches:  # `within` is what the part that ends here can hold
        within.append((match.start(), match[0].casefold()))
        held[within[-1][1]] += 1
        while within[0][0] <= match.start() - most * 4 // 5:
            _, gone = within.popleft()
            held[gone] -= 1
            if not held[gone]:
                del held[gone]
        if len(held) > len(best.words):
            best = _Place(within[0][0], frozenset(held))
    return best


def _two(matches: Sequence[re.Match[str]], most: int) -> list[tuple[int, int]]:
    """Where two parts begin, and how long they are, the second one with words that the first one lacks.

    Empty if there are no such words, or if they stand so near that one part holds them, too.
    """
    length = round(most * _FIRST_OF_TWO)
    best = _best_place(matches, length)
    often = Counter(match[0].casefold() for match in matches)
    lacked = [
        match for match in matches if match[0].casefold() not in best.words and often[match[0].casefold()] <= _RARE
    ]
    if not lacked:
        return []
    second = _best_place(lacked, most - length)
    if abs(second.start - best.start) < most * (1 - _BEFORE):
        return []
    return sorted([(best.start, length), (second.start, most - length)])


def _bounds(text: str, place: int, most: int) -> tuple[int, int]:
    """Return where a part begins and ends: with sentences if these do so nearby, else between words."""
    start = max(place - round(most * _BEFORE), 0)
    ends = [match.end() for match in _SENTENCE.finditer(text, max(start - _ALIGNED, 0), place)]
    if start:
        start = ends[-1] if ends else text.find(" ", start) + 1
    last = min(start + most, len(text))
    if last == len(text):
        return start, last
    whole = [match.end() - 1 for match in _END.finditer(text, start + round(most * _ENDING), last)]
    between = text.rfind(" ", start + most // 2, last)
    return start, whole[-1] if whole else between if between > 0 else last


def _excerpt(text: str, parts: Sequence[tuple[int, int]]) -> str:
    """Put parts of a text, in their order, on a line that shows where something is left out."""
    line, reached = "", 0
    for start, end in parts:
        start = max(start, reached)
        if start >= end:
            continue
        line += ("..." if start > reached else "") + (" " if line and start > reached else "") + text[start:end]
        reached = end
    return line + ("..." if reached < len(text) else "")


_LOOKED_AT = 8_000  # characters of a text, far beyond the cut: half a secret isn't recognized
_SHORTEST = 20  # characters of an argument


def start_of(text: str) -> str:
    """Return the beginning of a text, longer than any preview, without control characters and secrets."""
    return redact(_readable(text))


def beginning(text: str, key: str = "text") -> dict[str, Any]:
    """Return the first characters of a text as `key`, and its full length as `chars` if it was cut."""
    start = start_of(text)
    shown = cut(start, limits().settings.limits.max_string_length)
    return {key: shown, "chars": len(text) if shown != start or len(text) > _LOOKED_AT else None}


class Quotes:
    """Quotes of the texts of events: their beginnings."""

    def quote(self, event_index: int, text: str, key: str = "text") -> dict[str, Any]:
        """Return what is shown of the text of an event, as `beginning` does."""
        return beginning(text, key)


def arguments_quote(arguments: Any) -> tuple[Any, int | None]:
    """Return a call's arguments with long values cut, and their full length as JSON if anything was."""
    longest = limits().settings.limits.max_string_length
    masked = flattened(redact_json(_readable(arguments)), limits().settings.limits.max_json_depth)
    if _size(masked) <= longest:
        return masked, None
    for most in range(longest, _SHORTEST, -_SHORTEST):
        short, _ = shortened(masked, most)
        if _size(short) <= longest:
            return short, _size(arguments)
    return cut(_json(short), longest), _size(arguments)


def _readable(value: Any) -> Any:
    """Return a JSON value without control characters, its texts cut far beyond what is shown."""
    if isinstance(value, str):
        return without_controls(value[:_LOOKED_AT])
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> int:
    return len(_json(value))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


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

_TELLING = (TOOLS.paths, TOOLS.added, TOOLS.removed, TOOLS.commands)

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


def around(
    connection: sqlite3.Connection, session: Session, event_index: int, most: int, last_event: int
) -> list[Line]:
    """Return a line for each event of a session near one, which has more room: at most so many before and after it.

    A result stands in the line of its call if that is among them; usage of tokens and what has no text are left out.
    """
    span = 2 * most
    while True:
        near = events.several(connection, session.id, range(max(event_index - span, 0), event_index + span + 1))
        there = {event.event_index for event in near}
        shown = [
            event
            for event in near
            if event.type != EventType.TOKEN_USAGE and not (event.type == EventType.TOOL_RESULT and event.link in there)
        ]
        lines = [
            (event.event_index, *quote(connection, session.provider, event, (), _most(event, event_index)))
            for event in with_texts(connection, shown)
        ]
        lines = [line for line in lines if line[2] or line[0] == event_index]
        (asked,) = (event for event in near if event.event_index == event_index)
        middle = asked.link if asked.type == EventType.TOOL_RESULT and asked.link in there else event_index
        before, after = ([line for line in lines if line[0] < middle], [line for line in lines if line[0] > middle])
        if (len(before) >= most or span >= event_index) and (len(after) >= most or event_index + span >= last_event):
            return [*before[-most:], *(line for line in lines if line[0] == middle), *after[:most]]
        span *= 2


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
    who, text = quote(connection, session.provider, call, (), _WHY)
    return index, who, f"{text}{UNANSWERED}"


def beginnings(connection: sqlite3.Connection, session: Session, indexes: Iterable[int], most: int) -> dict[int, str]:
    """Return the beginnings of the texts of these events of a session, with at most so many characters, by index."""
    found = with_texts(connection, events.several(connection, session.id, indexes))
    return {event.event_index: excerpt(event.text, (), most) for event in found}


_NAMELESS = {
    EventType.USER: "human",
    EventType.MESSAGE: "message",
    EventType.REASONING: "thought",
    EventType.TOOL_CALL: "tool",
    EventType.TOOL_RESULT: "tool",
}


def quote(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str] = (), most: int = TEXT
) -> tuple[str, str]:
    """Return who speaks in an event, and the part of its text with the most of these words; else its beginning.

    The part has at most so many characters. An output follows its call.
    """
    is_execution = event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT)
    who = event.row.name if event.type not in (EventType.MESSAGE, EventType.REASONING) else None
    text = _execution(connection, provider, event, words, most) if is_execution else excerpt(event.text, words, most)
    mark = " (rolled back)" if event.row.rolled_back else ""
    return one_line(who or _NAMELESS.get(event.type, "notification"), LABEL) + mark, text


def execution(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str], most: int
) -> tuple[str, bool, str | None]:
    """Return a call, whether it failed, and its output: where it has the words, else the error, else its beginning."""
    most = min(most, _EXECUTION) if most <= LONGEST else most
    other = None if event.row.link is None else opened(connection, event.row.session_row, event.row.link)
    call, result = (event, other) if event.type == EventType.TOOL_CALL else (other, event)
    asked = "" if call is None else asked_by(call, most * 3 // 7 if result else most, words)
    if result is None:
        return asked, False, None
    failed, output = result.outcome == Outcome.FAILED, _output(provider, result)
    if failed:
        error = from_telling_line(output)
        output = error if _holds(error, words) or not _holds(output, words) else output
    return asked, failed, excerpt(output, words, most - len(asked))


def asked_by(call: StoredEvent, most: int, words: Sequence[str] = ()) -> str:
    """Return what a call asks, as `excerpt` does: a command, an edit's changes; all if only that has the words."""
    arguments, whole = call.rest.get("arguments"), call.text.partition("\n")[2]
    named = arguments.items() if isinstance(arguments, dict) else ()
    given = {name: text for name, text in named if isinstance(text, str) and text}
    path, added, removed, telling = (next((given[name] for name in names if name in given), "") for names in _TELLING)
    if added:
        ways = (("+", new := added.splitlines(), old := removed.splitlines()), ("-", old, new))
        signed = (f"{sign} {line.strip()}" for sign, lines, others in ways for line in lines if line not in others)
        telling = " ".join([end_of_path(path, LABEL), *signed])
    is_enough = telling and (_holds(telling, words) or not _holds(whole, words))
    return excerpt(telling if is_enough else whole, words, most)


def _execution(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str], most: int
) -> str:
    asked, failed, output = execution(connection, provider, event, words, most)
    return asked if output is None else f"{asked} -> {'failed: ' if failed else ''}{output}"


def line_of(match: Mapping[str, Any]) -> tuple[int, str, str]:
    """Return a dumped match as [event_index, who, text], a call and its result as one."""
    preview = match["preview"]
    who = preview.get("tool") or preview.get("kind") or _NAMELESS.get(match["event_type"], "notification")
    who += " (rolled back)" if match.get("rolled_back") else ""
    failed = "failed: " if match.get("outcome") == Outcome.FAILED else ""
    output = match.get("error") or match.get("result") or preview.get("preview")
    said = preview.get("arguments", preview.get("text", ""))
    if isinstance(said, dict):
        said = " ".join(f"{name}: {value}" for name, value in said.items())
    return match["event_index"], who, f"{said} -> {failed}{output}" if output else str(said)


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


def failure_text(provider: str, result: StoredEvent) -> str:
    """Return what a result that isn't good says: the human's own words, or from the line on that tells of a failure."""
    return from_telling_line(_output(provider, result))


def human_words(refusal: str) -> str | None:
    """Return what the human said when refusing a call, if anything; the rest of such a text is always the same."""
    match = _SAID.search(refusal)
    return match[1] if match else None


def _holds(text: str, words: Sequence[str]) -> bool:
    return any(True for _ in stems_in(text, words))
