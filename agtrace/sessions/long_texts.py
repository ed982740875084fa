"""Long texts: the lines of a text, the text of a session, and where a line of it stands."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.redact import redact

from agtrace.sessions import transcript
from agtrace.shaping.replies import Entry, Stream, fitting
from agtrace.text.chunking import LINES_PER_CHUNK, line_start
from agtrace.text.failing_lines import Failing, read


def lines_of(text: str) -> list[str]:
    """The lines of a text without their newlines, at least one; behind the last newline there is none."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def told_lines(lines: Iterable[str], *, output: bool) -> Iterator[tuple[str, Failing | None]]:
    """Each line with what it tells of a failure, if it is what a tool gave back."""
    kept = list(lines)
    return zip(kept, read(kept) if output else repeat(None), strict=False)


def session_lines(entries: Iterable[Entry]) -> Iterator[tuple[str, Failing | None]]:
    """The lines of a session's text, as `told_lines` gives them."""
    for entry in entries:
        yield redact(entry.heading), None
        yield from told_lines(redact(entry.text).split("\n"), output=entry.output)


class LinePlace(NamedTuple):
    """Where in a session's text a line begins."""

    event: int
    offset: int
    """As `Stream.offset` counts."""
    total: int | None
    """The lines of the whole text, if they are known by now."""


def place_of(entries: Iterable[Entry], start: int, end: int) -> LinePlace:
    """Where line `start` begins, read as far as line `end`; without lines so far, `total` is less than `end`."""
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
) -> Stream:
    """The canonical text of a session or of one of its turns, from a place on that `cursor` was given; () is the first.

    `frame` is what stands around it, `essential` what stays of that where there is room for nothing else. `until` is
    the last line that is asked for.
    """
    event, offset, line, chunk = place or (0, 0, 0, 0)
    found = transcript.entries(connection, session, event, last_event, turn_index)
    entries, more = fitting(found, lambda entry: _filled(entry, event, offset, budget), budget)
    return Stream(
        entries=entries,
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
    )


def _filled(entry: Entry, event: int, offset: int, budget: int) -> int:
    """How much of a chunk the rest of an entry fills: the lines of a chunk are limited, too."""
    text = entry.text[offset if entry.event_index == event else 0 :]
    return max(len(text), text.count("\n") * budget // LINES_PER_CHUNK)
