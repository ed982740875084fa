"""The events of a session as JSON lines, in the words of `agtrace_schema.events`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, text_reader
from agtrace_schema.events import EventType
from agtrace_schema.patterns import later

from agtrace.report.conversation.cleaning import Cleaner
from agtrace.report.conversation.telling import Part, placed_in
from agtrace.sessions.events import token_usage
from agtrace.text.lines import UNSEEN
from agtrace.times import iso

_UNSEEN = later(f"[{UNSEEN}\u2028\u2029\ud800-\udfff]")


def lines(connection: sqlite3.Connection, session: Session, part: Part, cleaner: Cleaner) -> Iterator[str]:
    """Yield a line for each event of a part of a session, in file order; retracted ones are left out."""
    read = text_reader(connection)
    for placed in placed_in(connection, session, part, answers=True):
        event = read(placed.event)
        row = event.row
        told = {
            "session_id": session.uid,
            "event_index": event.event_index,
            "turn_index": placed.turn_index,
            "step_index": None if placed.turn_index is None else row.step_index,
            "timestamp": iso(row.ts),
            "event_type": str(event.type),
            "payload": _payload(connection, event),
            "outcome": event.outcome and str(event.outcome),
            "duration_ms": row.duration_ms,
            "call_event": row.link if event.type == EventType.TOOL_RESULT else None,
            "result_event": row.link if event.type == EventType.TOOL_CALL else None,
            "copied": True if row.copy_of is not None else None,
        }
        if event.type != EventType.TOKEN_USAGE:
            told["payload"] = cleaner.value(told["payload"])
        told["session_id"] = cleaner.text(session.uid)
        yield _line({name: value for name, value in told.items() if value is not None})


def _payload(connection: sqlite3.Connection, event: StoredEvent) -> dict[str, Any]:
    """Return the payload with the fields of its class, without outcome and duration, which calls have, too."""
    name, rest = event.row.name, event.rest
    match event.type:
        case EventType.TOKEN_USAGE:
            return token_usage(connection, event.row.session_row, event.event_index)
        case EventType.TOOL_CALL:
            return {"name": name, **rest}
        case EventType.TOOL_RESULT:
            return {"text": event.text, **({"tool": name} if name else {}), **rest}
        case EventType.USER | EventType.NOTIFICATION:
            return {"kind": name, "text": event.text, **rest}
        case _:
            return {"text": event.text, **rest}


def _line(value: dict[str, Any]) -> str:
    """Return a value as JSON on a line, with characters that nobody sees, or that command something, escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"
