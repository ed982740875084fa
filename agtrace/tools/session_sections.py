"""The sections of a session that were requested by name: one in full, or the beginning of each of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agtrace_indexer.index.questions import events, sessions
from agtrace_schema.answers import ChildItem, FailedExecution, HumanRequest, LandmarkItem, TurnOverview
from agtrace_schema.model import Model, dump_all
from msgspec.structs import replace

from agtrace.sessions.sections import LISTS, Source
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages
from agtrace.text.next_call import NextCall, call
from agtrace.tools.session_arguments import NAME, View
from agtrace.tools.tool import kilobytes

_SMALLEST_ITEM = 40  # bytes
_SHOWN, _LANDMARKS_SHOWN = 10, 25
"""Items of each of several lists; landmarks are short."""

_ELSEWHERE = frozenset({"stats", "children", "total_children"})
"""Fields of the head that are not part of the section `session`."""


def answer_sections(view: View, names: Sequence[str]) -> tuple[Pages | dict[str, Any], NextCall]:
    """Return the sections with these names, and the next call."""
    lists = [name for name in names if name in LISTS]
    if len(names) == 1 and lists:
        return _pages(view, names[0])
    source = _source(view, sessions.newest_row(view.context.connection))
    found = {name: LISTS[name](source, (), _most(name)) for name in lists}
    facts: dict[str, Any] = {"session_id": view.session.uid}
    if "session" in names:
        facts |= {name: value for name, value in view.top.items() if name not in _ELSEWHERE}
    if "stats" in names:
        facts["stats"] = view.top["stats"]
    for name, section in found.items():
        facts |= {name: dump_all(section.items), f"total_{name}": section.total}
    longer = next((name for name, section in found.items() if section.total > _most(name)), None)
    if longer is not None:
        return facts, _rest_hint(view, longer, found[longer].total)
    return facts, _item_hint(view, [item for section in found.values() for item in section.items])


def _most(name: str) -> int:
    return _LANDMARKS_SHOWN if name == "landmarks" else _SHOWN


def _pages(view: View, name: str) -> tuple[Pages, NextCall]:
    """Return a single list, in pages."""
    newest, *behind = view.position or (sessions.newest_row(view.context.connection),)
    read = view.most_read // _SMALLEST_ITEM
    items, places, total = LISTS[name](_source(view, newest), tuple(behind), read + 1)
    pages = replace(view, top={"session_id": view.session.uid}).pages(
        min(len(items), read),
        lambda count: dump_all(items[:count]),
        lambda count: view.cursor(newest, *places[count - 1]),
        more=len(items) > read,
        total=total,
        key=name,
    )
    return pages, _item_hint(view, items)


def _source(view: View, newest_session: int) -> Source:
    connection, session = view.context.connection, view.session
    then = events.snapshot(connection, session.id, view.last_event)
    return Source(connection, session, view.context.prices, then, newest_session)


def _rest_hint(view: View, name: str, total: int) -> NextCall:
    """Return the call that lists a whole section."""
    size = kilobytes(min(_SMALLEST_ITEM * total, limits().usual - 1_500), min(1_000 + 700 * total, limits().usual))
    return call(NAME, session_id=view.shown_id, sections=[name]).saying(f"lists all {total} {name}", size)


def _item_hint(view: View, items: Sequence[Model]) -> NextCall:
    """Return the call that opens the first item that can be opened, or the first turn with a failure."""
    for item in items:
        if isinstance(item, FailedExecution):
            event = item.call_event if item.result_event is None else item.result_event
            return view.event_hint(event, "the first failure")
        if isinstance(item, HumanRequest):
            return view.event_hint(item.event_index, "the first request")
        if isinstance(item, LandmarkItem):
            return view.event_hint(item.event_index, f"this {item.kind.replace('_', ' ')}")
        if isinstance(item, ChildItem):
            return call(NAME, session_id=item.id).saying("shows the first child's turns", kilobytes(0, limits().usual))
    return view.failing_turn_hint([item for item in items if isinstance(item, TurnOverview)])
