"""The readable thoughts of a session, each with what the model did next."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from agtrace_indexer.index.questions import events, texts
from agtrace_indexer.index.questions.events import Event
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_schema.answers import Thought
from agtrace_schema.events import EventType

from agtrace.text.lines import LABEL, SUMMARY, cut, named, one_line, without_controls
from agtrace.times import iso

TEXT = 1_000
"""The most characters of a thought that the chain shows."""

_KINDS = (EventType.REASONING, EventType.TOOL_CALL, EventType.MESSAGE)


class Extent(NamedTuple):
    """The part of a session to examine."""

    turn_index: int | None
    """Only this turn; None for the whole session."""
    last_event: int
    """The newest event of the snapshot."""


class Chain(NamedTuple):
    """The events with the thinking of a session; their texts are not opened yet."""

    readable: list[int]
    """The event_index of every thought with a text, in file order."""
    hidden: int
    """The number of thoughts without readable text in the log."""
    copied: int
    """How many of the readable ones are copies from another session."""


def chain_of(connection: sqlite3.Connection, session: Session, extent: Extent) -> Chain:
    """Find the thoughts of a session, including copies but not superseded ones.

    Codex's encrypted reasoning is counted per log, so it is among the hidden only if no turn is requested.
    """
    found = events.reasoning(connection, session.id, last_event=extent.last_event, turn_index=extent.turn_index)
    having_text = texts.having_text(connection, session.id, [thought.event_index for thought in found])
    left_out = 0 if extent.turn_index is not None else events.reasoning_left_out(connection, session.file_id)
    return Chain(
        readable=[thought.event_index for thought in found if thought.event_index in having_text],
        hidden=len(found) - len(having_text) + left_out,
        copied=sum(thought.copied for thought in found if thought.event_index in having_text),
    )


def thoughts(connection: sqlite3.Connection, session: Session, indices: list[int], last_event: int) -> list[Thought]:
    """Return the thoughts with these event indices."""
    if not indices:
        return []
    found = events.several(connection, session.id, indices)
    following = _actions(connection, session.id, found, last_event)
    return [_thought(event, following.get(event.event_index)) for event in with_texts(connection, found)]


def _thought(event: StoredEvent, following: str | None) -> Thought:
    row, text = event.row, without_controls(event.text).strip()
    return Thought(
        event_index=event.event_index,
        turn_index=row.turn_index,
        step_index=row.step_index,
        timestamp=iso(row.ts),
        text=cut(text, TEXT),
        chars=len(event.text) if len(text) > TEXT else None,
        next=following,
        copied=True if row.copy_of is not None else None,
    )


def _actions(
    connection: sqlite3.Connection, session_row: int, thinking: Iterable[Event], last_event: int
) -> dict[int, str]:
    """Return what follows each of these thoughts in its step, up to the next thought."""
    places = {
        thought.event_index: (thought.turn_index, thought.step_index)
        for thought in thinking
        if thought.turn_index is not None and thought.step_index is not None
    }
    steps: dict[tuple[int | None, int | None], list[Event]] = {}
    for event in events.of_steps(connection, session_row, set(places.values()), _KINDS, last_event):
        steps.setdefault((event.turn_index, event.step_index), []).append(event)
    said = {thought: _action(connection, thought, steps[place]) for thought, place in places.items()}
    return {index: action for index, action in said.items() if action is not None}


def _action(connection: sqlite3.Connection, thought: int, step: list[Event]) -> str | None:
    """Return the tools called after a thought, or else the beginning of the message after it."""
    behind = [event for event in step if event.event_index > thought]
    followed = list(takewhile(lambda event: event.type != EventType.REASONING, behind))
    tools = Counter(
        named(event.name, LABEL) if event.name else "an unnamed tool"
        for event in followed
        if event.type == EventType.TOOL_CALL
    )
    if tools:
        return cut("calls " + ", ".join(f"{name} x{n}" if n > 1 else name for name, n in tools.items()), SUMMARY)
    messages = [event for event in followed if event.type == EventType.MESSAGE]
    if not messages:
        return None
    said = one_line(with_texts(connection, messages[:1])[0].text, SUMMARY - len("says ''"))
    return f"says {said!r}"
