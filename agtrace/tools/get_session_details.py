"""One session, from overview to full text: by its turns, its steps, their parts, or as one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson
from agtrace_indexer.index.questions import events, sessions
from agtrace_schema.answers import (
    ChildItem,
    FailedExecution,
    HumanRequest,
    LandmarkItem,
    Pruning,
    SessionHead,
    SessionOverview,
    SessionSections,
    SessionSteps,
    SessionTurns,
    Transcript,
    TurnOverview,
)
from agtrace_schema.model import Model, dump, dump_all
from msgspec.structs import replace

from agtrace.sessions import long_texts, parts, steps, transcript, turns
from agtrace.sessions.focused_quotes import FocusedQuotes
from agtrace.sessions.known_failures import failures_known
from agtrace.sessions.quotes import Quotes
from agtrace.sessions.sections import LISTS, Source
from agtrace.settings.limits import limits
from agtrace.shaping.projection import meant, projection
from agtrace.shaping.replies import Digest, Pages, Reply, Stream, fitting
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.focusing import lines_asked
from agtrace.tools.long_text import LongText
from agtrace.tools.session_arguments import NAME, WITH_MORE, GetSessionDetails, View, view_of
from agtrace.tools.tool import Context, Tool, kilobytes

_TURN_BYTES = 120  # the least that a turn takes

_MODELS: dict[str, type[Model]] = {
    "summary": SessionOverview,
    "turns": SessionTurns,
    "steps": SessionSteps,
    "full": SessionHead,
}
"""The model of the answer at each level; at level full, of what comes with the text."""


def answer(context: Context, wanted: GetSessionDetails) -> Reply:
    """Answer with a session at one of four levels, or by sections."""
    names = list(dict.fromkeys(wanted.sections or []))
    model = SessionSections if names else _MODELS[wanted.detail_level]
    fields = meant(wanted.fields, model) if wanted.fields else None
    view = view_of(context, replace(wanted, fields=fields))
    only = projection(fields, model) if fields else None
    data, hint = _answer_sections(view, names) if names else _LEVELS[wanted.detail_level](view)
    if fields and isinstance(data, Pages) and not _asks_for(fields, names[0] if names else "turns"):
        data = view.top
    session = view.session
    return Reply(
        summary=_headline(view),
        data=data,
        budget=view.budget,
        hint=hint,
        reference=f"ax://session/{view.shown_id}",
        untrusted=True,
        counts={
            "total_turns": session.turn_count,
            "tool_calls": session.tool_calls,
            "failed_calls": session.failed_calls,
        },
        only=only,
    )


def _asks_for(fields: list[str], key: str) -> bool:
    """Whether some of the requested fields belong to the items of this list."""
    return any(field.partition(".")[0] == key for field in fields)


def _headline(view: View) -> str:
    session = view.session
    outcome: str = turns.last_outcome(view.context.connection, session)
    if outcome == "unknown":
        outcome = f"unknown ({turns.why_unknown(view.context.connection, session)})"
    failed, calls = session.failed_calls, session.tool_calls
    state = f"{failed} of {calls} tool calls failed" if failed else "no failed tool calls"
    if not failures_known(session.provider, calls):
        state = f"{counted(calls, 'tool call')} whose results aren't logged"
    size = f"{counted(session.event_count, 'event')}, {counted(session.turn_count, 'turn')}"
    start, end = session.started_at, session.ended_at
    lasted = "" if start is None or end is None else f"{(end - start) // 1000} s, "
    return f"Session {view.shown_id}: {outcome}, {state} ({lasted}{size})"


def _level_summary(view: View) -> tuple[Pages, NextCall]:
    """Level summary: one line per turn, and the call that opens the first turn with a failure."""
    connection, session = view.context.connection, view.session
    only, (behind,) = view.wanted.turn_index, view.position or (-1,)
    start, most = (behind + 1, view.most_read // _TURN_BYTES) if only is None else (only, 1)
    listed = turns.turn_overviews(connection, session, start, view.last_event, most + 1)
    more, listed = only is None and len(listed) > most, listed[:most]
    if view.budget >= WITH_MORE and (not view.wanted.fields or _asks_for(view.wanted.fields, "turns")):
        listed = turns.with_answers(connection, session, listed, but=view.top.get("last_message", (None,))[0])
    pages = view.pages(
        len(listed),
        lambda count: dump_all(listed[:count]),
        lambda count: view.cursor(listed[count - 1].turn_index),
        more=more,
        total=turns.count_turns(connection, session, view.last_event) if only is None else len(listed),
    )
    return pages, view.failing_turn_hint(listed)


def _level_turns(view: View) -> tuple[Pages, NextCall]:
    """Level turns: every step, grouped by turn, and the call that opens the first turn with a failing step."""
    connection, session = view.context.connection, view.session
    turn, step = view.position or (-1, -1)
    found = steps.steps_of(
        connection,
        session,
        behind=(turn, step),
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
        include_reasoning=view.wanted.include_reasoning,
    )
    listed, more = fitting(found, lambda item: _size(item.summary) if item.summary else _TURN_BYTES, view.budget)
    heads = [dump(turn) for turn in turns.turn_details(connection, session, listed)]
    pages = view.pages(
        len(listed),
        lambda count: _grouped(heads, listed[:count]),
        lambda count: view.cursor(listed[count - 1].turn_index, listed[count - 1].step_index),
        more=more,
    )
    failing = next(
        (item for item in listed if item.summary and item.summary.failed_tools), listed[0] if listed else None
    )
    if failing is None:
        return pages, view.event_hint(0, "its first event")
    return pages, view.hint("steps", failing.turn_index, "shows the input and output of its tools")


def _level_steps(view: View) -> tuple[Pages, NextCall]:
    """Level steps: every part of every step, and the call that opens the first failed execution."""
    (behind,) = view.position or (-1,)
    question = view.wanted.context_focus_question
    quotes = Quotes() if question is None else FocusedQuotes(question)
    found = parts.parts_of(
        view.context.connection,
        view.session,
        behind=behind,
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
        quotes=quotes,
    )
    listed, more = fitting(found, lambda part: _size(part.shown), view.budget)
    pages = view.pages(
        len(listed),
        lambda count: dump_all(parts.by_turns(listed[:count])),
        lambda count: view.cursor(listed[count - 1].event_index),
        more=more,
        essential=lambda count: dump_all(parts.by_turns(part.without_texts for part in listed[:count])),
    )
    failure = next((part.failure for part in listed if part.failure is not None), None)
    if isinstance(quotes, FocusedQuotes):
        pages = replace(pages, pruning=lambda count: quotes.told(part.quoted for part in listed[:count]))
        gap = quotes.first_gap(failure)
        if gap is not None:
            return pages, view.lines_hint(*gap)
    if failure is not None:
        return pages, view.event_hint(failure, "the first failure")
    return pages, view.onward_hint(listed[-1].turn_index if listed else None)


def _level_full(view: View) -> tuple[Stream | Digest, NextCall]:
    """Level full: the canonical text of the session, and the call that opens the first event in it."""
    question = view.wanted.context_focus_question
    unfocused = None
    if question is not None:
        asked = _lines_asked(view, question)
        if isinstance(asked, Digest):
            return asked, view.event_hint(0, "its first event")
        unfocused = dump(asked)
    stream = long_texts.session_stream(
        view.context.connection,
        view.session,
        last_event=view.last_event,
        place=view.position,
        budget=view.budget,
        frame=view.top,
        essential={"session_id": view.session.uid},
        cursor=view.cursor,
        turn_index=view.wanted.turn_index,
        unfocused=unfocused,
    )
    first = stream.entries[0].event_index if stream.entries else 0
    return stream, view.event_hint(first, "the first of these events with its links")


def _lines_asked(view: View, question: str) -> Digest | Pruning:
    """Return the lines of the session, or of a turn, that a question is about, or why not.

    They are numbered as read_artifact numbers those of the session.
    """
    connection, session, last_event = view.context.connection, view.session, view.last_event
    first, last = 0, last_event
    if view.wanted.turn_index is not None:
        first, last = transcript.turn_span(connection, session, view.wanted.turn_index, last_event)
    found = transcript.entries(connection, session, 0, last_event, None)
    start, lines = long_texts.lines_from(found, first, last)
    whole = partial(call, "read_artifact", ref=f"ax://session/{view.shown_id}")
    given = LongText(whole, view.top, "text", None, view.event_hint(first, "the first of these events"))
    asked = lines_asked(given, question, lines, start, max_bytes=view.wanted.max_bytes)
    essential = {"session_id": session.uid}
    return replace(asked, essential=essential) if isinstance(asked, Digest) else asked


_LEVELS: dict[str, Callable[[View], tuple[Pages | Stream | Digest, NextCall]]] = {
    "summary": _level_summary,
    "turns": _level_turns,
    "steps": _level_steps,
    "full": _level_full,
}


def _size(model: Any) -> int:
    """Return the least bytes that a model takes in an answer."""
    return len(orjson.dumps(model, default=dump))


def _grouped(heads: list[dict[str, Any]], listed: list[steps.Step]) -> list[dict[str, Any]]:
    """Return the turns of these steps, each with only these steps."""
    kept: dict[int, list[Any]] = {}
    for step in listed:
        kept.setdefault(step.turn_index, []).extend([] if step.summary is None else [dump(step.summary)])
    return [head | {"steps": kept[head["turn_index"]]} for head in heads if head["turn_index"] in kept]


# -- sections --------------------------------------------------------------------------------------

_SMALLEST_ITEM = 40  # bytes
_SHOWN, _LANDMARKS_SHOWN = 10, 25
"""Items of each of several lists; landmarks are short."""

_ELSEWHERE = frozenset({"stats", "children", "total_children"})
"""Fields of the head that are not part of the section `session`."""


def _answer_sections(view: View, names: Sequence[str]) -> tuple[Pages | dict[str, Any], NextCall]:
    """Return the sections with these names, and the next call."""
    lists = [name for name in names if name in LISTS]
    if len(names) == 1 and lists:
        return _section_pages(view, names[0])
    source = _source(view, sessions.newest_row(view.context.connection))
    found = {name: LISTS[name](source, (), _most_items(name)) for name in lists}
    facts: dict[str, Any] = {"session_id": view.session.uid}
    if "session" in names:
        facts |= {name: value for name, value in view.top.items() if name not in _ELSEWHERE}
    if "stats" in names:
        facts["stats"] = view.top["stats"]
    for name, section in found.items():
        facts |= {name: dump_all(section.items), f"total_{name}": section.total}
    longer = next((name for name, section in found.items() if section.total > _most_items(name)), None)
    if longer is not None:
        return facts, _rest_hint(view, longer, found[longer].total)
    return facts, _item_hint(view, [item for section in found.values() for item in section.items])


def _most_items(name: str) -> int:
    return _LANDMARKS_SHOWN if name == "landmarks" else _SHOWN


def _section_pages(view: View, name: str) -> tuple[Pages, NextCall]:
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


TOOL = Tool(
    NAME,
    "Open a session",
    "One session, from overview to full text; landmarks: its commits, pull requests, test runs. Start with level "
    "summary, go deeper with turn_index. Next: get_event_details.",
    GetSessionDetails,
    (SessionOverview, SessionTurns, SessionSteps, Transcript, SessionSections),
    answer,
)
