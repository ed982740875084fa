"""A single event in full: its links, its origin and its text."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from agtrace_indexer.index.questions import events, sessions, turns, usage
from agtrace_indexer.index.questions.events import Event
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent
from agtrace_schema.answers import EventDetails, EventOrigin, EventPlace
from agtrace_schema.events import EventType, Json

from agtrace.sessions.aftermath import aftermath
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.said import gist_of
from agtrace.shaping.json_values import flattened
from agtrace.text.lines import one_line, shown_path
from agtrace.times import iso

_LONGEST_NAME = 100
_ARGUMENT_LEVELS = 5  # of nested objects, within the 8 that an answer may have


def details(connection: sqlite3.Connection, session: Session, event: StoredEvent) -> EventDetails:
    """Return an event with its links, origin and payload, except for the payload's text."""
    row = event.row
    turn = shown_turn(connection, row)
    is_call = event.type == EventType.TOOL_CALL
    last = last_event_of(connection, session)
    return EventDetails(
        session_id=session.uid,
        event_index=event.event_index,
        timestamp=iso(row.ts),
        event_type=event.type,
        kind=kind_of(event),
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
        copy_of=_copied_from(connection, row.copy_of),
        started_session=_started_session(connection, session, event) if is_call else None,
        later=aftermath(connection, session, event),
        origin=EventOrigin(
            file=shown_path(session.path.partition("#replaced-")[0]),
            line=row.line,
            byte_offset=row.offset,
            byte_length=row.length,
        ),
        payload=_payload(event),
    )


def kind_of(event: StoredEvent) -> str | None:
    """Return the kind of a user text or notification, which may be any word in the log; None for other events."""
    return name_of(event) if event.type in (EventType.USER, EventType.NOTIFICATION) else None


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
    return EventPlace(session_id=short_id(connection, found.uid), event_index=found.event_index)


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
    """Return the payload without its text."""
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
