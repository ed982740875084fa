"""Breadth: the sessions, newest first."""

from __future__ import annotations

from agtrace_schema.events import Provider

from agtrace import sessions
from agtrace.arguments import DEFAULT_LIMIT, Arguments, Cursor, Limit, ProjectHash, Time, Until
from agtrace.replies import Pages, Reply
from agtrace.tools.tool import Context, Tool, dump_all, list_budget, mark, query_of, unless_behind, unmark


class ListSessions(Arguments):
    """Arguments of list_sessions."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    provider: Provider | None = None
    project_hash: ProjectHash = None
    since: Time = None
    until: Until = None


def answer(context: Context, wanted: ListSessions) -> Reply:
    """Sessions by start, newest first (R-110)."""
    connection, query = context.connection, query_of(wanted)
    context.check_project(wanted.project_hash)
    since, until = context.moment("since", wanted.since), context.moment("until", wanted.until, end=True)
    behind, snapshot = None, sessions.newest_session_row(connection)
    if wanted.cursor is not None:
        start, row, snapshot, since_mark, until_mark = context.cursors.read(TOOL.name, query, wanted.cursor)
        behind, since, until = (start, row), unmark(since_mark), unmark(until_mark)
    filters = sessions.SessionFilters(wanted.provider, wanted.project_hash, since, until)
    page = sessions.list_sessions(
        connection, filters, wanted.limit, snapshot=snapshot, behind=behind, prices=context.prices
    )

    def cursor(count: int) -> str:
        position = (*page.places[count - 1], snapshot, mark(since), mark(until))
        return context.cursors.make(TOOL.name, query, position)

    failures = f" ({page.failures} with failures)" if page.failures else ""
    summary = f"Found {page.total} session{'s' * (page.total != 1)}{failures}"
    hint = "Widen the filters, or run `agtrace doctor` to see which logs were found."
    if page.items:
        hint = f"get_session_details(session_id={page.items[0].id!r}) shows a session's turns (2-10 KB)."
    return Reply(
        summary=unless_behind(summary, page.total, context.freshness),
        data=Pages(
            size=len(page.items),
            build=lambda count: {"sessions": dump_all(page.items[:count])},
            cursor=cursor,
            more=page.more,
            first=behind is None,
            total=page.total,
        ),
        budget=list_budget(wanted.limit),
        hint=hint,
        untrusted=bool(page.items),
        counts={"total_sessions": page.total, "sessions_with_failures": page.failures},
    )


TOOL = Tool(
    "list_sessions",
    "List sessions",
    "Past sessions of Claude Code, Codex and Gemini CLI on this machine, newest first: first request, turns, "
    "failures, tokens. Start here to see what was worked on, by project and time; to find a certain error, "
    "file or phrase use search_event_previews. Next: get_session_details with an id.",
    ListSessions,
    answer,
)
