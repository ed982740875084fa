"""An event as a preview in a search: the text around the match."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent
from agtrace_indexer.redact import redact
from agtrace_schema.answers import EventPreview
from agtrace_schema.events import EventType

from agtrace.sessions.events import name_of, shown_turn, token_usage
from agtrace.sessions.query import short_id
from agtrace.sessions.said import error_of, result_of
from agtrace.text.lines import one_line, without_controls
from agtrace.times import iso

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
    turn, is_call = shown_turn(connection, event.row), event.type == EventType.TOOL_CALL
    return EventPreview(
        session_id=short_id(connection, session.uid),
        event_index=event.event_index,
        timestamp=iso(event.row.ts),
        event_type=event.type,
        turn_index=turn,
        step_index=None if turn is None else event.row.step_index,
        call_event=None if is_call else event.row.link,
        result_event=event.row.link if is_call else None,
        outcome=event.outcome,
        copied=True if event.row.copy_of is not None else None,
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
    """Return the arguments, each shortened; matching ones come first, and are shown around the match."""
    if not isinstance(arguments, dict):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return excerpt(text, query, _ARGUMENTS_WITH_MATCH)
    shown: dict[str, str] = {}
    for key, value in sorted(arguments.items(), key=lambda item: not _holds(item[1], query)):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        room = _ARGUMENTS_WITH_MATCH if query and _holds(value, query) and not shown else _ARGUMENTS
        shown[one_line(key, 50)] = excerpt(text, query, room)
        if len(shown) == _ARGUMENTS_SHOWN or sum(map(len, shown.values())) > PREVIEW:
            break
    return shown


def _holds(value: Any, query: str) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _fold(query) in _fold(text)


def _fold(text: str) -> str:
    """Return a text with A to Z in lower case; `bytes.lower` takes a twentieth of the time of `str.translate`."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
