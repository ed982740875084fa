"""search_events: the search under its former name and arguments, for clients that still call it."""

from __future__ import annotations

from typing import Annotated, Any

from agtrace_schema.answers import SearchResult
from agtrace_schema.events import EventType
from msgspec import Meta
from msgspec.structs import replace

from agtrace.sessions.events import canonical_text, text_key
from agtrace.sessions.query import find_event, find_session
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.next_call import Hint, call
from agtrace.tools import search_event_previews
from agtrace.tools.arguments import Agent, Arguments, Cursor, Limit, arguments_of
from agtrace.tools.search_event_previews import SearchEventPreviews
from agtrace.tools.tool import Context, Tool

_QUOTED = 200
_OWN = frozenset({"pattern", "limit", "include_full_payload"})


class SearchEvents(Arguments):
    """Arguments of search_events."""

    pattern: Annotated[str, Meta(max_length=2000)]
    limit: Limit = 10
    cursor: Cursor = None
    provider: Agent | None = None
    event_type: EventType | None = None
    session_id: Annotated[str, Meta(max_length=200)] | None = None
    include_full_payload: bool = False


def answer(context: Context, wanted: SearchEvents) -> Reply:
    """Answer as search_event_previews does, with the call that replaces this one as the hint."""
    given = {name: value for name, value in arguments_of(wanted).items() if name not in _OWN}
    asked = SearchEventPreviews(query=wanted.pattern, order="newest", limit=wanted.limit, **given)
    other: Hint = f"{search_event_previews.TOOL.name} replaces search_events; get_event_details opens a match."
    if len(wanted.pattern) <= _QUOTED:
        other = call(search_event_previews.TOOL.name, **arguments_of(replace(asked, cursor=None)))
        other = other.saying("replaces search_events", after="; get_event_details opens a match.")
    result = replace(search_event_previews.answer(context, asked), hint=other)
    if not wanted.include_full_payload or not isinstance(result.data, Pages):
        return result
    build = result.data.build

    def whole(count: int) -> dict[str, Any]:
        matches, connection = build(count)["matches"], context.connection
        opened = [
            find_event(connection, find_session(connection, one["session_id"]), one["event_index"]) for one in matches
        ]
        texts = [{"payload": {text_key(event): canonical_text(event)}} for event in opened]
        return {"matches": [one | text for one, text in zip(matches, texts, strict=True)]}

    return replace(result, data=replace(result.data, build=whole))


TOOL = Tool(
    "search_events",
    "Search events (deprecated)",
    "Deprecated: use search_event_previews, which has filters.",
    SearchEvents,
    (SearchResult,),
    answer,
)
