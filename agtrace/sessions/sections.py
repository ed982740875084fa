"""The sections of a session: lists that can be paged to their end, and facts.

All pages show a list as it was at the first page, without copies from another session: later items are not in it, and
items retracted later still are. Only counters of the same items may have grown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agtrace_indexer.index.questions import calls, events, landmarks, sessions, usage
from agtrace_indexer.index.questions.events import Snapshot
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import with_texts
from agtrace_schema.answers import FailedExecution, HumanRequest, ToolUse
from agtrace_schema.model import Model

from agtrace.sessions import listing, turns
from agtrace.sessions.files import files_by_use, touched_files
from agtrace.sessions.landmarks import landmark_items
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.quotes import seen
from agtrace.sessions.said import telling
from agtrace.sessions.steps import telling_argument
from agtrace.sessions.usage import Usage, model_totals, usage_of
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, one_line

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
    found = calls.tools_then(source.connection, source.session.id, source.then, behind=place, most=most)
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
    found = calls.failures_then(connection, session_row, then, behind=behind[0] if behind else -1, most=most)
    opened = with_texts(connection, events.several(connection, session_row, (call.shown for call in found)))
    provider = source.session.provider
    asked = with_texts(connection, events.several(connection, session_row, (call.call_event for call in found)))
    arguments = {call.event_index: telling_argument(call.rest.get("arguments")) for call in asked}
    quotes = {event.event_index: one_line(seen(telling(provider, event)), _QUOTE) for event in opened}
    items = [
        FailedExecution(
            turn_index=call.turn_index,
            call_event=call.call_event,
            result_event=call.result_event,
            tool=one_line(call.tool or NO_TOOL, LABEL),
            outcome=call.outcome,
            argument=one_line(seen(arguments.get(call.call_event, "")), _ARGUMENT) or None,
            quote=quotes[call.shown],
        )
        for call in found
    ]
    total = calls.count_failures_then(connection, session_row, then)
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
    total = turns.count_turns(source.connection, source.session, source.then.last_event)
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
