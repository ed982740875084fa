"""Long texts: the lines of a text, the text of a session, and the position of a line in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat, takewhile
from typing import Any, NamedTuple

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.redact import redact

from agtrace.sessions import transcript
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Entry, Stream, fitting
from agtrace.text.chunking import line_start
from agtrace.text.failing_lines import Failing, read


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
        pruning=unfocused,
    )


def _filled(entry: Entry, event: int, offset: int, budget: int) -> int:
    """Return how much of a chunk the rest of an entry fills, counting that the lines of a chunk are limited too."""
    text = entry.text[offset if entry.event_index == event else 0 :]
    return max(len(text), text.count("\n") * budget // limits().chunk_lines)
