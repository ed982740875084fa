"""The canonical text of a session: every event in file order, a line that says what it is, then its text, verbatim.

Only a line of a log that begins as such a line of ours does gets a backslash: no text can pass for another event.

What the log took back is left out. A session can be larger than memory, so the text is never made as a
whole: it is read forward from an event on.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator

from agtrace_indexer.index.questions.conditions import LIVE
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.events import EventType

from agtrace.sessions import events
from agtrace.sessions.query import StoredEvent, iso, with_texts
from agtrace.shaping.replies import Entry
from agtrace.text.lines import LABEL, UNSEEN, named

_HEADING = "## event "
_LIKE_A_HEADING = re.compile(f"(?:^|(?<=[\r\u2028\u2029]))(?=[ \x00-\x09\x0b-\x1f{UNSEEN}]*{_HEADING})", re.M)

_EVENTS = f"""
SELECT e.*, n.text AS name, t.turn_index AS turn FROM event e LEFT JOIN name n ON n.id = e.name_id
LEFT JOIN turn t ON t.session_id = e.session_id AND t.turn_index = e.turn_index
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND {LIVE}
  AND e.turn_index IS coalesce(:turn, e.turn_index)
ORDER BY e.event_index
"""


def entries(
    connection: sqlite3.Connection, session: Session, from_event: int, last_event: int, turn_index: int | None
) -> Iterator[Entry]:
    """The events from one on, as far as the snapshot's last event goes, or those of a turn.

    Each is read when it is asked for: one of them can be as large as the longest line.
    """
    named = {
        "session": session.id, "first": from_event, "last": last_event, "turn": turn_index,
        "newest": newest_row(connection, session, last_event),
    }  # fmt: skip
    for row in connection.execute(_EVENTS, named):
        (event,) = with_texts(connection, [row])
        text = body(connection, event)
        if _HEADING in text:
            text = _LIKE_A_HEADING.sub(r"\\", text)
        yield Entry(event.event_index, heading(event), text, event.type == EventType.TOOL_RESULT)


def newest_row(connection: sqlite3.Connection, session: Session, last_event: int) -> int:
    """The id of the newest event of a snapshot: what has a higher one came later."""
    place = (session.id, last_event)
    found = connection.execute("SELECT id FROM event WHERE session_id = ? AND event_index = ?", place).fetchone()
    return int(found["id"]) if found else 0


def heading(event: StoredEvent) -> str:
    """The line above an event's text: its coordinates, what it is, how it ended and when it was."""
    row = event.row
    step = "" if row["step_index"] is None else f" step {row['step_index']}"
    called = f" of event {row['link']}" if event.type == EventType.TOOL_RESULT and row["link"] is not None else ""
    parts = [
        f"{_HEADING}{event.event_index}",
        "" if row["turn"] is None else f"turn {row['turn']}{step}",
        event.type + (f" {named(row['name'], LABEL)}" if row["name"] else "") + called,
        "copied" if row["copy_of"] is not None else "",
        event.outcome or "",
        iso(row["ts"]) or "",
    ]
    return " · ".join(filter(None, parts))


def body(connection: sqlite3.Connection, event: StoredEvent) -> str:
    """The text that get_event_details gives of an event; token figures as a line of JSON."""
    if event.type == EventType.TOKEN_USAGE:
        usage = events.token_usage(connection, event.row["session_id"], event.event_index)
        return json.dumps(usage, ensure_ascii=False)
    return events.canonical_text(event)
