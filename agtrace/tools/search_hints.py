"""What to call after a search: the first match, or the search without the filters that hide everything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_schema.patterns import later
from msgspec.structs import replace

from agtrace.problems import Problem
from agtrace.search.matching import Deadline
from agtrace.search.scan import Hit, Question
from agtrace.sessions.query import find_session, short_id
from agtrace.settings.limits import limits
from agtrace.text.next_call import NextCall, call
from agtrace.tools.arguments import arguments_of
from agtrace.tools.search_arguments import SearchEventPreviews
from agtrace.tools.tool import Context, event_kilobytes, kilobytes

_FILTERS = ("session_id", "project", "provider", "path", "tool", "event_type", "kind", "failed", "since", "until")
"""The arguments that only narrow a search."""

_LONGEST_CALL = 300
"""The most characters of a call in a hint."""

_PREVIEW_BYTES, _AROUND = 600, 300
"""The approximate size of a match in an answer, and of the rest of one."""

_PART_OF_ID = later(r"(?:agent-)?[0-9a-f][0-9a-f-]{7,}", re.IGNORECASE)


def opening(context: Context, wanted: SearchEventPreviews, hits: Sequence[Hit]) -> NextCall | None:
    """Return the call that opens the first match of a page; None without any."""
    if not hits:
        return None
    connection, first = context.connection, hits[0]
    session_id = short_id(connection, sessions.id_of(connection, first.session_row))
    opened = call("get_event_details", session_id=session_id, event_index=first.event_index)
    newest = wanted.order != "oldest" and wanted.cursor is None
    what = "the newest match" if newest else "the first of these"
    return opened.saying(f"opens {what}", event_kilobytes(connection, first.session_row, first.event_index))


def after_nothing(context: Context, wanted: SearchEventPreviews, asked: Question, deadline: Deadline) -> NextCall:
    """Return the call that finds something, or lists the sessions. Raises `SearchTimeout`."""
    shorter = "; or try a shorter piece of the text."
    return (
        session_named(context, wanted.query)
        or _without_filters(wanted, asked, deadline)
        or call("list_sessions").saying("lists the sessions", kilobytes(0, limits().usual), after=shorter)
    )


def session_named(context: Context, query: str) -> NextCall | None:
    """Return the call that opens a session if the query is its id or a prefix of it."""
    given = query.strip()
    if not _PART_OF_ID.fullmatch(given):
        return None
    try:
        session = find_session(context.connection, given)
    except Problem:
        return None
    opens = call("get_session_details", session_id=short_id(context.connection, session.uid))
    return opens.saying("opens the session with this id", kilobytes(0, limits().usual))


def _without_filters(wanted: SearchEventPreviews, asked: Question, deadline: Deadline) -> NextCall | None:
    """Return the search without its filters if that finds something."""
    given = [name for name in _FILTERS if getattr(wanted, name) is not None]
    if not given:
        return None
    everything = replace(asked, filters=EventFilters(without_own=asked.filters.without_own))
    found = everything.page(wanted.limit, None, deadline)
    arguments: dict[str, Any] = {**arguments_of(wanted), **dict.fromkeys(given), "cursor": None}
    other = call("search_event_previews", **arguments)
    if not found.hits or len(other.written) > _LONGEST_CALL:
        return None
    number = f"{'' if found.complete else 'at least '}{found.found}"
    size = kilobytes(0, _AROUND + _PREVIEW_BYTES * len(found.hits))
    return other.saying(f"finds {number}, without {{}}", size, names=given)
