"""search_events: the search under its former name and arguments, for clients that still call it."""

from __future__ import annotations

from typing import Annotated

from agtrace_schema.answers import SearchResult
from msgspec import Meta
from msgspec.structs import replace

from agtrace.shaping.replies import Reply
from agtrace.text.next_call import Hint, call
from agtrace.tools import search_event_previews
from agtrace.tools.arguments import Arguments, Cursor, Limit
from agtrace.tools.search_event_previews import SearchEventPreviews
from agtrace.tools.tool import Context, Tool

_QUOTED = 200


class SearchEvents(Arguments):
    """Arguments of search_events."""

    pattern: Annotated[str, Meta(max_length=2000)]
    limit: Limit = 10
    cursor: Cursor = None
    include_full_payload: Annotated[bool, Meta(description="Ignored.")] = False


def answer(context: Context, wanted: SearchEvents) -> Reply:
    """Answer as search_event_previews does, with the call that replaces this one as the hint."""
    found = search_event_previews.answer(
        context, SearchEventPreviews(query=wanted.pattern, order="newest", limit=wanted.limit, cursor=wanted.cursor)
    )
    return replace(found, hint=_hint(wanted))


def _hint(wanted: SearchEvents) -> Hint:
    says, after = "replaces search_events", "; get_event_details opens a match."
    if len(wanted.pattern) > _QUOTED:
        return f"search_event_previews(query=..., order='newest', limit={wanted.limit}) {says}{after}"
    return call("search_event_previews", query=wanted.pattern, order="newest", limit=wanted.limit).saying(
        says, after=after
    )


TOOL = Tool(
    "search_events",
    "Search events (deprecated)",
    "Deprecated: use search_event_previews, which has filters.",
    SearchEvents,
    (SearchResult,),
    answer,
)
