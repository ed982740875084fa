"""The tools: what each answers, and the function that does it. The command line calls the same ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agtrace_schema.answers import Model

from agtrace import analysis, events, search, sessions
from agtrace.arguments import (
    DEFAULT_LIMIT,
    AnalyzeSession,
    Arguments,
    GetEventDetails,
    GetProjectInfo,
    GetSessionDetails,
    ListSessions,
    SearchEventPreviews,
)
from agtrace.cursors import Cursors
from agtrace.index import Freshness
from agtrace.query import find_event, find_session, short_id, with_texts
from agtrace.shape import Body, Pages, Reply, one_line
from agtrace.times import moment

_LIST_BYTES = 10_240
_LONG_LIST_BYTES = 20_480
_TURNS_BYTES = 30_720
_ANALYSIS_BYTES = 5_120
_EVENT_BYTES = 10_240
_STEPS_READ = 400
_INSIGHTS = 10


@dataclass(frozen=True, slots=True)
class Context:
    """What a tool needs to answer."""

    connection: sqlite3.Connection
    """Within one read transaction: everything a tool reads is of one moment."""
    cursors: Cursors
    freshness: Freshness
    now: float
    """Seconds since 1970 UTC."""

    def moment(self, field: str, text: str | None, *, end: bool = False) -> int | None:
        """Read a time in the arguments."""
        return None if text is None else moment(field, text, datetime.fromtimestamp(self.now, UTC), end=end)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients see it."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Context, Any], Reply]
    data_keys: tuple[str, ...]
    """The keys that its payload always has."""


def list_sessions(context: Context, wanted: ListSessions) -> Reply:
    """Sessions by start, newest first (R-110)."""
    connection, query = context.connection, _query(wanted)
    since, until = context.moment("since", wanted.since), context.moment("until", wanted.until, end=True)
    behind, snapshot = None, sessions.newest_session_row(connection)
    if wanted.cursor is not None:
        start, row, snapshot, since_mark, until_mark = context.cursors.read("list_sessions", query, wanted.cursor)
        behind, since, until = (start, row), _unmark(since_mark), _unmark(until_mark)
    filters = sessions.SessionFilters(wanted.provider, wanted.project_hash, since, until)
    page = sessions.list_sessions(connection, filters, wanted.limit, snapshot=snapshot, behind=behind)

    def cursor(count: int) -> str:
        position = (*page.places[count - 1], snapshot, _mark(since), _mark(until))
        return context.cursors.make("list_sessions", query, position)

    failures = f" ({page.failures} with failures)" if page.failures else ""
    summary = f"Found {page.total} session{'s' * (page.total != 1)}{failures}"
    hint = "Widen the filters, or run `agtrace doctor` to see which logs were found."
    if page.items:
        hint = f"get_session_details(session_id='{page.items[0].id}') shows a session's turns (2-10 KB)."
    return Reply(
        summary=_unless_behind(summary, page.total, context.freshness),
        data=Pages(
            size=len(page.items),
            build=lambda count: {"sessions": _dump_all(page.items[:count])},
            cursor=cursor,
            more=page.more,
            first=behind is None,
            total=page.total,
        ),
        budget=_list_budget(wanted.limit),
        hint=hint,
        untrusted=bool(page.items),
        counts={"total_sessions": page.total, "sessions_with_failures": page.failures},
    )


def get_project_info(context: Context, wanted: GetProjectInfo) -> Reply:
    """Projects, last active first (R-111)."""
    query = _query(wanted)
    behind = None
    if wanted.cursor is not None:
        last, row = context.cursors.read("get_project_info", query, wanted.cursor)
        behind = (last, row)
    items, places, total, more = sessions.list_projects(context.connection, wanted.limit, behind)
    hint = f"list_sessions(project_hash='{items[0].hash}') lists a project's sessions (4 KB)." if items else None
    return Reply(
        summary=_unless_behind(f"Found {total} project{'s' * (total != 1)}", total, context.freshness),
        data=Pages(
            size=len(items),
            build=lambda count: {"projects": _dump_all(items[:count])},
            cursor=lambda count: context.cursors.make("get_project_info", query, places[count - 1]),
            more=more,
            first=behind is None,
            total=total,
        ),
        budget=_list_budget(wanted.limit),
        hint=hint,
        counts={"total_projects": total},
    )


def get_session_details(context: Context, wanted: GetSessionDetails) -> Reply:
    """A session by its turns, at one of two levels (R-112)."""
    connection = context.connection
    session = find_session(connection, wanted.session_id)
    if wanted.turn_index is not None:
        sessions.check_turn(session, wanted.turn_index)
    query = {**_query(wanted), "session_id": session["uid"]}
    turn, step, last_event = -1, 1 << 40, _last_event(connection, session)
    if wanted.cursor is not None:
        turn, step, last_event = context.cursors.read("get_session_details", query, wanted.cursor)
    first = wanted.cursor is None
    head = sessions.session_head(connection, session)
    level = _turns_level if wanted.detail_level == "turns" else _summary_level
    pages, hint = level(context, wanted, session, query, (turn, step, last_event))
    shown = short_id(connection, session["uid"])
    failed = session["failed_calls"]
    state = f"{failed} of {session['tool_calls']} tool calls failed" if failed else "no failed tool calls"
    duration = f"{head.stats.duration_seconds} s, " if head.stats.duration_seconds is not None else ""
    top = _dump(head) if first else {"session_id": session["uid"]}
    build = pages.build
    return Reply(
        summary=f"Session {shown}: {state} ({duration}{session['event_count']} events, {session['turn_count']} turns)",
        data=Pages(pages.size, lambda n: {**top, **build(n)}, pages.cursor, pages.more, first, pages.total),
        budget=_TURNS_BYTES if wanted.detail_level == "turns" else _LIST_BYTES,
        hint=hint,
        reference=f"ax://session/{shown}",
        untrusted=True,
        counts={"total_turns": session["turn_count"], "tool_calls": session["tool_calls"], "failed_calls": failed},
    )


def analyze_session(context: Context, wanted: AnalyzeSession) -> Reply:
    """The health of a session (R-113)."""
    session = find_session(context.connection, wanted.session_id)
    found = analysis.analyze(
        context.connection, session, include_failures=wanted.include_failures, include_loops=wanted.include_loops
    )
    insights = found.insights
    first_evidence = next((e.event_index for insight in insights for e in insight.evidence), None)
    hint = f"get_session_details(session_id='{found.session_id}') shows its turns (2-10 KB)."
    if first_evidence is not None:
        call = f"get_event_details(session_id='{found.session_id}', event_index={first_evidence})"
        hint = f"{call} opens the first piece of evidence (1-5 KB)."
    return Reply(
        summary=f"Session {found.session_id}: health {found.score} of 100, {len(insights)} findings",
        data=_worst(_dump(found)),
        budget=_ANALYSIS_BYTES,
        hint=hint,
        reference=f"ax://analysis/{found.session_id}",
        untrusted=bool(insights),
        counts={"score": found.score, "findings": len(insights), "failed_calls": session["failed_calls"]},
    )


def search_event_previews(context: Context, wanted: SearchEventPreviews) -> Reply:
    """The newest events that contain a text (R-114)."""
    connection = context.connection
    session = find_session(connection, wanted.session_id) if wanted.session_id else None
    query = {**_query(wanted), "session_id": session["uid"] if session else None}
    since, until = context.moment("since", wanted.since), context.moment("until", wanted.until, end=True)
    behind, seen, snapshot = None, 0, search.snapshot_of(connection)
    if wanted.cursor is not None:
        ts, event, snapshot, seen, since_mark, until_mark = context.cursors.read(
            "search_event_previews", query, wanted.cursor
        )
        behind, since, until = search.Place(ts, event), _unmark(since_mark), _unmark(until_mark)
    filters = search.Filters(
        session["id"] if session else None, wanted.provider, wanted.project_hash, wanted.event_type, wanted.tool,
        wanted.failed, since, until,
    )  # fmt: skip
    found = search.search(connection, wanted.query, filters, wanted.limit, snapshot=snapshot, behind=behind)
    matches = _previews(context, found.hits, wanted.query)
    total = seen + found.found

    def cursor(count: int) -> str:
        position = (*found.hits[count - 1].place, snapshot, seen + count, _mark(since), _mark(until))
        return context.cursors.make("search_event_previews", query, position)

    return Reply(
        summary=_search_summary(wanted.query, total, found.complete, context.freshness),
        data=Pages(
            size=len(matches),
            build=lambda count: {"matches": matches[:count]},
            cursor=cursor,
            more=found.more,
            first=behind is None,
            total=total,
            total_exact=found.complete,
        ),
        budget=_list_budget(wanted.limit),
        hint=_search_hint(matches, wanted),
        untrusted=bool(matches),
        counts={"total_count": total},
    )


def get_event_details(context: Context, wanted: GetEventDetails) -> Reply:
    """One event, whole or in chunks (R-115)."""
    connection = context.connection
    session = find_session(connection, wanted.session_id)
    event = find_event(connection, session, wanted.event_index)
    query = {**_query(wanted), "session_id": session["uid"]}
    offset = line = chunk = 0
    if wanted.cursor is not None:
        offset, line, chunk = context.cursors.read("get_event_details", query, wanted.cursor)
    if event.type == "TokenUsage":
        event.rest.update(events.token_usage(connection, session["id"], event.event_index))
    described = _dump(events.details(connection, session, event))
    shown = short_id(connection, session["uid"])

    def build(piece: str, whole: bool) -> dict[str, Any]:
        return {**described, "payload": events.payload(event, piece, whole=whole)}

    outcome = f", {event.outcome}" if event.outcome else ""
    name = f" {event.row['name']}" if event.row["name"] else ""
    return Reply(
        summary=one_line(f"Event {event.event_index} of {shown}: {event.type}{name}{outcome}", 100),
        data=Body(
            text=events.canonical_text(event)[offset:],
            build=build,
            cursor=lambda *position: context.cursors.make("get_event_details", query, position),
            offset=offset,
            line=line,
            chunk=chunk,
        ),
        budget=wanted.max_bytes or _EVENT_BYTES,
        hint=_event_hint(shown, described),
        reference=events.reference(connection, session, event.event_index),
        untrusted=True,
    )


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "list_sessions",
            "List sessions",
            "Past sessions of Claude Code, Codex and Gemini CLI on this machine, newest first: first request, turns, "
            "failures, tokens. Start here to see what was worked on, by project and time; to find a certain error, "
            "file or phrase use search_event_previews. Next: get_session_details with an id.",
            ListSessions,
            list_sessions,
            ("sessions",),
        ),
        Tool(
            "get_project_info",
            "List projects",
            "The projects that have sessions: root path, hash, how many sessions, last activity. Use it to get the "
            "project_hash by which list_sessions and search_event_previews filter.",
            GetProjectInfo,
            get_project_info,
            ("projects",),
        ),
        Tool(
            "get_session_details",
            "Open a session",
            "One session. Level summary: facts and one line a turn. Level turns: every step with its tool calls and "
            "how they ended; turn_index opens one turn. Next: get_event_details with an event index.",
            GetSessionDetails,
            get_session_details,
            ("session_id", "turns"),
        ),
        Tool(
            "analyze_session",
            "Diagnose a session",
            "What went wrong in a session: a health score with findings (failed tools; with include_loops identical "
            "calls repeated; token use), each with the events that show it. Next: get_event_details on the evidence.",
            AnalyzeSession,
            analyze_session,
            ("session_id", "score", "insights", "summary"),
        ),
        Tool(
            "search_event_previews",
            "Search events",
            "Find what was said or done before: every prompt, answer, tool argument, tool output and error that "
            "contains a text, newest first, as previews around the match. Paths, code and punctuation are ordinary "
            "text. If nothing is found, try a shorter, more literal piece. Next: get_event_details on a match.",
            SearchEventPreviews,
            search_event_previews,
            ("matches",),
        ),
        Tool(
            "get_event_details",
            "Open an event",
            "One event, verbatim: the whole prompt, answer, tool arguments or output, with the event of its call or "
            "result. Long texts come in chunks; follow chunk.next_cursor.",
            GetEventDetails,
            get_event_details,
            ("session_id", "event_index", "event_type", "payload"),
        ),
    )
}
"""Every tool by its name."""


def _summary_level(
    context: Context,
    wanted: GetSessionDetails,
    session: sqlite3.Row,
    query: dict[str, Any],
    place: tuple[int, int, int],
) -> tuple[Pages, str]:
    turn, _, last_event = place
    only = wanted.turn_index
    turns = sessions.turn_overviews(context.connection, session, only if only is not None else turn + 1, last_event)
    turns = turns[:1] if only is not None else turns
    shown = short_id(context.connection, session["uid"])
    failing = next((item.turn_index for item in turns if item.failed_tools), turns[0].turn_index if turns else 0)

    def cursor(count: int) -> str:
        position = (turns[count - 1].turn_index, 1 << 40, last_event)
        return context.cursors.make("get_session_details", query, position)

    pages = Pages(
        size=len(turns),
        build=lambda count: {"turns": _dump_all(turns[:count])},
        cursor=cursor,
        more=False,
        first=wanted.cursor is None,
        total=session["turn_count"] if only is None else len(turns),
    )
    call = f"get_session_details(session_id='{shown}', detail_level='turns', turn_index={failing})"
    return pages, f"{call} shows the steps of turn {failing} (1-30 KB)."


def _turns_level(
    context: Context,
    wanted: GetSessionDetails,
    session: sqlite3.Row,
    query: dict[str, Any],
    place: tuple[int, int, int],
) -> tuple[Pages, str]:
    turn, step, last_event = place
    steps = sessions.steps_of(
        context.connection,
        session,
        behind=(turn, step),
        last_event=last_event,
        turn_index=wanted.turn_index,
        include_reasoning=wanted.include_reasoning,
        most=_STEPS_READ + 1,
    )
    more, steps = len(steps) > _STEPS_READ, steps[:_STEPS_READ]
    turns = sessions.turn_details(context.connection, session, steps)

    def build(count: int) -> dict[str, Any]:
        kept: dict[int, list[Any]] = {}
        for item in steps[:count]:
            kept.setdefault(item.turn_index, []).extend([] if item.summary is None else [_dump(item.summary)])
        return {"turns": [_dump(t) | {"steps": kept[t.turn_index]} for t in turns if t.turn_index in kept]}

    def cursor(count: int) -> str:
        position = (steps[count - 1].turn_index, steps[count - 1].step_index, last_event)
        return context.cursors.make("get_session_details", query, position)

    shown = short_id(context.connection, session["uid"])
    example = next((s.summary.first_event for s in steps if s.summary and s.summary.failed_tools), None)
    if example is None:
        example = next((s.summary.first_event for s in steps if s.summary), 0)
    hint = f"get_event_details(session_id='{shown}', event_index={example}) opens a step's first event (1-5 KB)."
    return Pages(len(steps), build, cursor, more, wanted.cursor is None), hint


def _worst(base: dict[str, Any]) -> dict[str, Any]:
    """The analysis with its ten worst findings, and how many there are."""
    insights = base["insights"]
    if len(insights) <= _INSIGHTS:
        return base
    return {**base, "insights": insights[:_INSIGHTS], "total_insights": len(insights)}


def _previews(context: Context, hits: list[search.Hit], query: str) -> list[dict[str, Any]]:
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
    return [_dump(events.preview(connection, ids[event.row["uid"]], event, query)) for event in found]


def _search_summary(query: str, total: int, exact: bool, freshness: Freshness) -> str:
    shown = one_line(query, 40)
    matching = f" containing {shown!r}" if query else ""
    count = f"{'' if exact else 'at least '}{total} event{'s' * (total != 1)}"
    return _unless_behind(f"Found {count}{matching}", total, freshness)


def _search_hint(matches: list[dict[str, Any]], wanted: SearchEventPreviews) -> str:
    if matches:
        first = matches[0]
        call = f"get_event_details(session_id='{first['session_id']}', event_index={first['event_index']})"
        return f"{call} opens the first match whole (1-5 KB)."
    narrowed = [name for name in type(wanted).model_fields if name not in ("query", "limit") and getattr(wanted, name)]
    if narrowed:
        return f"Try again without {', '.join(narrowed)}, or with a shorter piece of the text."
    return "Try a shorter piece of the text, as it stands in the log; list_sessions() shows what there is."


def _event_hint(session_id: str, described: dict[str, Any]) -> str:
    for link, what in (("call_event", "the call of this result"), ("result_event", "the result of this call")):
        if described.get(link) is not None:
            return f"get_event_details(session_id='{session_id}', event_index={described[link]}) opens {what} (1-5 KB)."
    if described.get("turn_index") is not None:
        turn = described["turn_index"]
        call = f"get_session_details(session_id='{session_id}', detail_level='turns', turn_index={turn})"
        return f"{call} shows what happened around it (1-30 KB)."
    return f"get_session_details(session_id='{session_id}') shows its session (2-10 KB)."


def _unless_behind(summary: str, total: int, freshness: Freshness) -> str:
    """Never say that nothing was found while the index doesn't hold everything yet (known-bugs 49)."""
    if freshness.state == "ready":
        return summary
    behind = "" if freshness.files_behind is None else f", {freshness.files_behind} files behind"
    if total:
        return f"{summary} so far (index {freshness.state.replace('_', ' ')}{behind})"
    return f"Nothing found yet: the index is {freshness.state.replace('_', ' ')}{behind}; ask again"


def _last_event(connection: sqlite3.Connection, session: sqlite3.Row) -> int:
    found = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", (session["id"],)).fetchone()
    return -1 if found[0] is None else int(found[0])


def _list_budget(limit: int) -> int:
    return _LONG_LIST_BYTES if limit > DEFAULT_LIMIT else _LIST_BYTES


def _query(wanted: Arguments) -> dict[str, Any]:
    return wanted.model_dump(mode="json", exclude_none=True)


def _mark(time: int | None) -> int:
    return 0 if time is None else time + (time >= 0)


def _unmark(mark: int) -> int | None:
    return None if mark == 0 else mark - (mark > 0)


def _dump(model: Model) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped


def _dump_all(models: Any) -> list[dict[str, Any]]:
    return [_dump(model) for model in models]
