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
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat, takewhile
from typing import Any, NamedTuple

from agtrace_indexer.index.queries import events as stored_events
from agtrace_indexer.index.queries.events import StoredEvent, text_reader
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.redact import redact
from agtrace_schema.events import EventType
from agtrace_schema.patterns import later

from agtrace.sessions import events
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Entry, Stream, fitting
from agtrace.text.chunking import line_start
from agtrace.text.failing_lines import Failing, read
from agtrace.text.lines import LABEL, UNSEEN, name_in_sentence
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
    found = stored_events.of_session(connection, session.id, then, turn_index=turn_index)
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
        event.type + (f" {name_in_sentence(row.name, LABEL)}" if row.name else "") + called,
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


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without newlines, at least one; a final newline doesn't start another line."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def told_lines(lines: Iterable[str], *, output: bool) -> Iterator[tuple[str, Failing | None]]:
    """Pair each line with the failure it reports, if the text is the output of a tool."""
    kept = list(lines)
    return zip(kept, read(kept) if output else repeat(None), strict=False)


def session_lines(entries: Iterable[Entry]) -> Iterator[tuple[str, Failing | None]]:
    """Yield the lines of a session's text as `told_lines` does."""
    for entry in entries:
        yield redact(entry.heading), None
        yield from told_lines(redact(entry.text).split("\n"), output=entry.output)


def lines_from(entries: Iterable[Entry], first: int, last: int) -> tuple[int, Iterator[tuple[str, Failing | None]]]:
    """Return the lines of a session's text from one event to another, and the number of the first of them."""
    before, ahead = 1, iter(entries)
    for entry in ahead:
        if entry.event_index >= first:
            within = takewhile(lambda entry: entry.event_index <= last, chain((entry,), ahead))
            return before, session_lines(within)
        before += redact(entry.text).count("\n") + 2
    return before, iter(())


class LinePlace(NamedTuple):
    """The position of a line in a session's text."""

    event: int
    offset: int
    """Counted as in `Stream.offset`."""
    total: int | None
    """The number of lines of the whole text; None if it isn't known yet."""


def place_of(entries: Iterable[Entry], start: int, end: int) -> LinePlace:
    """Return the position of line `start` after reading up to line `end`; if the text ends before, `total` is set."""
    event = offset = before = 0
    for entry in entries:
        text = redact(entry.text)
        if before < start:
            event, offset = entry.event_index, 0
            if start > before + 1:
                offset = 1 + (line_start(text, start - before - 2) or 0)
        before += text.count("\n") + 2
        if before >= end:
            return LinePlace(event, offset, None)
    return LinePlace(event, offset, before)


def session_stream(
    connection: sqlite3.Connection,
    session: Session,
    *,
    last_event: int,
    place: tuple[int, ...],
    budget: int,
    frame: dict[str, Any],
    essential: dict[str, Any],
    cursor: Callable[[int, int, int, int], str],
    turn_index: int | None = None,
    until: int | None = None,
    unfocused: dict[str, Any] | None = None,
) -> Stream:
    """Return the canonical text of a session or turn, from a position passed to `cursor` on; () is the beginning.

    `frame` is the data around it, `essential` what remains of that if there is no room for more. `until` is the last
    requested line, `unfocused` says why a question about the text was of no use.
    """
    event, offset, line, chunk = place or (0, 0, 0, 0)
    found = entries(connection, session, event, last_event, turn_index)
    shown, more = fitting(found, lambda entry: _filled(entry, event, offset, budget), budget)
    return Stream(
        entries=shown,
        more=more,
        frame=frame,
        key="text",
        cursor=cursor,
        essential=essential,
        event=event,
        offset=offset,
        line=line,
        chunk=chunk,
        until=until,
        pruning=unfocused,
    )


def _filled(entry: Entry, event: int, offset: int, budget: int) -> int:
    """Return how much of a chunk the rest of an entry fills, counting that the lines of a chunk are limited too."""
    text = entry.text[offset if entry.event_index == event else 0 :]
    return max(len(text), text.count("\n") * budget // limits().chunk_lines)
