"""A session as a conversation to scroll through: windows of its events, each made by itself, disjoint and complete.

An event is in one window, by its index; a result is part of its call. What the agent's program added, and figures of
tokens, are there too, folded or as places to link to, so that every event can be reached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, TypeAlias

from agtrace_indexer.index.questions import events, turns
from agtrace_indexer.index.questions.events import NOW, Placed, Snapshot
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import text_reader
from agtrace_schema.events import EventType
from markupsafe import Markup

from agtrace.report.conversation.cleaning import Cleaner
from agtrace.report.conversation.telling import Folded, Mark, Request, Said, Telling
from agtrace.report.web.calls import Call, Calls
from agtrace.report.web.code import colouring_for
from agtrace.report.web.markdown import LONGEST, html
from agtrace.sessions.query import short_id
from agtrace.text.lines import LABEL

WINDOW = 100
"""The events of a window."""

_MANY_ADDED = 3
"""From so many on, texts of one kind that the program added one after the other are one entry."""
_ADDED = 4_000
"""Characters that a window shows of what the agent's program added; a page of its own has all of it."""

_COLOURING = 0.4
"""Seconds of the processor's time for the colours of code in a window."""

_CALLS = (EventType.TOOL_CALL, EventType.TOOL_RESULT)


class Place(NamedTuple):
    """An event of another session."""

    session: str
    event_index: int


class Begins(NamedTuple):
    """The beginning of a turn."""

    event_index: int
    time: int
    number: int
    copied: bool
    """Whether all of it is copied from another session."""
    original: Place | None
    """Where it is copied from, if that is known."""

    @property
    def kind(self) -> str:
        """What it is among the entries of a conversation."""
        return "turn"


class Words(NamedTuple):
    """A text of the user, the model, or the agent's program."""

    event_index: int
    time: int
    kind: str
    """request, answer, thought, mark, or added."""
    label: str
    shown: Markup
    chars: int | None = None
    """The length of the whole text if only its beginning is shown."""
    goes_on: bool = False
    """Whether the model spoke, thought or acted just before, so that its name need not be repeated."""


class Figures(NamedTuple):
    """An event that has figures of tokens only, or is a part of the entry before: a place to link to."""

    event_index: int
    time: int

    @property
    def kind(self) -> str:
        """What it is among the entries of a conversation."""
        return "figures"


Entry: TypeAlias = Begins | Words | Call | Figures


class Window(NamedTuple):
    """A part of a conversation."""

    number: int
    last: int
    """The number of the last window of the session."""
    entries: list[Entry]


def windows(last_event: int) -> int:
    """Return how many windows a session has, given its last event; at least one."""
    return max(last_event, 0) // WINDOW + 1


def window_of(event_index: int) -> int:
    """Return the window in which an event is."""
    return event_index // WINDOW


def window(connection: sqlite3.Connection, session: Session, number: int, cleaner: Cleaner) -> Window:
    """Return a window of a session as it is now; one that the session doesn't have is empty."""
    last = windows(events.last(connection, session.id) or 0) - 1
    first_event = number * WINDOW
    then = Snapshot(first_event + WINDOW - 1, NOW.newest_row)
    placed = list(events.without_answers(connection, session.id, then, from_event=first_event, turn_index=None))
    begins = _beginnings(connection, session, placed, first_event)
    making = _Making(connection, session, cleaner)
    with colouring_for(_COLOURING):
        entries = [entry for one in placed for entry in making.entries(one, begins.get(one.event.event_index))]
    return Window(number, last, list(_gathered(entries)))


def _gathered(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Make one entry of several that the program added one after the other, of the same kind and not cut."""
    for label, group in groupby(entries, _added):
        run = list(group)
        if label is None or len(run) < _MANY_ADDED:
            yield from run
            continue
        first, *others = (entry for entry in run if isinstance(entry, Words))
        shown = Markup("\n\n").join(entry.shown for entry in (first, *others))
        yield first._replace(label=f"{label}, {len(run)} times", shown=shown)
        yield from (Figures(entry.event_index, entry.time) for entry in others)


def _added(entry: Entry) -> str | None:
    return entry.label if isinstance(entry, Words) and entry.kind == "added" and entry.chars is None else None


def _beginnings(
    connection: sqlite3.Connection, session: Session, placed: Iterable[Placed], first_event: int
) -> dict[int, Begins]:
    """Return the turns that begin in a window, by their first event in it."""
    firsts: dict[int, Placed] = {}
    for one in placed:
        if one.turn_index is not None:
            firsts.setdefault(one.turn_index, one)
    found = {turn.turn_index: turn for turn in turns.several(connection, session.id, firsts)}
    return {
        one.event.event_index: Begins(
            one.event.event_index, one.event.ts, turn, one.copied_turn, _original(connection, one)
        )
        for turn, one in firsts.items()
        if turn in found and found[turn].first_event >= first_event
    }


def _original(connection: sqlite3.Connection, placed: Placed) -> Place | None:
    row = placed.event.copy_of
    found = events.address(connection, row) if row and placed.copied_turn else None
    return None if found is None else Place(short_id(connection, found.uid), found.event_index)


class _Making:
    """Makes entries of events."""

    def __init__(self, connection: sqlite3.Connection, session: Session, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._telling, self._calls = Telling(connection, session, cleaner), Calls(connection, session, cleaner)
        self._read = text_reader(connection)
        self._goes_on = False

    def entries(self, placed: Placed, begins: Begins | None) -> Iterator[Entry]:
        """Yield what an event is in a conversation, after the beginning of its turn."""
        if begins is not None:
            yield begins
        event = placed.event
        if event.type == EventType.TOKEN_USAGE:
            yield Figures(event.event_index, event.ts)
        elif event.type in _CALLS:
            self._goes_on = True
            yield self._calls.call(event)
        else:
            yield self._words(placed)

    def _words(self, placed: Placed) -> Entry:
        event = placed.event
        made = self._telling.item(placed)
        match made:
            case Request():
                self._goes_on = False
                return self._cut(placed, "request", made.label, made.text.strip())
            case Said():
                goes_on, self._goes_on = self._goes_on, True
                return self._cut(placed, "answer", "", made.text, as_markdown=True)._replace(goes_on=goes_on)
            case Folded():
                return self._cut(placed, "thought", made.label, made.text.strip())
            case Mark():
                return Words(event.event_index, event.ts, "mark", "", Markup.escape(made.text))
            case None:
                return Figures(event.event_index, event.ts)
            case _:
                text = self._cleaner.text(self._read(event).text).strip("\n")
                label = self._cleaner.line(event.name or "notification", LABEL)
                return self._cut(placed, "added", label, text, most=_ADDED)

    def _cut(
        self, placed: Placed, kind: str, label: str, text: str, *, as_markdown: bool = False, most: int = LONGEST
    ) -> Words:
        """Return a text, already cleaned, or its beginning if it is long."""
        beginning = text[:most]
        shown = html(beginning) if as_markdown else Markup.escape(beginning)
        event = placed.event
        return Words(event.event_index, event.ts, kind, label, shown, len(text) if len(text) > most else None)


def clock(moment: int) -> str:
    """Return the local time of day of a moment in milliseconds since 1970 UTC; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%H:%M}"


def date_and_time(moment: int) -> str:
    """Return a moment in milliseconds since 1970 UTC as local date and time; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%Y-%m-%d %H:%M}"


def _local(moment: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(moment / 1000) if moment else None
    except (OverflowError, ValueError, OSError):
        return None
