"""From drafts to events with coordinates: event, turn and step indices, and links of calls and results.

A turn is opened by a human request (or, in a sub-agent, by its task); a model response before any
of these opens one too. A step is one model response with the tool executions it asked for: a tool
result belongs to the step of its call, wherever it stands in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agtrace_schema.events import (
    EVENT_TYPES,
    EventType,
    Notification,
    Outcome,
    Payload,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from agtrace_indexer.drafts import Draft
from agtrace_indexer.lines import Line

REQUESTS = frozenset({UserKind.HUMAN, UserKind.TASK})
"""The kinds of user texts that ask for work: only these open a turn."""


_STEPS_REMEMBERED = 32


@dataclass(slots=True)
class Event:
    """An event with its coordinates, before it becomes a row."""

    event_index: int
    type: EventType
    payload: Payload
    timestamp: int | None
    turn_index: int | None
    step_index: int | None
    name: str | None
    """The tool's name, the kind of a user text or of a notification."""
    outcome: Outcome | None
    link: int | None
    """The event_index of the call of a result."""
    line: Line


class Supersession(NamedTuple):
    """An event that a later one replaces or takes back."""

    event_index: int
    by: int
    """The event_index of what replaced it or took it back."""


@dataclass(slots=True)
class Thread:
    """Where the assembly of one session stands. JSON values only: it is stored between two runs."""

    next_index: int = 0
    turn: int = -1
    next_step: int = 0
    steps: dict[str, list[int]] = field(default_factory=dict)
    """Key -> [turn, step] of the newest steps: lines of one response can be interleaved with others."""
    calls: dict[str, list[Any]] = field(default_factory=dict)
    """Id -> [event_index, turn, step, tool] of the calls that wait for their result."""
    keys: dict[str, int] = field(default_factory=dict)
    """Draft key -> event_index of the event that holds it now."""
    answered: dict[str, list[Any]] = field(default_factory=dict)
    """Draft key of a result -> the call it answers: a later version of the result answers it again."""

    def place(self, draft: Draft, line: Line) -> Event:
        """Give the next draft its coordinates."""
        payload = draft.payload
        name, outcome, link = _name(payload), None, None
        call = self._call_of(draft)
        if call:
            link, turn, step, name = call
        else:
            turn, step = self._coordinates(draft)
        if isinstance(payload, ToolResult):
            outcome = payload.outcome
        event = Event(
            self.next_index, EVENT_TYPES[type(payload)], payload, draft.timestamp, turn, step, name, outcome, link, line
        )
        if isinstance(payload, ToolCall) and payload.call_id:
            self.calls[payload.call_id] = [event.event_index, turn, step, name]
        self.next_index += 1
        return event

    def supersede(self, draft: Draft, by: int, remembered: int | None) -> Supersession | None:
        """Note that the event `by` holds the draft's key now; give the event that held it before."""
        if draft.key is None:
            return None
        before = self.keys.pop(draft.key, None)
        self.keys[draft.key] = by
        if remembered is not None and len(self.keys) > remembered:
            del self.keys[next(iter(self.keys))]
        return None if before is None else Supersession(before, by)

    def retract(self, keys: list[str]) -> list[Supersession]:
        """Give the events that hold these keys, taken back by the newest event, and forget the keys."""
        held = (self.keys.pop(key, None) for key in keys)
        return [Supersession(index, self.next_index - 1) for index in held if index is not None]

    def _call_of(self, draft: Draft) -> list[Any] | None:
        """The call that a result answers, also where it answers it anew."""
        payload = draft.payload
        if not isinstance(payload, ToolResult):
            return None
        call = self.calls.pop(payload.call_id, None) if payload.call_id else None
        if draft.key is None:
            return call
        call = call or self.answered.get(draft.key)
        if call:
            self.answered[draft.key] = call
        return call

    def _coordinates(self, draft: Draft) -> tuple[int | None, int | None]:
        payload = draft.payload
        if isinstance(payload, User) and payload.kind in REQUESTS:
            self._open_turn()
        if draft.step is not None:
            return self._in_step(draft.step)
        return (self.turn if self.turn >= 0 else None), None

    def _in_step(self, key: str) -> tuple[int, int]:
        if self.turn < 0:
            self._open_turn()
        if key not in self.steps:
            self.steps[key] = [self.turn, self.next_step]
            self.next_step += 1
            if len(self.steps) > _STEPS_REMEMBERED:
                del self.steps[next(iter(self.steps))]
        turn, step = self.steps[key]
        return turn, step

    def _open_turn(self) -> None:
        self.turn += 1
        self.next_step = 0


def _name(payload: Payload) -> str | None:
    match payload:
        case ToolCall(name=name) | TokenUsage(model=name):
            return name
        case User(kind=kind) | Notification(kind=kind):
            return str(kind)
        case _:
            return None
