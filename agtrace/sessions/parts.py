"""A session part by part, in file order, and by its sections: lists that can be paged to their end, and facts.

All pages of a section show it as it was at the first page, without copies from another session: later items are not in
it, and items retracted later still are. Only counters of the same items may have grown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index.queries import calls, events, landmarks, sessions, usage
from agtrace_indexer.index.queries import turns as stored_turns
from agtrace_indexer.index.queries.events import Event, ReadText, Snapshot, StoredEvent, text_reader, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.index.queries.usage import Figures
from agtrace_indexer.redact import redact
from agtrace_schema.answers import (
    CallQuote,
    EventQuote,
    FailedExecution,
    HumanRequest,
    Pruning,
    Quote,
    ResultQuote,
    StepDetail,
    ToolExecution,
    ToolUse,
    TurnSteps,
)
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.model import Model, dump
from msgspec import Struct
from msgspec.structs import replace

from agtrace.sessions import listing, turns
from agtrace.sessions.counting import files_by_use, touched_files
from agtrace.sessions.landmarks import landmark_items
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import short_id
from agtrace.sessions.quotes import Quotes, arguments_quote, beginning, failure_text, start_of
from agtrace.sessions.turns import StepUsage, telling_argument
from agtrace.sessions.usage import Usage, model_totals, usage_of
from agtrace.settings.limits import limits
from agtrace.shaping.focusing import MOST_CHARS, applied, focused, gaps, refused
from agtrace.text.focus import Focused
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, one_line, without_controls

_QUOTE, _ARGUMENT = 120, 100


class Source(NamedTuple):
    """A session as of a snapshot."""

    connection: sqlite3.Connection
    session: Session
    prices: PriceTable
    then: Snapshot
    newest_session: int
    """The newest session of the index."""


class Section(NamedTuple):
    """A list from some position on."""

    items: Sequence[Model]
    places: Sequence[tuple[int, ...]]
    """The position after each item."""
    total: int
    """The length of the whole list."""


def _tools(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the tools, most used first."""
    place = (behind[0], behind[1]) if behind else None
    found = calls.tools(source.connection, source.session.id, source.then, behind=place, most=most)
    items = [
        ToolUse(name=one_line(tool.name or NO_TOOL, LABEL), calls=-tool.rank, failed=tool.failed) for tool in found
    ]
    return Section(items, [(tool.rank, tool.first) for tool in found], found[0].total if found else 0)


def _files(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the files, most written first; every page makes the whole list again, in the same order."""
    (start,) = behind or (0,)
    found = files_by_use(touched_files(source.connection, source.session, same_project=True, then=source.then))
    items = found[start : start + most]
    return Section(items, [(start + number,) for number in range(1, len(items) + 1)], len(found))


def _failures(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the executions that failed or were rejected or interrupted, in file order."""
    connection, session_row, then = source.connection, source.session.id, source.then
    found = calls.failures(connection, session_row, then, behind=behind[0] if behind else -1, most=most)
    opened = with_texts(connection, events.several(connection, session_row, (call.shown for call in found)))
    provider = source.session.provider
    asked = with_texts(connection, events.several(connection, session_row, (call.call_event for call in found)))
    arguments = {call.event_index: telling_argument(call.rest.get("arguments")) for call in asked}
    quotes = {event.event_index: one_line(start_of(failure_text(provider, event)), _QUOTE) for event in opened}
    items = [
        FailedExecution(
            turn_index=call.turn_index,
            call_event=call.call_event,
            result_event=call.result_event,
            tool=one_line(call.tool or NO_TOOL, LABEL),
            outcome=call.outcome,
            argument=one_line(start_of(arguments.get(call.call_event, "")), _ARGUMENT) or None,
            quote=quotes[call.shown],
        )
        for call in found
    ]
    total = calls.count_failures(connection, session_row, then)
    return Section(items, [(call.call_event,) for call in found], total)


def _landmarks(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return what the session did, in file order."""
    connection, session_row, then = source.connection, source.session.id, source.then
    place = (behind[0], behind[1]) if behind else None
    found = landmarks.landmarks_then(connection, session_row, then, behind=place, most=most)
    total = landmarks.count_landmarks_then(connection, session_row, then)
    items = landmark_items(connection, session_row, found)
    return Section(items, [(one.event_index, one.number) for one in found], total)


def _requests(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the human requests, in file order."""
    connection, session_row, then = source.connection, source.session.id, source.then
    found = events.requests_then(connection, session_row, then, behind=behind[0] if behind else -1, most=most)
    items = [
        HumanRequest(event_index=one.event_index, turn_index=one.turn_index, text=one_line(one.text, USER_MESSAGE))
        for one in found
    ]
    total = events.count_requests_then(connection, session_row, then)
    return Section(items, [(one.event_index,) for one in found], total)


def _models(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the models in order of first use."""
    connection, session_row = source.connection, source.session.id
    used = usage_of(connection, source.prices, [session_row]).get(session_row, Usage())
    models = usage.models_then(connection, session_row, source.then)
    first = {name or "unknown": event for name, event in models.items()}
    left = [name for name in first if name in used.models and first[name] > (behind[0] if behind else -1)][:most]
    items = [model_totals(name, used.models[name]) for name in left]
    return Section(items, [(first[name],) for name in left], len(first))


def _children(source: Source, behind: tuple[int, ...], most: int) -> Section:
    """Return the sessions that derive from this one, oldest first."""
    all_of_it = sessions.children(source.connection, source.session)
    children = [child for child in all_of_it if child.id <= source.newest_session]
    places = [(child.started_at or 0, child.id) for child in children]
    left = [number for number, place in enumerate(places) if place > behind][:most]
    items = [listing.child_item(source.connection, children[number]) for number in left]
    return Section(items, [places[number] for number in left], len(children))


def _turns(source: Source, behind: tuple[int, ...], most: int) -> Section:
    start = behind[0] + 1 if behind else 0
    items = turns.turn_overviews(source.connection, source.session, start, source.then.last_event, most)
    total = stored_turns.count(source.connection, source.session.id, source.then.last_event)
    return Section(items, [(item.turn_index,) for item in items], total)


LISTS: dict[str, Callable[[Source, tuple[int, ...], int], Section]] = {
    "children": _children,
    "turns": _turns,
    "tools": _tools,
    "files": _files,
    "failures": _failures,
    "models": _models,
    "landmarks": _landmarks,
    "requests": _requests,
}
"""Section -> function that returns the list from a position on, with at most this many items."""


_SEPARATORS = {0x2028: " ", 0x2029: " "}  # which would become newlines, and change the numbers of lines


class FocusedQuotes(Quotes):
    """Quotes of what a question is about, for one page. A text that it tells nothing about has its beginning quoted."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._left = MOST_CHARS
        self._found: dict[int, Focused | Pruning] = {}

    def quote(self, event_index: int, text: str, key: str = "text") -> dict[str, Any]:
        """Return what is shown of the text of an event; lines left out have the numbers of get_event_details."""
        longest = limits().settings.limits.max_string_length
        if len(text) <= longest:
            return beginning(text, key)
        found = self._found[event_index] = self._focused(text, longest)
        if isinstance(found, Pruning):
            return beginning(text, key)
        return {key: without_controls(found.text.translate(_SEPARATORS)), "chars": len(text)}

    def told(self, event_indices: Iterable[int | None]) -> dict[str, Any]:
        """Return what became of the question for the texts of these events."""
        found = [self._found[index] for index in event_indices if index in self._found]
        kept = [one for one in found if isinstance(one, Focused)]
        if kept:
            return applied(sum(one.kept_lines for one in kept), sum(one.total_lines for one in kept))
        why = next((one for one in found if isinstance(one, Pruning)), refused(0))
        return dump(why or Pruning(reason="not_prunable", summary="no long text"))

    def first_gap(self, event_index: int | None) -> tuple[int, int, int] | None:
        """Return an event and the numbers of the first lines left out of its text, of this one if possible."""
        kept = {index: found for index, found in self._found.items() if isinstance(found, Focused)}
        if not kept:
            return None
        chosen = event_index if event_index in kept else next(iter(kept))
        return (chosen, *gaps(kept[chosen])[0])

    def _focused(self, text: str, most: int) -> Focused | Pruning:
        why = refused(len(text) + MOST_CHARS - self._left)
        if why is not None:
            return why
        self._left -= len(text)
        return focused(redact(text), self._question, most, size=len)


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
        shown = self.shown
        if isinstance(shown, (Quote, EventQuote)):
            return self._replace(shown=replace(shown, text="..."))
        if isinstance(shown, StepUsage):
            return self
        call = shown.call and replace(shown.call, arguments="...")
        return self._replace(shown=replace(shown, call=call, result=shown.result and ResultQuote(content="...")))


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
    from_event = behind + 1
    found = events.of_session(connection, session.id, then, from_event=from_event, turn_index=turn_index, answers=False)
    while some := list(islice(found, _READ_AT_ONCE)):
        beside = _Beside.of(connection, session, [placed.event for placed in some], read)
        for placed in some:
            event = read(placed.event)
            yield Part(
                event_index=event.event_index,
                turn_index=placed.turn_index,
                step_index=None if placed.turn_index is None else placed.event.step_index,
                opens_turn=placed.opens_turn,
                shown=_shown(event, beside, quotes, opens=placed.opens_turn),
                copied_turn=placed.copied_turn,
                is_reasoning=event.type == EventType.REASONING,
            )


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
