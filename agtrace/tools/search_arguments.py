"""The arguments of a search, and the query on the index that they become."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_schema.events import EventType
from agtrace_schema.requests import EventKind
from msgspec import Meta

from agtrace.problems import InvalidParameter
from agtrace.search.matching import Contains, Matcher, Matches
from agtrace.search.scan import Order, Question
from agtrace.sessions.query import find_session
from agtrace.sessions.sorting import snapshot_now
from agtrace.tools.arguments import DEFAULT_LIMIT, Agent, Arguments, Cursor, Limit, ProjectName, Time, Until
from agtrace.tools.tool import Context, query_of

_Name = Annotated[str, Meta(max_length=200)] | None


class SearchEventPreviews(Arguments):
    """Arguments of search_event_previews."""

    query: Annotated[
        str,
        Meta(
            max_length=2000,
            description="Words to rank by, or a literal text, case-insensitive; no syntax. Empty: every event.",
        ),
    ]
    regex: Annotated[bool, Meta(description="query is a regular expression; ^ and $ match per line.")] = False
    order: Annotated[
        Literal["best", "newest", "oldest"] | None,
        Meta(description="best (default): sessions ranked by the words of query; else: events containing it."),
    ] = None
    group_by: Annotated[
        Literal["session"] | None, Meta(description="Each session once, with its number of matches.")
    ] = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    session_id: _Name = None
    provider: Agent | None = None
    project: ProjectName = None
    kind: EventKind | None = None
    event_type: EventType | None = None
    tool: Annotated[_Name, Meta(description="Tool name, such as Bash.")] = None
    path: Annotated[_Name, Meta(description="Only calls that name a file with this in its path.")] = None
    failed: Annotated[bool | None, Meta(description="true: only failed tool executions.")] = None
    since: Time = None
    until: Until = None

    @property
    def ranks(self) -> bool:
        """Whether to rank sessions; a page that follows another one continues a list of events."""
        listed = self.order in ("newest", "oldest") or self.regex or self.group_by or self.cursor
        return not listed and bool(self.query.strip())


def question(context: Context, wanted: SearchEventPreviews, snapshot: int) -> Question:
    """Return the query on the index. Raises `Problem` for invalid arguments."""
    if wanted.order == "best" and (wanted.regex or wanted.group_by):
        raise InvalidParameter("order", "best ranks sessions by words: leave out regex and group_by")
    session = find_session(context.connection, wanted.session_id) if wanted.session_id is not None else None
    period = context.period(wanted.since, wanted.until)
    filters = EventFilters(
        session_row=session.id if session else None,
        provider=wanted.provider,
        projects=context.projects(wanted.project),
        event_type=wanted.event_type,
        kind=wanted.kind,
        tool=wanted.tool,
        failed=wanted.failed,
        since=period.since,
        until=period.until,
        path=wanted.path,
        without_own=True,
    )
    order = Order.OLDEST if wanted.order == "oldest" else Order.NEWEST
    return Question(context.connection, matcher_of(wanted), filters, snapshot, order)


def matcher_of(wanted: SearchEventPreviews) -> Matcher:
    """Return the condition that texts must meet. Raises `InvalidParameter` for an invalid regular expression."""
    return Matches(wanted.query) if wanted.regex else Contains(wanted.query)


def identity(context: Context, wanted: SearchEventPreviews) -> dict[str, Any]:
    """Return the arguments that identify a query, with the full id of the session."""
    given = query_of(wanted)
    if wanted.session_id is not None:
        given["session_id"] = find_session(context.connection, wanted.session_id).uid
    return given


def sessions_searched(context: Context, wanted: SearchEventPreviews) -> int:
    """Return the number of sessions that were searched: that nothing was found means more if it is known where."""
    period = context.period(wanted.since, wanted.until)
    among = SessionFilters(
        provider=wanted.provider,
        projects=context.projects(wanted.project),
        since=period.since,
        until=period.until,
    )
    return sessions.count(context.connection, among, newest=snapshot_now(context.connection).session).sessions
