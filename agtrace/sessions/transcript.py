"""The canonical text of a session: for every event, in file order, a heading and its text, verbatim.

The only change is a backslash before lines of a log that look like such a heading, so that no text can pass for an
event.

Events that the log retracted are left out. A session can be larger than memory, so the text is never made as a
whole: it is read forward from some event.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator

from agtrace_indexer.index.questions import events as stored_events
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, text_reader
from agtrace_schema.events import EventType
from agtrace_schema.patterns import later

from agtrace.sessions import events
from agtrace.shaping.replies import Entry
from agtrace.text.lines import LABEL, UNSEEN, named
from agtrace.times import iso

_HEADING = "## event "
_LIKE_A_HEADING = later(f"(?:^|(?<=[\r\u2028\u2029]))(?=[ \x00-\x09\x0b-\x1f{UNSEEN}]*{_HEADING})", re.M)


def entries(
    connection: sqlite3.Connection, session: Session, from_event: int, last_event: int, turn_index: int | None
) -> Iterator[Entry]:
    """Yield the events from one on, up to the snapshot's last event, or those of a turn.

    Each is read only when needed: an event can be as large as the longest line.
    """
    then, read = stored_events.snapshot(connection, session.id, last_event), text_reader(connection)
    for placed in stored_events.of_session(connection, session.id, then, from_event=from_event, turn_index=turn_index):
        event = read(placed.event)
        text = body(connection, event)
        if _HEADING in text:
            text = _LIKE_A_HEADING.sub(r"\\", text)
        yield Entry(event.event_index, heading(event, placed.turn_index), text, event.type == EventType.TOOL_RESULT)


def turn_span(connection: sqlite3.Connection, session: Session, turn_index: int, last_event: int) -> tuple[int, int]:
    """Return the first and the last event of a turn in the snapshot; (0, -1) if it has none there."""
    then = stored_events.snapshot(connection, session.id, last_event)
    found = stored_events.of_session(connection, session.id, then, from_event=0, turn_index=turn_index)
    indices = [placed.event.event_index for placed in found]
    return (indices[0], indices[-1]) if indices else (0, -1)


def heading(event: StoredEvent, turn: int | None) -> str:
    """Return the line above an event's text: its index, turn and step, type, outcome and time."""
    row = event.row
    step = "" if row.step_index is None else f" step {row.step_index}"
    called = f" of event {row.link}" if event.type == EventType.TOOL_RESULT and row.link is not None else ""
    parts = [
        f"{_HEADING}{event.event_index}",
        "" if turn is None else f"turn {turn}{step}",
        event.type + (f" {named(row.name, LABEL)}" if row.name else "") + called,
        "copied" if row.copy_of is not None else "",
        event.outcome or "",
        iso(row.ts) or "",
    ]
    return " · ".join(filter(None, parts))


def body(connection: sqlite3.Connection, event: StoredEvent) -> str:
    """Return the text of an event as get_event_details does; token usage as a line of JSON."""
    if event.type == EventType.TOKEN_USAGE:
        usage = events.token_usage(connection, event.row.session_row, event.event_index)
        return json.dumps(usage, ensure_ascii=False)
    return events.canonical_text(event)
