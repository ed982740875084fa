"""One event: whole, in chunks, a range of its lines, or a digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from agtrace_indexer.index.queries import files, turns
from agtrace_indexer.index.queries.events import StoredEvent
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.answers import EventDetails, EventsAround
from agtrace_schema.model import dump
from agtrace_schema.requests import MOST_AROUND, Mode
from msgspec import Meta

from agtrace.problems import InvalidParameter
from agtrace.sessions import events, quotes
from agtrace.sessions.query import find_event, find_session, last_event_of, short_id
from agtrace.shaping.replies import Reply
from agtrace.text.lines import LABEL, SUMMARY, name_in_sentence, one_line
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import LARGEST, SessionId
from agtrace.tools.long_text import LongText, TextArguments, asked_part, budget_of, check_asked, part_asked
from agtrace.tools.tool import Context, Tool, opens_event, opens_turn, query_of

_AROUND = 4
"""Events before and after one that a hint offers."""


class GetEventDetails(TextArguments):
    """Arguments of get_event_details."""

    session_id: SessionId
    event_index: Annotated[int, Meta(ge=0, le=LARGEST)]
    around: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_AROUND)] | None,
        Meta(description="So many lines before and after it, a line an event."),
    ] = None
    mode: Annotated[Mode | None, Meta(description="Digest, failing lines first; default verbatim.")] = None


def answer(context: Context, request: GetEventDetails) -> Reply:
    """Answer with one event."""
    check_asked(request)
    connection = context.connection
    session = find_session(connection, request.session_id)
    event = find_event(connection, session, request.event_index)
    if request.around:
        return _around(context, request, session, event, request.around)
    query = {**query_of(request), "session_id": session.uid}
    if event.type == "TokenUsage":
        event.rest.update(events.token_usage(connection, session.id, event.event_index))
    described = dump(events.details(connection, session, event))
    shown = short_id(connection, session.uid)
    hint = _after_event(connection, session, shown, described)
    text = LongText(
        call=partial(call, TOOL.name, session_id=shown, event_index=event.event_index),
        frame=described,
        key=events.text_key(event),
        within="payload",
        hint=hint,
        text=events.canonical_text(event),
        output=event.type == "ToolResult",
        whole=events.whole(event),
    )
    data = asked_part(
        text,
        request,
        lambda cursor: context.cursors.read(TOOL.name, query, cursor),
        lambda *position: context.cursors.make(TOOL.name, query, position),
    )
    outcome = f", {event.outcome}" if event.outcome else ""
    outcome += ", rolled back" if event.row.rolled_back else ""
    name = f" {name_in_sentence(event.row.name, LABEL)}" if event.row.name else ""
    what = f"Event {event.event_index} of {shown}: {event.type}{name}{outcome}"
    return Reply(
        summary=one_line(what + part_asked(request), SUMMARY),
        data=data,
        budget=budget_of(request),
        hint=hint,
        reference=events.reference(connection, session, event.event_index),
        untrusted=True,
    )


def _around(context: Context, request: GetEventDetails, session: Session, event: StoredEvent, most: int) -> Reply:
    """Answer with the events near one. Raises `InvalidParameter` if its own text is asked for, too."""
    for name in ("mode", "start_line", "end_line", "cursor", "context_focus_question"):
        if getattr(request, name) is not None:
            raise InvalidParameter("around", f"around: lists events, so leave out {name}")
    connection, index = context.connection, event.event_index
    shown = short_id(connection, session.uid)
    last_event = last_event_of(connection, session)
    lines = quotes.around(connection, session, index, most, last_event)
    return Reply(
        summary=f"{counted(len(lines), 'event')} around event {index} of {shown}; [event_index, who, text]",
        data=dump(EventsAround(session_id=shown, last_event=last_event, around=lines)),
        budget=budget_of(request),
        hint=_after_lines(connection, session, shown, event),
        reference=events.reference(connection, session, index),
        untrusted=True,
    )


def _after_event(connection: sqlite3.Connection, session: Session, shown_id: str, event: Mapping[str, Any]) -> NextCall:
    """Return the next call for an event as get_event_details describes it."""

    def opens(event_index: int, what: str) -> NextCall:
        return opens_event(shown_id, event_index, f"opens {what}")

    later, result = event.get("later"), event.get("result_event")
    if later:
        again = "the same call" if later["same_call"] else "a similar call"
        change, command = later.get("changes", [-1])[-1], later.get("command", -1)
        if max(change, command) >= 0:
            what = "change" if change > command else "command"
            last = f"the last {what} before {again} succeeded (event {later['succeeded']})"
            return opens(max(change, command), last)
        return opens(later.get("result_event", later["succeeded"]), f"the result of {again} that succeeded")
    if result is not None and not files.writes(connection, session.id, event["event_index"]):  # a write's says little
        return opens(result, "the result of this call")
    turn = event.get("turn_index")
    if turn is not None:
        opened = call("get_event_details", session_id=shown_id, event_index=event["event_index"], around=_AROUND)
        what = "was tried after it" if event.get("outcome") == "failed" else "happened around it"
        return opened.saying(f"shows what {what}")
    return call("get_session_details", session_id=shown_id).saying("shows its session")


def _after_lines(connection: sqlite3.Connection, session: Session, shown_id: str, event: StoredEvent) -> NextCall:
    """Return the next call after the events around one: its whole turn, or else the event itself."""
    turn = event.row.turn_index
    if turn is None or not turns.exists(connection, session.id, turn):
        return opens_event(shown_id, event.event_index, "opens it")
    return opens_turn(connection, session.id, shown_id, turn, "shows the whole turn")


TOOL = Tool(
    "get_event_details",
    "Open an event",
    "One event, verbatim, with the event of its call or result; for a failed one also the later call that "
    "succeeded and the changes before it. Long texts come in chunks: follow chunk.next_cursor, give lines, set mode "
    "for a digest, or ask a context_focus_question for the lines it is about.",
    GetEventDetails,
    (EventDetails, EventsAround),
    answer,
)
