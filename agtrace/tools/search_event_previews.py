"""Search: the newest events that contain a text."""

from __future__ import annotations

from typing import Annotated, Any

from agtrace_schema.events import EventType, Provider
from pydantic import Field

from agtrace import events, search
from agtrace.arguments import DEFAULT_LIMIT, Arguments, Cursor, Limit, ProjectHash, Time, Until
from agtrace.cutting import one_line
from agtrace.deadline import Deadline
from agtrace.index import Freshness
from agtrace.matching import Contains, Matcher, Matches
from agtrace.query import find_session, short_id, with_texts
from agtrace.replies import Pages, Reply
from agtrace.tools.tool import Context, Tool, dump, list_budget, mark, query_of, unless_behind, unmark


class SearchEventPreviews(Arguments):
    """Arguments of search_event_previews."""

    query: Annotated[
        str,
        Field(
            max_length=2000,
            description="Literal text, found anywhere in an event, case-insensitive; no syntax. Empty: every event.",
        ),
    ]
    regex: Annotated[
        bool, Field(description="true: query is a regular expression, case-insensitive; ^ and $ are ends of lines.")
    ] = False
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    session_id: Annotated[str | None, Field(max_length=200)] = None
    provider: Provider | None = None
    project_hash: ProjectHash = None
    event_type: Annotated[EventType | None, Field(description="ToolResult: outputs and errors. User: prompts.")] = None
    tool: Annotated[str | None, Field(max_length=200, description="Name of a tool, such as Bash.")] = None
    failed: Annotated[bool | None, Field(description="true: only failed tool executions.")] = None
    since: Time = None
    until: Until = None


def answer(context: Context, wanted: SearchEventPreviews) -> Reply:
    """The newest events that contain a text (R-114)."""
    connection = context.connection
    session = find_session(connection, wanted.session_id) if wanted.session_id is not None else None
    query = {**query_of(wanted), "session_id": session["uid"] if session else None}
    context.check_project(wanted.project_hash)
    since, until = context.moment("since", wanted.since), context.moment("until", wanted.until, end=True)
    behind, seen, snapshot = None, 0, search.snapshot_of(connection)
    if wanted.cursor is not None:
        ts, event, snapshot, seen, since_mark = context.cursors.read(TOOL.name, query, wanted.cursor)
        behind, since, until = search.Place(ts, event), unmark(since_mark), None  # the place lies before `until`
    filters = search.Filters(
        session["id"] if session else None, wanted.provider, wanted.project_hash, wanted.event_type, wanted.tool,
        wanted.failed, since, until,
    )  # fmt: skip
    matcher = Matches(wanted.query) if wanted.regex else Contains(wanted.query)
    deadline = Deadline(context.search_seconds)
    found = search.search(
        connection, matcher, filters, wanted.limit, snapshot=snapshot, behind=behind, deadline=deadline
    )
    matches = _previews(context, found.hits, matcher)
    total = seen + found.found

    def cursor(count: int) -> str:
        position = (*found.hits[count - 1].place, snapshot, seen + count, mark(since))
        return context.cursors.make(TOOL.name, query, position)

    return Reply(
        summary=_search_summary(wanted, total, found.complete, context.freshness),
        data=Pages(
            size=len(matches),
            build=lambda count: {"matches": matches[:count]},
            cursor=cursor,
            more=found.more,
            first=behind is None,
            total=total,
            total_exact=found.complete,
        ),
        budget=list_budget(wanted.limit),
        hint=_search_hint(matches, wanted),
        untrusted=bool(matches),
        counts={"total_count": total},
    )


def _previews(context: Context, hits: list[search.Hit], matcher: Matcher) -> list[dict[str, Any]]:
    connection = context.connection
    rows = [
        connection.execute(
            "SELECT e.*, n.text AS name, s.uid FROM event e JOIN session s ON s.id = e.session_id "
            "LEFT JOIN name n ON n.id = e.name_id WHERE e.session_id = ? AND e.event_index = ?",
            (hit.session_row, hit.event_index),
        ).fetchone()
        for hit in hits
    ]
    ids = {uid: short_id(connection, uid) for uid in {row["uid"] for row in rows}}
    found = with_texts(connection, rows)
    return [
        dump(events.preview(connection, ids[event.row["uid"]], event, matcher.matched(event.text))) for event in found
    ]


def _search_summary(wanted: SearchEventPreviews, total: int, exact: bool, freshness: Freshness) -> str:
    shown = one_line(wanted.query, 40)
    matching = f" {'matching' if wanted.regex else 'containing'} {shown!r}" if wanted.query else ""
    count = f"{'' if exact else 'at least '}{total} event{'s' * (total != 1)}"
    return unless_behind(f"Found {count}{matching}", total, freshness)


def _search_hint(matches: list[dict[str, Any]], wanted: SearchEventPreviews) -> str:
    if matches:
        first = matches[0]
        call = f"get_event_details(session_id={first['session_id']!r}, event_index={first['event_index']})"
        return f"{call} opens the first match whole (1-5 KB)."
    narrowed = [name for name in type(wanted).model_fields if name not in ("query", "limit") and getattr(wanted, name)]
    if narrowed:
        return f"Try again without {', '.join(narrowed)}, or with a shorter piece of the text."
    return "Try a shorter piece of the text, as it stands in the log; list_sessions() shows what there is."


TOOL = Tool(
    "search_event_previews",
    "Search events",
    "Find what was said or done before: every prompt, answer, tool argument, tool output and error that "
    "contains a text, newest first, as previews around the match. Paths, code and punctuation are ordinary "
    "text. If nothing is found, try a shorter, more literal piece. Next: get_event_details on a match.",
    SearchEventPreviews,
    answer,
)
