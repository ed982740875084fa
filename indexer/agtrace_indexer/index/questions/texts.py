"""The texts of events, and the rest of their payloads."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias

from agtrace_schema.events import EventType, Outcome
from msgspec import Struct

from agtrace_indexer.index.questions.events import Event
from agtrace_indexer.index.questions.queries import only, rows
from agtrace_indexer.texts.blocks import BlockText

_BLOCK = """
SELECT id, first_index FROM block WHERE session_id = ? AND first_index <= ? ORDER BY first_index DESC LIMIT 1
"""

_DATA = "SELECT ends, text FROM block_data WHERE block_id = ?"

_ENDS = """
SELECT b.first_index, d.ends FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.session_id = ? ORDER BY b.first_index
"""


class StoredEvent(Struct, frozen=True):
    """An event with its texts."""

    row: Event
    text: str
    rest: dict[str, Any]
    """The stored part of its payload that its text doesn't contain."""

    @property
    def event_index(self) -> int:
        """Its index within the session."""
        return self.row.event_index

    @property
    def type(self) -> EventType:
        """Its type."""
        return self.row.type

    @property
    def outcome(self) -> Outcome | None:
        """How the tool execution ended."""
        return self.row.outcome


ReadText: TypeAlias = Callable[[Event], StoredEvent]
"""Returns an event with its texts."""


def text_reader(connection: sqlite3.Connection) -> ReadText:
    """Return a reader of texts, for one event after another; it keeps the block opened last for the next event."""
    kept: tuple[int, BlockText, list[dict[str, Any] | None]] | None = None

    def read(event: Event) -> StoredEvent:
        nonlocal kept
        block, first = only(connection, lambda *row: row, _BLOCK, (event.session_row, event.event_index))
        if kept is None or kept[0] != block:
            kept = None  # each may be as large as the longest line: never two at once
            found = only(connection, BlockText.of, _DATA, (block,))
            kept = block, found, found.payloads()
        number = event.event_index - first
        return StoredEvent(event, kept[1].text(number), kept[2][number] or {})

    return read


def with_texts(connection: sqlite3.Connection, events: Iterable[Event]) -> list[StoredEvent]:
    """Return events with their texts."""
    return list(map(text_reader(connection), events))


def having_text(connection: sqlite3.Connection, session_row: int, indices: Collection[int]) -> set[int]:
    """Return those of these events that have a text, judged by where texts end, without decompressing any."""
    if not indices:
        return set()
    blocks = list(
        rows(connection, lambda first, ends: (first, BlockText(b"", array("I", ends))), _ENDS, (session_row,))
    )
    firsts = [first for first, _ in blocks]
    found = set()
    for index in indices:
        first, ends = blocks[bisect_right(firsts, index) - 1]
        if ends.ends[index - first] > ends.start(index - first):
            found.add(index)
    return found
