"""One session, from overview to full text: by its turns, its steps, their parts, or as one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import orjson
from agtrace_indexer.index.queries import events, sessions
from agtrace_indexer.index.queries import turns as stored_turns
from agtrace_indexer.index.queries.sessions import Session
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
from agtrace_schema.requests import Level
from agtrace_schema.requests import Section as SectionName
from msgspec import Meta, Struct
from msgspec.structs import replace

from agtrace.problems import InvalidParameter
from agtrace.sessions import listing, parts, transcript, turns
from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.parts import LISTS, FocusedQuotes, Section, Source
from agtrace.sessions.query import find_session, last_event_of, short_id
from agtrace.sessions.quotes import Quotes, last_message, open_call
from agtrace.sessions.terms import failures_known
from agtrace.settings import ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Digest, Pages, Reply, Stream, fitting, full_names, projection
from agtrace.text.next_call import Hint, NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import Arguments, Cursor, Fields, FocusQuestion, SessionId, TurnIndex
from agtrace.tools.long_text import QUESTION, LongText, check_question, lines_asked
from agtrace.tools.tool import Context, Tool, opens_event, opens_turn, query_of

NAME = "get_session_details"

_BYTES = {
    "summary": (10_240, 15_360),
    "turns": (30_720, 30_720),
    "steps": (32_000, ABSOLUTE_MAX_BYTES),
    "full": (32_000, ABSOLUTE_MAX_BYTES),
}  # the default, and the maximum

_LANDMARKS = 2_048
"""Bytes of a page of landmarks."""

WITH_MORE = 4_096
"""The smallest answer in which an overview shows landmarks, its last message and what each turn came to; in a smaller
one the turns need the room."""

_MANY_FAILURES = 3
"""With this many failed calls, a diagnosis says more than the first of them."""

LARGEST_OVERVIEW = _BYTES["summary"][1]
"""The most bytes that level summary or a section may take."""


class GetSessionDetails(Arguments):
    """Arguments of get_session_details."""

    session_id: SessionId
    detail_level: Annotated[
        Level,
        Meta(
            description="summary: a line per turn; turns: a line per step; steps: 500 characters of every thought, "
            "message, call and output; full: verbatim."
        ),
    ] = "summary"
    sections: Annotated[list[SectionName], Meta(min_length=1, description="Only these, in full.")] | None = None
    fields: Annotated[Fields, Meta(description="Only these: title, stats.cost_usd, turns.outcome")] = None
    turn_index: TurnIndex = None
    include_reasoning: Annotated[bool, Meta(description="Quote the thinking (level turns).")] = False
    context_focus_question: FocusQuestion = None
    cursor: Cursor = None
    max_bytes: Annotated[
        Annotated[int, Meta(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)] | None,
        Meta(description="Default 32000 (steps, full)."),
    ] = None


class View(Struct, frozen=True):
    """A request for a session, and where its page begins."""

    context: Context
    wanted: GetSessionDetails
    session: Session
    shown_id: str
    last_event: int
    """The newest event of the snapshot."""
    position: tuple[int, ...]
    """Where the previous page ended, as each level counts; empty on the first page."""
    top: dict[str, Any]
    """The fields above the turns."""

    @property
    def budget(self) -> int:
        """The bytes that the answer may take."""
        default, most = _BYTES[self.wanted.detail_level]
        if self.wanted.sections == ["landmarks"]:
            default = _LANDMARKS
        if self.wanted.max_bytes:
            return min(self.wanted.max_bytes, most)
        return limits().size(default)

    @property
    def most_read(self) -> int:
        """The bytes of a page that nothing read for it may exceed by much."""
        return max(self.budget, LARGEST_OVERVIEW)

    def cursor(self, *position: int) -> str:
        """Return the cursor that continues after a position."""
        query = {**query_of(self.wanted), "session_id": self.session.uid}
        return self.context.cursors.make(NAME, query, (self.last_event, *position))

    def pages(
        self,
        size: int,
        build: Callable[[int], list[dict[str, Any]]],
        cursor: Callable[[int], str],
        *,
        more: bool,
        total: int | None = None,
        essential: Callable[[int], list[dict[str, Any]]] | None = None,
        key: str = "turns",
    ) -> Pages:
        """Return pages of turns, of parts of turns, or of another list."""
        smallest = essential or build
        return Pages(
            size=size,
            build=lambda count: {**self.top, key: build(count)},
            cursor=cursor,
            more=more,
            first=not self.position,
            total=total,
            essential=lambda count: {"session_id": self.session.uid, key: smallest(count)},
        )

    def hint(self, level: str, turn_index: int, what: str, *, after: str = ".") -> NextCall:
        """Return the call that opens a turn at a level."""
        opened = opens_turn(self.context.connection, self.session.id, self.shown_id, turn_index, what, level)
        return replace(opened, after=after)

    def event_hint(self, event_index: int, what: str) -> NextCall:
        """Return the call that opens an event."""
        return opens_event(self.shown_id, event_index, f"opens {what}")

    def lines_hint(self, event_index: int, first: int, last: int) -> NextCall:
        """Return the call that opens lines of an event that a question is not about."""
        lines = {"event_index": event_index, "start_line": first, "end_line": last}
        opened = call("get_event_details", session_id=self.shown_id, **lines)
        return opened.saying("opens lines left out of it", after="; likewise any others.")

    def onward_hint(self, turn_index: int | None) -> NextCall:
        """Return the call to make after a turn without failures: the next turn, or else the thinking."""
        following = stored_turns.following(self.context.connection, self.session.id, turn_index, self.last_event)
        if following is not None:
            return self.hint("turns", following, "shows the next turn")
        return call("get_reasoning_chain", session_id=self.shown_id, turn_index=turn_index).saying(
            "shows why it was done"
        )

    def failing_turn_hint(self, listed: list[TurnOverview]) -> NextCall:
        """Return the diagnosis of a session with many failures; else the first turn with a failure, or the first."""
        if self.session.failed_calls >= _MANY_FAILURES and not self.position and self.wanted.turn_index is None:
            opening = call("analyze_session", session_id=self.shown_id, include_loops=True)
            return opening.saying("shows what went wrong and where")
        with_failures = turns.failing_turns(self.context.connection, self.session, self.last_event)
        of_all = with_failures.turns[0] if with_failures else None
        first = next((item.turn_index for item in listed if item.failed_tools), of_all)
        opened = first if first is not None or not listed else listed[0].turn_index
        if opened is None:
            return self.event_hint(0, "its first event")
        several = with_failures is not None and with_failures.total > 1
        after = ". sections=['failures'] lists every failure." if several else "."
        return self.hint("turns", opened, f"shows the steps of turn {opened}", after=after)


def view_of(context: Context, request: GetSessionDetails) -> View:
    """Find the session and the start of the page. Raises what `find_session`, `check_turn` and `Cursors.read` raise."""
    connection = context.connection
    _check_sections(request)
    _check_question(request)
    session = find_session(connection, request.session_id)
    if request.turn_index is not None:
        turns.check_turn(connection, session, request.turn_index)
    shown_id, last_event = short_id(connection, session.uid), last_event_of(connection, session)
    if request.cursor is None:
        head = listing.session_head(connection, session, context.prices)
        if request.detail_level == "summary":
            head = replace(head, failing_turns=turns.failing_turns(connection, session, last_event))
        below = request.detail_level == "turns" or (
            request.detail_level != "summary" and request.turn_index is not None
        )
        top = {"session_id": session.uid} if below and not request.fields else dump(head)
        has_room = request.max_bytes is None or request.max_bytes >= WITH_MORE
        if has_room and request.detail_level == "summary" and not request.sections and request.turn_index is None:
            told = telling_landmarks(connection, session.id, last_event)
            top |= {"landmarks": dump_all(told.items)} if told.items else {}
            top |= {"total_landmarks": told.total} if told.items and told.total > len(told.items) else {}
            ended = last_message(connection, session, last_event)
            top |= {"last_message": ended} if ended else {}
            left_open = open_call(connection, session, last_event)
            top |= {"open_call": left_open} if left_open else {}
        return View(context, request, session, shown_id, last_event, (), top)
    query = {**query_of(request), "session_id": session.uid}
    last_event, *position = context.cursors.read(NAME, query, request.cursor)
    return View(context, request, session, shown_id, last_event, tuple(position), {"session_id": session.uid})


def _check_sections(request: GetSessionDetails) -> None:
    """Raise `InvalidParameter` for sections with a level or a turn: they cover the whole session."""
    if request.sections is None:
        return
    if request.detail_level != "summary":
        message = f"sections: leave out detail_level={request.detail_level!r}; sections work with level summary only"
        raise InvalidParameter("sections", message, "detail_level='summary'")
    if request.turn_index is not None:
        raise InvalidParameter("sections", "sections: leave out turn_index; sections cover the whole session")


def _check_question(request: GetSessionDetails) -> None:
    """Raise `InvalidParameter` for a question at a level without long texts, or with the cursor of a single text."""
    if request.context_focus_question is None:
        return
    if request.detail_level not in ("steps", "full"):
        given = "sections" if request.sections else f"detail_level={request.detail_level!r}"
        message = f"{QUESTION}: there are no long texts in {given}; it works with detail_level 'steps' and 'full'"
        raise InvalidParameter(QUESTION, message, "detail_level='steps' or 'full'", "full")
    if request.detail_level == "full":
        check_question(cursor=request.cursor)


_TURN_BYTES = 120  # the least that a turn takes

_MODELS: dict[str, type[Model]] = {
    "summary": SessionOverview,
    "turns": SessionTurns,
    "steps": SessionSteps,
    "full": SessionHead,
}
"""The model of the answer at each level; at level full, of what comes with the text."""


def answer(context: Context, request: GetSessionDetails) -> Reply:
    """Answer with a session at one of four levels, or by sections."""
    names = list(dict.fromkeys(request.sections or []))
    model = SessionSections if names else _MODELS[request.detail_level]
    fields = full_names(request.fields, model) if request.fields else None
    view = view_of(context, replace(request, fields=fields))
    only = projection(fields, model) if fields else None
    data, hint = _answer_sections(view, names) if names else _LEVELS[request.detail_level](view)
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
        total=stored_turns.count(connection, session.id, view.last_event) if only is None else len(listed),
    )
    return pages, view.failing_turn_hint(listed)


def _level_turns(view: View) -> tuple[Pages, NextCall]:
    """Level turns: every step, grouped by turn, and the call that opens the first turn with a failing step."""
    connection, session = view.context.connection, view.session
    turn, step = view.position or (-1, -1)
    found = turns.steps_of(
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
    stream = transcript.session_stream(
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
    start, lines = transcript.lines_from(found, first, last)
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


def _grouped(heads: list[dict[str, Any]], listed: list[turns.Step]) -> list[dict[str, Any]]:
    kept: dict[int, list[Any]] = {}
    for step in listed:
        kept.setdefault(step.turn_index, []).extend([] if step.summary is None else [dump(step.summary)])
    return [head | {"steps": kept[head["turn_index"]]} for head in heads if head["turn_index"] in kept]


# -- sections --------------------------------------------------------------------------------------

_SMALLEST_ITEM = 40  # bytes
_SHOWN, _LANDMARKS_SHOWN = 10, 25
"""Items of each of several lists; landmarks are short."""

_AROUND_LISTS = 1_500
"""Bytes of an answer besides several lists."""

_ELSEWHERE = frozenset({"stats", "children", "total_children"})
"""Fields of the head that are not part of the section `session`."""


def _answer_sections(view: View, names: Sequence[SectionName]) -> tuple[Pages | dict[str, Any], Hint]:
    lists = [name for name in names if name in LISTS]
    if len(names) == 1 and lists:
        return _section_pages(view, names[0])
    newest = sessions.newest_row(view.context.connection)
    source = _source(view, newest)
    found: dict[SectionName, Section] = {
        name: LISTS[name](source, (), _LANDMARKS_SHOWN if name == "landmarks" else _SHOWN) for name in lists
    }
    facts: dict[str, Any] = {"session_id": view.session.uid}
    if "session" in names:
        facts |= {name: value for name, value in view.top.items() if name not in _ELSEWHERE}
    if "stats" in names:
        facts["stats"] = view.top["stats"]
    lists_of, most = {name: dump_all(section.items) for name, section in found.items()}, _LANDMARKS_SHOWN
    while most > 1 and _size(facts | lists_of) > view.budget - _AROUND_LISTS:
        most //= 2
        lists_of = {name: items[:most] for name, items in lists_of.items()}
    totals = {f"total_{name}": section.total for name, section in found.items()}
    longer = [name for name, items in lists_of.items() if found[name].total > len(items)]
    if longer:
        onward = (_onward(view, name, newest, found[name], len(lists_of[name])) for name in longer[:2])
        return facts | lists_of | totals, tuple(onward)
    return facts | lists_of | totals, _item_hint(view, [item for section in found.values() for item in section.items])


def _onward(view: View, name: SectionName, newest: int, section: Section, most: int) -> NextCall:
    """Return the call that goes on with a section after its first items."""
    alone = replace(view, wanted=GetSessionDetails(session_id=view.shown_id, sections=[name]))
    rest = call(NAME, session_id=view.shown_id, sections=[name], cursor=alone.cursor(newest, *section.places[most - 1]))
    return rest.saying(f"lists the other {section.total - most} {name}", after=". ")


def _section_pages(view: View, name: str) -> tuple[Pages, NextCall]:
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
            return call(NAME, session_id=item.id).saying("shows the first child's turns")
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
