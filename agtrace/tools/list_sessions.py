"""Overview: the sessions, in an order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from agtrace_indexer.index.queries import sessions
from agtrace_indexer.index.queries.base import is_team
from agtrace_indexer.index.queries.sessions import SessionFilters
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import SessionItem, SessionList
from agtrace_schema.model import dump_all
from agtrace_schema.requests import Access, SessionKind, Sort
from msgspec import Meta
from msgspec.structs import replace

from agtrace.problems import UnknownProject
from agtrace.sessions import listing
from agtrace.sessions.projects import in_folders, resolved
from agtrace.sessions.usage import FIELDS, Place, Snapshot, snapshot_now
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply, projection
from agtrace.text.next_call import Hint, NextCall, call
from agtrace.text.numbers import counted, counted_sessions
from agtrace.tools.arguments import (
    DEFAULT_LIMIT,
    LARGEST,
    Agent,
    Arguments,
    Cursor,
    Fields,
    Hash,
    Limit,
    ProjectName,
    PullRequest,
    Text,
    Time,
    Until,
    arguments_of,
)
from agtrace.tools.tool import Context, Tool, moment_of, opens_event, query_of, unless_behind

_LONGEST_CALL = 300
_WHY = ("landmarks", "path_reads", "path_writes")
"""The fields that say what makes a session one of a list, which stay whatever fields are asked for."""

_SHOWS = {"commit": "shows the call that made this commit"}
"""What the call that opens a landmark is for, where its kind doesn't say enough."""


class ListSessions(Arguments):
    """Arguments of list_sessions."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    provider: Agent | None = None
    project: ProjectName = None
    since: Time = None
    until: Until = None
    query: Annotated[Text | None, Meta(description="Text in the title or a request.")] = None
    sort: Sort | None = None
    kind: SessionKind | None = None
    model: Text | None = None
    branch: Text | None = None
    path: Annotated[Text | None, Meta(description="Part of a touched file's path.")] = None
    access: Access | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    has_failures: bool | None = None
    commit: Hash | None = None
    pr: Annotated[PullRequest | None, Meta(description="Number, URL, any.")] = None
    fields: Annotated[Fields, Meta(description="Only these: id,title")] = None


_FILTERS = (
    "commit", "pr", "has_failures", "min_tokens", "access", "path", "branch", "model", "kind", "query", "since",
    "until", "provider", "project",
)  # fmt: skip
"""The parameters that can hide sessions, the most likely to be wrong first."""


def answer(context: Context, request: ListSessions) -> Reply:
    """Answer with the sessions in the requested order."""
    connection, query = context.connection, query_of(request)
    kept = projection(request.fields, SessionItem) if request.fields else None
    behind, snapshot, moment = None, snapshot_now(connection), moment_of(context, request.since, request.until)
    if request.cursor is not None:
        key, row, newest_session, newest_event, moment = context.cursors.read(TOOL.name, query, request.cursor)
        behind, snapshot = Place(key, row), Snapshot(newest_session, newest_event)
    filters = _filters(replace(context, now=moment / 1000) if moment else context, request)
    named = {name.partition(".")[0] for name in request.fields or ()}
    page = listing.list_sessions(
        connection,
        filters,
        request.limit,
        sort=request.sort or "newest",
        snapshot=snapshot,
        behind=behind,
        prices=context.prices,
        with_deeds="done" in named or bool(request.commit or request.pr),
    )

    def cursor(count: int) -> str:
        return context.cursors.make(TOOL.name, query, (*page.places[count - 1], *snapshot, moment))

    failures = f" ({page.failures} with failures)" if page.failures else ""
    measured = _measured(request.sort, page.measured, at_least=page.at_least)
    folders = in_folders(context.connection, filters.projects or ())
    agents = (
        "" if filters.kind != "main" or request.kind == "main" else _sub_agents(context, filters, page.total, snapshot)
    )
    summary = (
        f"Found {counted_sessions(page.total - page.sub_agents, page.sub_agents)}{failures}{folders}{measured}{agents}"
    )
    return Reply(
        summary=unless_behind(summary, page.total, context),
        data=Pages(
            size=len(page.items),
            build=lambda count: {"sessions": dump_all(page.items[:count])},
            cursor=cursor,
            more=page.more,
            first=behind is None,
            order=request.sort or "newest",
            total=page.total,
        ),
        budget=limits().list_bytes(request.limit),
        hint=_opening(page.items[0]) if page.items else _widening(context, request, snapshot.session),
        untrusted=bool(page.items),
        counts={"total_sessions": page.total, "sessions_with_failures": page.failures},
        only=kept and (lambda data: {"sessions": [kept(one) | _always(one, named) for one in data["sessions"]]}),
    )


def _always(item: dict[str, Any], named: Collection[str]) -> dict[str, Any]:
    """Return what a row must say, whatever was asked for: what it is, by the request of a session without a title, and
    what makes it one of a list by path, commit or pull request.
    """
    stays = {name: item[name] for name in _WHY if name in item}
    untitled = "title" in named and "title" not in item and "snippet" in item
    return stays | ({"snippet": item["snippet"]} if untitled else {})


def _filters(context: Context, request: ListSessions) -> SessionFilters:
    """Return the filters; a plain list leaves out sub-agents that are below another session."""
    given = arguments_of(request, {*_FILTERS} - {"since", "until", "kind", "project"})
    period = context.period(request.since, request.until)
    plain = given.keys() <= {"provider"} and request.sort in (None, "newest", "oldest")
    return SessionFilters(
        **given,
        projects=context.projects(request.project),
        kind=None if request.kind == "all" else request.kind or ("main" if plain else None),
        since=period.since,
        until=period.until,
    )


def _sub_agents(context: Context, filters: SessionFilters, listed: int, snapshot: Snapshot) -> str:
    """Return how many sub-agents a plain list leaves out, as the end of a summary."""
    found = sessions.count(context.connection, replace(filters, kind=None), newest=snapshot.session).sessions - listed
    return f"; kind=all adds {counted(found, 'sub-agent')}" if found > 0 else ""


def _measured(sort: Sort | None, total: float | None, *, at_least: bool) -> str:
    """Return what all sessions of a sorted list come to, as the end of a summary."""
    if sort is None or total is None:
        return ""
    how = "longest " if sort == "failure_run" else "at least " if at_least else ""
    return f", {f'{how}failure_run {total}' if sort == 'failure_run' else f'{how}{total} {FIELDS[sort]}'}"


def _opening(item: SessionItem) -> NextCall:
    if item.landmarks:
        made = item.landmarks[0]
        says = _SHOWS.get(made.kind, f"shows this {made.kind.replace('_', ' ')}")
        return opens_event(item.id, made.event_index, says)
    return call("get_session_details", session_id=item.id).saying("shows a session's turns")


def _widening(context: Context, request: ListSessions, snapshot: int) -> Hint:
    """Return what to call when nothing was found: the same call without a filter that hides sessions, if one does."""
    given: dict[str, Any] = arguments_of(request, _FILTERS)
    if request.query and request.project is None:
        result = _of_project(context, request.query, snapshot)
        if result is not None:
            return result
    inside = call("search_event_previews", query=request.query).saying("searches inside sessions", before=" ")
    more = (inside,) if request.query else ()
    after = ";" if more else "."
    for name in filter(given.__contains__, _FILTERS):
        fewer = _filters(context, replace(request, **{name: None}))
        left = sessions.count(context.connection, fewer, newest=snapshot).sessions
        without = call(TOOL.name, **{key: value for key, value in given.items() if key != name})
        if left and len(without.written) + sum(len(str(one)) for one in more) <= _LONGEST_CALL:
            others = f"shows {counted(left, 'session')} that {{}} hides"
            return (without.saying(others, names=(name,), after=after), *more)
    total = sessions.count(context.connection, SessionFilters(kind="main"), newest=snapshot).sessions
    if given and total:
        shows = call(TOOL.name).saying(f"shows all {total} without filters", after=after)
        return (shows, *more)
    if is_team(context.connection):
        return "Nobody has pushed a session yet that you may see."
    return "Run `agtrace doctor` to see which logs were found."


def _of_project(context: Context, name: str, snapshot: int) -> NextCall | None:
    """Return the call that lists a project's sessions, if what was looked for is the name of one."""
    try:
        found = resolved(context.connection, name, roughly=False)
    except UnknownProject:
        return None
    total = sessions.count(context.connection, SessionFilters(projects=found, kind="main"), newest=snapshot).sessions
    return call(TOOL.name, project=name).saying(f"lists the {counted(total, 'session')} of the project")


TOOL = Tool(
    "list_sessions",
    "List sessions",
    f"Past sessions of coding agents (provider: {', '.join([*AGENTS][:3])} ...), newest first, or by sort, largest "
    "first. For an error, file or phrase use search_event_previews. Next: get_session_details.",
    ListSessions,
    (SessionList,),
    answer,
)
