"""A session part by part, in file order: the beginnings of thoughts, messages, tool calls and tool results."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any, NamedTuple

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index.questions import events, sessions, usage
from agtrace_indexer.index.questions.events import Event, Placed
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import ReadText, StoredEvent, text_reader
from agtrace_indexer.index.questions.usage import Figures
from agtrace_schema.answers import CallQuote, EventQuote, Quote, ResultQuote, StepDetail, ToolExecution, TurnSteps
from agtrace_schema.events import EventType, Outcome
from msgspec import Struct
from msgspec.structs import replace

from agtrace.sessions.query import short_id
from agtrace.sessions.quotes import Quotes, arguments_quote, beginning
from agtrace.sessions.steps import StepUsage
from agtrace.text.lines import LABEL, one_line

_READ_AT_ONCE = 4  # events: each can be as large as the longest line


class Part(NamedTuple):
    """An item that a page can end after: a text, a tool execution with its result, or the token usage of a step."""

    event_index: int
    turn_index: int | None
    """None for parts outside of turns or in a retracted turn."""
    step_index: int | None
    opens_turn: bool
    """Whether it is the request of its turn."""
    shown: Quote | ToolExecution | EventQuote | StepUsage
    copied_turn: bool
    is_reasoning: bool

    @property
    def failure(self) -> int | None:
        """The event that reports the failure, if this is a failed tool execution."""
        if not isinstance(self.shown, ToolExecution) or self.shown.outcome is not Outcome.FAILED:
            return None
        return self.event_index if self.shown.result_event is None else self.shown.result_event

    @property
    def quoted(self) -> int | None:
        """The event whose text is quoted; None if there is none."""
        if isinstance(self.shown, ToolExecution):
            return self.shown.result_event
        return self.event_index if isinstance(self.shown, Quote) else None

    @property
    def without_texts(self) -> Part:
        """The same part without its texts, for a page that has no room for them."""
        return self._replace(shown=_without_texts(self.shown))


def parts_of(
    connection: sqlite3.Connection,
    session: Session,
    *,
    behind: int,
    last_event: int,
    turn_index: int | None,
    quotes: Quotes,
) -> Iterator[Part]:
    """Yield the parts of a session after an event, or those of a turn, in file order, reading them as needed."""
    then = events.snapshot(connection, session.id, last_event)
    read = text_reader(connection)
    found = events.without_answers(connection, session.id, then, from_event=behind + 1, turn_index=turn_index)
    while some := list(islice(found, _READ_AT_ONCE)):
        beside = _Beside.of(connection, session, [placed.event for placed in some], read)
        yield from (_part(placed, read(placed.event), beside, quotes) for placed in some)


def by_turns(parts: Iterable[Part]) -> list[TurnSteps]:
    """Group parts into turns and steps; those that the log interleaves appear more than once."""
    return [_turn(index, list(group)) for index, group in groupby(parts, key=lambda part: part.turn_index)]


class _Beside(Struct, frozen=True):
    """What belongs to some events: the results of calls, token usage and started sessions."""

    results: dict[int, StoredEvent]
    """Keyed by the event of the call."""
    usages: dict[int, Figures]
    agents: dict[int, str]

    @classmethod
    def of(cls, connection: sqlite3.Connection, session: Session, some: list[Event], read: ReadText) -> _Beside:
        """Read the data that belongs to these events of a session."""
        calls = [event for event in some if event.type == EventType.TOOL_CALL]
        linked = [call.link for call in calls if call.link is not None]
        results = [read(event) for event in events.several(connection, session.id, linked)]
        figures = usage.figures(connection, session.id, (event.event_index for event in some))
        agents = sessions.started_by(connection, session.id, (call.event_index for call in calls))
        return cls(
            {result.row.link: result for result in results if result.row.link is not None},
            {told.event_index: told for told in figures},
            {call: short_id(connection, uid) for call, uid in agents.items()},
        )


def _part(placed: Placed, event: StoredEvent, beside: _Beside, quotes: Quotes) -> Part:
    return Part(
        event_index=event.event_index,
        turn_index=placed.turn_index,
        step_index=None if placed.turn_index is None else placed.event.step_index,
        opens_turn=placed.opens_turn,
        shown=_shown(event, beside, quotes, opens=placed.opens_turn),
        copied_turn=placed.copied_turn,
        is_reasoning=event.type == EventType.REASONING,
    )


def _shown(
    event: StoredEvent, beside: _Beside, quotes: Quotes, *, opens: bool
) -> Quote | ToolExecution | EventQuote | StepUsage:
    match event.type:
        case EventType.MESSAGE | EventType.REASONING:
            return Quote(event_index=event.event_index, **quotes.quote(event.event_index, event.text))
        case EventType.TOOL_CALL:
            return _execution(event, beside, quotes)
        case EventType.TOOL_RESULT:
            result = _result(event, quotes)
            return ToolExecution(
                result=result,
                outcome=event.outcome,
                call_event=event.row.link,
                result_event=event.event_index,
            )
        case EventType.TOKEN_USAGE:
            return StepUsage.of([beside.usages[event.event_index]])
        case _:
            text = without_preface(event.text).lstrip() if opens else event.text
            return EventQuote(
                event_index=event.event_index,
                event_type=event.type,
                kind=event.row.name and one_line(event.row.name, LABEL),
                **beginning(text),
            )


def _execution(call: StoredEvent, beside: _Beside, quotes: Quotes) -> ToolExecution:
    """Return a tool call with its result."""
    result = beside.results.get(call.event_index)
    arguments, chars = arguments_quote(call.rest.get("arguments"))
    return ToolExecution(
        call=CallQuote(name=one_line(call.row.name or "", LABEL), arguments=arguments, chars=chars),
        result=None if result is None else _result(result, quotes),
        outcome=call.outcome,
        duration_ms=call.row.duration_ms,
        call_event=call.event_index,
        result_event=None if result is None else result.event_index,
        agent=beside.agents.get(call.event_index),
    )


def _result(result: StoredEvent, quotes: Quotes) -> ResultQuote:
    return ResultQuote(**quotes.quote(result.event_index, result.text, "content"))


def _without_texts(shown: Quote | ToolExecution | EventQuote | StepUsage) -> Any:
    """Return a part as shown, with only its coordinates."""
    if isinstance(shown, (Quote, EventQuote)):
        return replace(shown, text="...")
    if isinstance(shown, StepUsage):
        return shown
    call = shown.call and replace(shown.call, arguments="...")
    return replace(shown, call=call, result=shown.result and ResultQuote(content="..."))


def _turn(index: int | None, parts: list[Part]) -> TurnSteps:
    request = next((part.shown for part in parts if part.opens_turn and isinstance(part.shown, EventQuote)), None)
    beside = [part.shown for part in parts if isinstance(part.shown, EventQuote) and part.shown is not request]
    steps = [part for part in parts if not isinstance(part.shown, EventQuote)]
    return TurnSteps(
        turn_index=index,
        user_message=request.text if request else None,
        user_event=request.event_index if request else None,
        copied=parts[0].copied_turn or None,
        events=beside or None,
        steps=[_step(entry) for entry in _entries(steps)] or None,
    )


def _entries(parts: Iterable[Part]) -> list[list[Part]]:
    """Group adjacent parts of one step as long as each has a place of its own in it."""
    entries: list[list[Part]] = []
    for part in parts:
        if entries and entries[-1][0].step_index == part.step_index and _has_place(part, entries[-1]):
            entries[-1].append(part)
        else:
            entries.append([part])
    return entries


def _has_place(part: Part, entry: list[Part]) -> bool:
    """Whether a part fits into a step: one thought, then one message, then executions; token usage anywhere."""
    if isinstance(part.shown, ToolExecution):
        return True
    if isinstance(part.shown, StepUsage):
        return not any(isinstance(other.shown, StepUsage) for other in entry)
    before = [other for other in entry if not isinstance(other.shown, StepUsage)]
    return not before or (not part.is_reasoning and all(other.is_reasoning for other in before))


def _step(entry: list[Part]) -> StepDetail:
    shown: dict[str, Any] = {"step_index": entry[0].step_index}
    for part in entry:
        match part.shown:
            case ToolExecution():
                shown.setdefault("tools", []).append(part.shown)
            case StepUsage(tokens, context_tokens, incomplete):
                shown |= {"tokens": tokens, "context_tokens": context_tokens, "tokens_incomplete": incomplete}
                shown["usage_event"] = part.event_index
            case Quote():
                shown["reasoning" if part.is_reasoning else "message"] = part.shown
    return StepDetail(**shown)
