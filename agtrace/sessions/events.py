"""An event in full, as a preview in a search, and what followed it if it failed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from math import ceil
from typing import Any

from agtrace_indexer.events.commands import shell_command
from agtrace_indexer.events.shell import parts
from agtrace_indexer.index.queries import events, files, sessions, turns, usage
from agtrace_indexer.index.queries.events import Event, StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.landmarks.attempts import attempts
from agtrace_indexer.providers.registry import TOOLS
from agtrace_indexer.redact import redact
from agtrace_schema.answers import Aftermath, EventDetails, EventOrigin, EventPlace, EventPreview
from agtrace_schema.events import EventType, Json, Outcome
from agtrace_schema.landmarks import LandmarkKind

from agtrace.sessions.query import find_event, last_event_of, short_id
from agtrace.sessions.quotes import TEXT, asked_by, error_of, gist_of, opened, result_of
from agtrace.sessions.turns import telling_argument
from agtrace.shaping.ladder import flattened
from agtrace.text.lines import one_line, without_controls
from agtrace.text.shell_programs import lints, reads
from agtrace.times import iso

_LOOKED_AT = 400
"""The most later calls of the same tool that are compared: in a long session the next ones matter most."""

_READ_AT_ONCE = 16
_CHANGES_SHOWN = 5
_ALIKE = 0.6
"""The part of the failed call's text that a similar call must begin with."""


def aftermath(connection: sqlite3.Connection, session: Session, event: StoredEvent) -> Aftermath | None:
    """Return what followed a failed call, given it or its result; None if no such call succeeded later.

    Among the next calls of the same tool, an identical one is preferred to one that begins alike. Changes are calls
    that wrote files and did not fail; a command may change something, too.
    """
    if event.outcome is not Outcome.FAILED:
        return None
    call = event if event.type == EventType.TOOL_CALL else None
    if call is None and event.row.link is not None:
        call = find_event(connection, session, event.row.link)
    if call is None or call.row.name is None:
        return None
    failed, found, same = 0, None, False
    passed: list[StoredEvent] = []
    for later in _later(connection, session, call, call.row.name):
        same = later.rest.get("arguments") == call.rest.get("arguments")
        if same and later.outcome is Outcome.OK:
            found = later
            break
        failed += same and later.outcome is Outcome.FAILED
        if found is None and later.outcome is Outcome.OK and _begins_alike(call, later):
            found = later
        passed.append(later)
    else:
        same = False
    if found is None:
        return None
    end = found.event_index
    changes = files.changes(connection, session.id, after=call.event_index, before=end)
    return Aftermath(
        same_call=same,
        succeeded=end,
        result_event=found.row.link,
        failed_again=failed or None,
        command=_changing_command(call, (one for one in reversed(passed) if one.event_index < end)),
        changes=changes[-_CHANGES_SHOWN:] or None,
        last_change=asked_by(opened(connection, session.id, changes[-1]), TEXT) if changes else None,
        total_changes=len(changes) if len(changes) > _CHANGES_SHOWN else None,
    )


def _later(connection: sqlite3.Connection, session: Session, call: StoredEvent, tool: str) -> Iterator[StoredEvent]:
    found = events.later_calls(connection, session.id, tool, behind=call.event_index, most=_LOOKED_AT)
    while some := list(islice(found, _READ_AT_ONCE)):
        yield from with_texts(connection, some)


def _begins_alike(call: StoredEvent, later: StoredEvent) -> bool:
    said = telling_argument(call.rest.get("arguments"))
    again = telling_argument(later.rest.get("arguments"))
    return bool(said) and again.startswith(said[: ceil(len(said) * _ALIKE)])


def _changing_command(failed: StoredEvent, between: Iterable[StoredEvent]) -> int | None:
    """Return the last of these commands that succeeded and did something else than what failed, and than to look."""
    tried = _command(failed)
    for call in between:
        command = _command(call) if call.outcome is Outcome.OK else None
        if command is not None and not _does_the_same(tried, command) and not _only_looks(command):
            return call.event_index
    return None


def _command(call: StoredEvent) -> str | None:
    command = shell_command(call.row.name or "", call.rest.get("arguments"), TOOLS)
    return None if command is None else command.text


def _only_looks(command: str) -> bool:
    """Whether a command reads, lints or tests, and mends nothing."""
    if any(attempt.kind is LandmarkKind.TEST_RUN for attempt in attempts(command)):
        return True
    return all(reads(part) or lints(part) for part in parts(command))


def _does_the_same(tried: str | None, command: str) -> bool:
    """Whether a command runs the programs of another with the same words, whatever it prints of them."""
    return tried is not None and {part.words for part in parts(tried)} >= {
        part.words for part in parts(command) if not reads(part)
    }


_LONGEST_NAME = 100
_ARGUMENT_LEVELS = 5  # of nested objects, within the 8 that an answer may have


def details(connection: sqlite3.Connection, session: Session, event: StoredEvent) -> EventDetails:
    """Return an event with its links, origin and payload, except for the payload's text."""
    row = event.row
    turn = shown_turn(connection, row)
    is_call = event.type == EventType.TOOL_CALL
    last = last_event_of(connection, session)
    return EventDetails(
        session_id=short_id(connection, session.uid),
        event_index=event.event_index,
        timestamp=iso(row.ts),
        event_type=event.type,
        kind=name_of(event) if event.type in (EventType.USER, EventType.NOTIFICATION) else None,
        turn_index=turn,
        step_index=None if turn is None else row.step_index,
        outcome=event.outcome,
        duration_ms=row.duration_ms,
        call_event=None if is_call else row.link,
        result_event=row.link if is_call else None,
        result=gist_of(connection, session.provider, event) if is_call else None,
        previous_event=event.event_index - 1 if event.event_index else None,
        next_event=event.event_index + 1 if event.event_index < last else None,
        superseded=True if row.superseded else None,
        rolled_back=True if row.rolled_back else None,
        copy_of=_copied_from(connection, row.copy_of),
        started_session=_started_session(connection, session, event) if is_call else None,
        later=aftermath(connection, session, event),
        origin=EventOrigin(line=row.line, byte_offset=row.offset, byte_length=row.length),
        payload=_payload(event),
    )


def name_of(event: StoredEvent) -> str | None:
    """Return the name of a tool, or of the kind of a text, at a length that can be shown."""
    name = event.row.name
    return None if name is None else one_line(name, _LONGEST_NAME)


def shown_turn(connection: sqlite3.Connection, row: Event) -> int | None:
    """Return the turn of an event; None if the turn was retracted, since it can't be opened then."""
    return row.turn_index if turns.exists(connection, row.session_row, row.turn_index) else None


def _copied_from(connection: sqlite3.Connection, original: int | None) -> EventPlace | None:
    """Return the event that this one is a copy of; an empty place if its log isn't indexed."""
    if original is None:
        return None
    found = events.address(connection, original)
    if found is None:
        return EventPlace()
    return EventPlace(session_id=short_id(connection, found[0]), event_index=found[1])


def _started_session(connection: sqlite3.Connection, session: Session, event: StoredEvent) -> str | None:
    started = sessions.started_by(connection, session.id, [event.event_index])
    return short_id(connection, started[event.event_index]) if started else None


def canonical_text(event: StoredEvent) -> str:
    """Return the text that an event's chunks add up to: a call's arguments as indented JSON, otherwise its body."""
    if event.type == EventType.TOOL_CALL:
        return json.dumps(event.rest.get("arguments"), ensure_ascii=False, indent=2)
    return event.text


def text_key(event: StoredEvent) -> str:
    """Return the key of the canonical text in the payload."""
    return {EventType.TOOL_CALL: "arguments_json", EventType.TOOL_RESULT: "content"}.get(event.type, "text")


def whole(event: StoredEvent) -> dict[str, Json]:
    """Return the payload fields that replace the complete text: a call's arguments as an object, figures as such."""
    if event.type == EventType.TOOL_CALL:
        return {"arguments": flattened(event.rest.get("arguments"), _ARGUMENT_LEVELS)}
    return {"complete": event.rest["complete"]} if event.type == EventType.TOKEN_USAGE else {}


def _payload(event: StoredEvent) -> dict[str, Json]:
    rest = {key: value for key, value in event.rest.items() if key != "arguments"}
    match event.type:
        case EventType.TOOL_CALL:
            return {"name": event.row.name, **rest}
        case EventType.TOOL_RESULT:
            return {"tool": event.row.name, **rest} if event.row.name else rest
        case _:
            return rest


def token_usage(connection: sqlite3.Connection, session_row: int, event_index: int) -> dict[str, Any]:
    """Return the known figures of a TokenUsage event."""
    (told,) = usage.figures(connection, session_row, [event_index])
    known = {
        "model": told.model, "response_id": told.response_id, **told.tokens._asdict(),
        "complete": bool(told.complete), "context_window": told.context_window,
    }  # fmt: skip
    return {name: figure for name, figure in known.items() if figure is not None}


def reference(connection: sqlite3.Connection, session: Session, event_index: int) -> str:
    """Return the `ax://` reference to an event."""
    return f"ax://event/{short_id(connection, session.uid)}/{event_index}"


PREVIEW = 300
"""The most characters of text in a preview."""

_ARGUMENTS = 100
_ARGUMENTS_WITH_MATCH = 200
_PREVIEW_BYTES = 600
_BEFORE_MATCH = 80
_MARGIN = 4096  # characters around a match to redact before it is cut; no secret is longer
_ARGUMENTS_SHOWN = 6


def preview(connection: sqlite3.Connection, session: Session, event: StoredEvent, query: str) -> EventPreview:
    """Return a preview of an event around the first match of the query."""
    is_call = event.type == EventType.TOOL_CALL
    return EventPreview(
        session_id=short_id(connection, session.uid),
        event_index=event.event_index,
        timestamp=iso(event.row.ts),
        event_type=event.type,
        call_event=None if is_call else event.row.link,
        result_event=event.row.link if is_call else None,
        outcome=None if event.outcome is Outcome.OK else event.outcome,
        copied=True if event.row.copy_of is not None else None,
        rolled_back=True if event.row.rolled_back else None,
        error=error_of(connection, session.provider, event) if is_call else None,
        result=result_of(connection, session.provider, event) if is_call else None,
        preview=_preview(connection, event, query),
    )


def excerpt(text: str, query: str, most: int) -> str:
    """Cut a text to about `most` characters around the first match, with `...` where it was cut.

    The match ignores the case of A to Z, as search does; without a match, the beginning is shown.
    """
    found = max(_fold(text).find(_fold(query)), 0) if query else 0
    low, high = max(found - _MARGIN, 0), found + len(query) + most + _MARGIN
    seen = redact(text[low:high])  # before it is cut further: half a secret wouldn't be recognized
    position = max(_fold(seen).find(_fold(query)), 0) if query else 0
    start = max(0, position - _BEFORE_MATCH) if low or position + len(query) > most - 3 else 0
    end = min(start + most, len(seen))
    while len(seen[start:end].encode("utf-8", "replace")) > _PREVIEW_BYTES:
        end = start + (end - start) * 9 // 10
    left, right = low or start, end < len(seen) or high < len(text)
    return f"{'...' if left else ''}{without_controls(seen[start:end])}{'...' if right else ''}"


def _preview(connection: sqlite3.Connection, event: StoredEvent, query: str) -> dict[str, Any]:
    match event.type:
        case EventType.TOOL_CALL:
            return {"tool": name_of(event), "arguments": _arguments(event.rest.get("arguments"), query)}
        case EventType.TOOL_RESULT:
            return {"tool": name_of(event), "preview": excerpt(event.text, query, PREVIEW)}
        case EventType.TOKEN_USAGE:
            told = token_usage(connection, event.row.session_row, event.event_index)
            return {"input": told.get("input_tokens"), "output": told.get("output_tokens")}
        case EventType.USER | EventType.NOTIFICATION:
            return {"kind": name_of(event), "text": excerpt(event.text, query, PREVIEW)}
        case _:
            return {"text": excerpt(event.text, query, PREVIEW)}


def _arguments(arguments: Any, query: str) -> Any:
    """Return the arguments, each shortened: those that match, around that, and one more; if none does, the first."""
    if not isinstance(arguments, dict):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return excerpt(text, query, _ARGUMENTS_WITH_MATCH)
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in arguments.items()
    }
    matching = [key for key, text in texts.items() if _fold(query) in _fold(text)]
    others = [key for key in texts if key not in matching][: 1 if matching else None]
    result: dict[str, str] = {}
    for key in [*matching, *others][:_ARGUMENTS_SHOWN]:
        room = _ARGUMENTS_WITH_MATCH if query and matching and not result else _ARGUMENTS
        result[one_line(key, 50)] = excerpt(texts[key], query, room)
        if sum(map(len, result.values())) > PREVIEW:
            break
    return result


def _fold(text: str) -> str:
    """Return a text with A to Z in lower case; `bytes.lower` takes a twentieth of the time of `str.translate`."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
