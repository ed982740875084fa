"""The timeline of a session: what happened when, reduced to what a page can show."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from agtrace_schema.analysis import ContextPoint, Timeline, TimelineEntry
from msgspec import Struct

from agtrace.health.detectors.context import compactions
from agtrace.health.facts.api import is_api_error
from agtrace.health.history import Call, History, Notice, Said
from agtrace.text.lines import LABEL, one_line

Kind = Literal["turn", "step", "tool", "agent", "compaction", "api_error"]

_RANKS: dict[Kind, int] = {"compaction": 0, "api_error": 0, "agent": 1, "turn": 1, "tool": 2, "step": 3}
"""The order in which kinds are kept if there isn't room for all; failures come before all of them."""


class AgentTimes(NamedTuple):
    """A sub-agent that the session itself started; times are milliseconds since 1970 UTC, 0 if unknown."""

    session_id: str
    started_by: int
    """The event of the call that started it."""
    started_at: int
    ended_at: int


class _Piece(NamedTuple):
    """A candidate for an entry; times are milliseconds since 1970 UTC."""

    kind: Kind
    start: int
    end: int
    event_index: int
    name: str | None = None
    """As in the log."""
    failed: bool = False
    turn: int | None = None
    """The turn's index, if it is a turn."""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The sort key for keeping: failures first, then by kind, then the longest."""
        return not self.failed, _RANKS[self.kind], self.start - self.end


class _Span(Struct):
    """The time from the first to the last of some moments; unknown moments, which are 0, are ignored."""

    event_index: int
    start: int = 0
    end: int = 0

    def take(self, moment: int) -> None:
        """Extend the span to this moment."""
        if moment:
            if not self.start or moment < self.start:
                self.start = moment
            if moment > self.end:
                self.end = moment

    def piece(self, kind: Kind, name: str | None = None, failed: bool = False) -> _Piece:
        """Return a piece that lasts this span."""
        return _Piece(kind, self.start, self.end, self.event_index, name, failed)


def timeline(history: History, started_at: int | None, agents: Iterable[AgentTimes], most: int) -> Timeline | None:
    """Return what happened when, in at most `most` entries and half as many points; None if the log has no times."""
    if not started_at:
        return None
    pieces = [*_turns(history), *_within(history), *_agents(history, agents)]
    kept = heapq.nsmallest(most, pieces, key=lambda piece: piece.rank)
    kept.sort(key=lambda piece: (piece.start, piece.event_index, _RANKS[piece.kind]))
    return Timeline(
        entries=[_entry(piece, started_at) for piece in kept],
        context=_context(history, started_at, max(most // 2, 1)),
        context_window=next((usage.context_window for usage in reversed(history.usages) if usage.context_window), None),
        left_out=len(pieces) - len(kept) or None,
    )


def _entry(piece: _Piece, started_at: int) -> TimelineEntry:
    return TimelineEntry(
        kind=piece.kind,
        start=_seconds(piece.start, started_at),
        end=_seconds(piece.end, started_at),
        event_index=piece.event_index,
        name=None if piece.name is None else one_line(piece.name, LABEL),
        turn_index=piece.turn,
        failed=piece.failed or None,
    )


def _seconds(moment: int, started_at: int) -> float:
    """Return seconds since the beginning, to a tenth; 0 for an unknown moment or one before the beginning."""
    return round(max(moment - started_at, 0) / 1000, 1)


def _turns(history: History) -> Iterator[_Piece]:
    """Yield turns, each from its request to its last entry."""
    turns: dict[int, _Span] = {}
    names: dict[int, str] = {}
    for entry in history.entries:
        if entry.turn is None:
            continue
        span = turns.get(entry.turn)
        if span is None:
            span = turns[entry.turn] = _Span(entry.event_index)
        span.take(entry.at)
        if isinstance(entry, Call):
            span.take(entry.answered_at)
        elif isinstance(entry, Said) and entry.opens_turn:
            names.setdefault(entry.turn, entry.text[: LABEL * 4])
    for turn, span in turns.items():
        yield span.piece("turn", names.get(turn))._replace(turn=turn)


def _within(history: History) -> Iterator[_Piece]:
    """Yield tool executions, API errors, compactions and steps."""
    steps: dict[tuple[int | None, int], _Span] = {}
    for entry in history.entries:
        if isinstance(entry, Notice):
            if is_api_error(entry, history.provider):
                yield _Piece("api_error", entry.at, entry.at, entry.event_index)
            continue
        if isinstance(entry, Said):
            continue
        if entry.step is not None:
            place = entry.turn, entry.step
            span = steps.get(place)
            if span is None:
                span = steps[place] = _Span(entry.event_index)
            span.take(entry.at)
        if isinstance(entry, Call) and entry.event_index not in history.agents:
            span = _Span(entry.event_index)
            span.take(entry.at)
            span.take(entry.answered_at)
            yield span.piece("tool", entry.tool, entry.failed)
    for compacted in compactions(history):
        yield _Piece("compaction", compacted.at, compacted.at, compacted.event_index)
    for span in steps.values():
        yield span.piece("step")


def _agents(history: History, agents: Iterable[AgentTimes]) -> Iterator[_Piece]:
    """Yield sub-agents for as long as they worked, even if the call that started them returned at once."""
    failed = {call.event_index for call in history.calls if call.failed}
    for agent in agents:
        place = agent.started_by
        yield _Piece("agent", agent.started_at, agent.ended_at, place, agent.session_id, place in failed)


def _context(history: History, started_at: int, most: int) -> list[ContextPoint]:
    """Return the tokens in the window after each response; of neighbours only the fullest, if there are too many."""
    points = [(usage.at, usage.whole_input) for usage in history.usages if usage.whole_input]
    together = -(-len(points) // most)
    groups = (points[at : at + together] for at in range(0, len(points), together or 1))
    fullest = (max(group, key=lambda point: point[1] or 0) for group in groups)
    return [ContextPoint(at=_seconds(at, started_at), tokens=tokens or 0) for at, tokens in fullest]
