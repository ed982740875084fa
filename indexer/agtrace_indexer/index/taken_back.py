"""Events that a log no longer has: read from the index before their log is read again, and put back among the others.

They stay in their sessions at their places, as superseded, and count nowhere.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.events import EventType, Notification, Outcome, Payload, TokenUsage, User, UserKind
from msgspec import Struct, field

from agtrace_indexer.events.assembly import Event, Supersession
from agtrace_indexer.events.drafts import SessionFacts
from agtrace_indexer.events.identity import LINE_SPAN
from agtrace_indexer.index.questions import events, texts
from agtrace_indexer.index.questions.texts import StoredEvent
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.lines import Line
from agtrace_indexer.redact import redact, redact_json

Ranges: TypeAlias = "Mapping[str, list[list[int]]]"
"""Thread -> [first, last] event_index of the events that were taken back, in ascending order."""

_PLACES = """
SELECT s.thread, e.event_index, e.line, e.offset, e.length, e.ts, e.identity
FROM event e JOIN session s ON s.id = e.session_id WHERE s.file_id = ? ORDER BY e.line, e.event_index
"""

_FIGURES = """
SELECT response_id, model, input_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens,
  output_tokens, reasoning_tokens, complete, context_window, speed, cost_usd
FROM token_usage WHERE session_id = ? AND event_index = ?
"""


class Origin(NamedTuple):
    """Where an event was read."""

    thread: str
    event_index: int
    line: int
    offset: int
    length: int
    ts: int
    identity: int | None

    @property
    def line_identity(self) -> int | None:
        """The identity of its line, if it has one (`events.identity`)."""
        return None if self.identity is None else self.identity - self.identity % LINE_SPAN


class Kept(NamedTuple):
    """An event that its log no longer has."""

    stored: StoredEvent
    figures: TokenUsage | None

    @property
    def event_index(self) -> int:
        """Its place in the session."""
        return self.stored.event_index

    @property
    def turn_index(self) -> int | None:
        """Its turn."""
        return self.stored.row.turn_index


class TakenBack(Struct):
    """Events of a log that it no longer has, and that wait until they are put back."""

    events: dict[str, deque[Kept]] = field(default_factory=dict)
    """By thread, in their order."""
    facts: dict[str, SessionFacts] = field(default_factory=dict)
    """What is known about their threads, which may be gone as well."""


def origins(connection: sqlite3.Connection, file_id: int, taken_back: Ranges) -> Iterator[Origin]:
    """Yield where the events of a log were read, in the order of its lines, without those that were taken back."""
    for row in connection.execute(_PLACES, (file_id,)):
        origin = Origin(*row)
        if not any(first <= origin.event_index <= last for first, last in taken_back.get(origin.thread, ())):
            yield origin


def kept(connection: sqlite3.Connection, file_id: int, indices: Mapping[str, Iterable[int]]) -> dict[str, list[Kept]]:
    """Return these events of a log's threads, in their order."""
    rows = connection.execute("SELECT thread, id FROM session WHERE file_id = ?", (file_id,)).fetchall()
    found = {thread: events.several(connection, row, indices[thread]) for thread, row in rows if thread in indices}
    return {
        thread: [Kept(stored, _figures(connection, stored)) for stored in texts.with_texts(connection, those)]
        for thread, those in found.items()
    }


def put_back(store: Store, session_id: int, event_index: int, event: Kept) -> None:
    """Write an event at a place of its session, superseded from the beginning."""
    row, moved = event.stored.row, event_index - event.event_index
    line = Line(row.line, row.offset, row.length, b"", ended=True)
    rest: Any = redact_json(event.stored.rest) if event.stored.rest else None
    written = Event(
        event_index, row.type, _payload(event), row.ts or None, row.turn_index, row.step_index, row.name,
        None if row.outcome is Outcome.UNKNOWN and row.link is None else row.outcome, None, line,
        duration_ms=row.duration_ms,
    )  # fmt: skip
    store.add_event(session_id, written, redact(event.stored.text), rest)
    if row.link is not None:
        store.link(session_id, row.link + moved)
    store.supersede(session_id, event_index + 1, Supersession(event_index, event_index))


def _figures(connection: sqlite3.Connection, stored: StoredEvent) -> TokenUsage | None:
    if stored.type is not EventType.TOKEN_USAGE:
        return None
    row = connection.execute(_FIGURES, (stored.row.session_row, stored.event_index)).fetchone()
    return None if row is None else TokenUsage(*row)


def _payload(event: Kept) -> Payload:
    """Return a payload for the rows next to an event's own: only those of requests and figures are kept."""
    if event.figures is not None:
        return event.figures
    if event.stored.type is EventType.USER and event.stored.row.name is not None:
        return User(event.stored.text, UserKind(event.stored.row.name))
    return Notification("", "")
