"""Counts over many sessions: calls, failed calls or tokens, by group."""

from __future__ import annotations

from typing import Annotated, Any

from agtrace_indexer.index.questions.matches import EventFilters
from agtrace_schema.answers import Counts
from agtrace_schema.model import dump
from agtrace_schema.requests import CountOf, GroupBy, SessionKind, columns
from msgspec import Meta

from agtrace.problems import InvalidParameter
from agtrace.sessions import counting
from agtrace.sessions.projects import in_folders
from agtrace.sessions.query import find_session
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Reply
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import DEFAULT_LIMIT, Agent, AnyProject, Arguments, Limit, Text, Until, arguments_of
from agtrace.tools.tool import Context, Tool, unless_behind

_OF_CALLS = frozenset({"tool", "program", "file"})
"""The groups that only calls belong to."""

_UNITS: dict[GroupBy, str] = {"file": "file use", "program": "command"}
"""What is counted if it isn't every tool call."""

_SHARED = {"provider", "project", "since", "until"}
"""The filters that lists and searches have as well."""

_LONGEST_PATH = 200


class CountEvents(Arguments):
    """Arguments of count_events."""

    group_by: GroupBy
    measure: CountOf = "calls"
    limit: Limit = DEFAULT_LIMIT
    session_id: Annotated[str, Meta(max_length=200)] | None = None
    kind: SessionKind | None = None
    provider: Agent | None = None
    project: AnyProject = None
    tool: Text | None = None
    path: Text | None = None
    failed: bool | None = None
    since: Until = None
    until: Until = None


def answer(context: Context, wanted: CountEvents) -> Reply:
    """Answer with the largest groups, and what all others come to."""
    connection, kind = context.connection, None if wanted.kind == "all" else wanted.kind
    _check(wanted)
    filters = _filters(context, wanted)
    found = counting.counted(connection, wanted.group_by, wanted.measure, filters, kind)
    folders = in_folders(connection, filters.projects or ())
    shown = counting.shown(connection, wanted.group_by, found, wanted.limit)
    totals = counting.totals(found)
    (total,) = (totals[1:2] if wanted.measure == "failed" else totals[:1]) or [0]
    unit = _UNITS.get(wanted.group_by, "tool call")
    what = {"calls": unit, "failed": f"failed {unit}", "tokens": "token"}[wanted.measure]
    names = ", ".join(columns(wanted.group_by, wanted.measure))
    known = f"unknown how many {what}s" if total is None else counted(total, what)
    return Reply(
        summary=unless_behind(f"{known} by {wanted.group_by}; [{names}]{folders}", len(found), context),
        data=dump(shown),
        budget=limits().list_bytes(wanted.limit),
        hint=_opening(wanted, str(shown.rows[0][0])) if shown.rows else _widening(wanted),
        untrusted=bool(shown.rows),
        counts={"total_groups": len(found)},
    )


def _check(wanted: CountEvents) -> None:
    """Raise `InvalidParameter` if tokens are to be counted by what only calls have."""
    if wanted.measure != "tokens":
        return
    if wanted.group_by in _OF_CALLS:
        message = f"measure: tokens are spent by responses, which have no {wanted.group_by}; count calls, or group by "
        raise InvalidParameter("measure", f"{message}session, project, agent, model or day", ["calls", "failed"])
    for name in ("tool", "path", "failed"):
        if getattr(wanted, name) is not None:
            raise InvalidParameter(name, f"{name}: responses have none; leave it out, or count calls")


def _filters(context: Context, wanted: CountEvents) -> EventFilters:
    session = find_session(context.connection, wanted.session_id) if wanted.session_id is not None else None
    period = context.period(wanted.since, wanted.until)
    return EventFilters(
        session_row=session.id if session else None,
        provider=wanted.provider,
        projects=context.projects(wanted.project),
        tool=wanted.tool,
        failed=wanted.failed,
        path=wanted.path,
        since=period.since,
        until=period.until,
    )


def _opening(wanted: CountEvents, group: str) -> NextCall | None:
    """Return the call that shows what is in the first group, within the same filters; None if no filter does."""
    given: dict[str, Any] = arguments_of(wanted, _SHARED)
    match wanted.group_by:
        case "session":
            return call("get_session_details", session_id=group).saying("opens the first session")
        case "agent" | "day":
            only = {"provider": group} if wanted.group_by == "agent" else {"since": group, "until": group}
            sort = {"calls": "tool_calls", "failed": "failed_calls", "tokens": "total_tokens"}[wanted.measure]
            return call("list_sessions", **{**given, **only}, sort=sort).saying("lists its sessions")
        case "tool" | "program" | "file":
            failed = True if wanted.measure == "failed" else wanted.failed
            calls = {"session_id": wanted.session_id, "failed": failed, "kind": "call", "order": "newest"}
            named = {"tool": {"tool": group}, "file": {"path": group[-_LONGEST_PATH:]}}.get(wanted.group_by)
            about = {"query": group} if named is None else {"query": "", **named}
            searched = call("search_event_previews", **about, **given, **calls)
            return searched.saying("lists its calls, the newest first")
        case _:
            return None


def _widening(wanted: CountEvents) -> NextCall | None:
    """Return the same call without filters; None if it has none."""
    if arguments_of(wanted).keys() <= {"group_by", "measure", "limit"}:
        return None
    measure = None if wanted.measure == "calls" else wanted.measure
    return call(TOOL.name, group_by=wanted.group_by, measure=measure).saying("counts without filters")


TOOL = Tool(
    "count_events",
    "Count",
    "How many calls, failed calls or tokens, by group: which tool or program fails most, who used most tokens.",
    CountEvents,
    (Counts,),
    answer,
)
