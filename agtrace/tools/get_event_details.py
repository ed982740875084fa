"""One event, whole or in chunks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agtrace import events
from agtrace.arguments import Arguments, Cursor, SessionId
from agtrace.cutting import one_line
from agtrace.query import find_event, find_session, short_id
from agtrace.replies import Body, Reply
from agtrace.settings import ABSOLUTE_MAX_BYTES
from agtrace.tools.tool import Context, Tool, dump, query_of

_BYTES = 10_240


class GetEventDetails(Arguments):
    """Arguments of get_event_details."""

    session_id: SessionId
    event_index: Annotated[int, Field(ge=0, le=2**53)]
    cursor: Cursor = None
    max_bytes: Annotated[
        int | None, Field(ge=2_048, le=ABSOLUTE_MAX_BYTES, description="Bytes of an answer; default 10240.")
    ] = None


def answer(context: Context, wanted: GetEventDetails) -> Reply:
    """One event, whole or in chunks (R-115)."""
    connection = context.connection
    session = find_session(connection, wanted.session_id)
    event = find_event(connection, session, wanted.event_index)
    query = {**query_of(wanted), "session_id": session["uid"]}
    offset = line = chunk = 0
    if wanted.cursor is not None:
        offset, line, chunk = context.cursors.read(TOOL.name, query, wanted.cursor)
    if event.type == "TokenUsage":
        event.rest.update(events.token_usage(connection, session["id"], event.event_index))
    described = dump(events.details(connection, session, event))
    shown = short_id(connection, session["uid"])
    outcome = f", {event.outcome}" if event.outcome else ""
    name = f" {event.row['name']}" if event.row["name"] else ""
    return Reply(
        summary=one_line(f"Event {event.event_index} of {shown}: {event.type}{name}{outcome}", 100),
        data=Body(
            text=events.canonical_text(event),
            frame=described,
            key=events.text_key(event),
            whole=events.whole(event),
            cursor=lambda *position: context.cursors.make(TOOL.name, query, position),
            offset=offset,
            line=line,
            chunk=chunk,
        ),
        budget=wanted.max_bytes or _BYTES,
        hint=_event_hint(shown, described),
        reference=events.reference(connection, session, event.event_index),
        untrusted=True,
    )


def _event_hint(session_id: str, described: dict[str, Any]) -> str:
    for link, what in (("call_event", "the call of this result"), ("result_event", "the result of this call")):
        if described.get(link) is not None:
            return f"get_event_details(session_id={session_id!r}, event_index={described[link]}) opens {what} (1-5 KB)."
    if described.get("turn_index") is not None:
        turn = described["turn_index"]
        call = f"get_session_details(session_id={session_id!r}, detail_level='turns', turn_index={turn})"
        return f"{call} shows what happened around it (1-30 KB)."
    return f"get_session_details(session_id={session_id!r}) shows its session (2-10 KB)."


TOOL = Tool(
    "get_event_details",
    "Open an event",
    "One event, verbatim: the whole prompt, answer, tool arguments or output, with the event of its call or "
    "result. Long texts come in chunks; follow chunk.next_cursor.",
    GetEventDetails,
    answer,
)
