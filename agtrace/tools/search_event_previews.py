"""Search: the sessions that words are about, or the events that contain a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from agtrace_indexer.index.questions import events, sessions, turns
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_schema.answers import BestSession, SearchResult
from agtrace_schema.events import EventType
from agtrace_schema.model import dump, dump_all
from agtrace_schema.patterns import later
from agtrace_schema.requests import EventKind
from msgspec import Meta, Struct
from msgspec.structs import replace

from agtrace.problems import InvalidParameter, Problem
from agtrace.search.answers import best_matches, previews, session_matches
from agtrace.search.matching import Contains, Deadline, Matches
from agtrace.search.ranking import PARTLY, Ranked, ranked
from agtrace.search.scan import Hit, Hits, Order, Place, Question, SessionHits, snapshot_of
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.usage import snapshot_now
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.lines import SUMMARY, cut, repeated
from agtrace.text.next_call import Hint, NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import (
    DEFAULT_LIMIT,
    Agent,
    Arguments,
    Cursor,
    Limit,
    ProjectName,
    Time,
    Until,
    arguments_of,
)
from agtrace.tools.tool import (
    Context,
    Tool,
    kilobytes,
    moment_of,
    opens_event,
    opens_turn,
    query_of,
    unless_behind,
)

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
    matcher = Matches(wanted.query) if wanted.regex else Contains(wanted.query)
    return Question(context.connection, matcher, filters, snapshot, order)


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
    newest = wanted.order != "oldest" and wanted.cursor is None
    says = "opens the newest match" if newest else "opens the first of these"
    return opens_event(connection, first.session_row, session_id, first.event_index, says)


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


_CUT = "..."
_FEW_STEPS = 10
_OPENED_LAST = {"thought": 1, "human": 2, "task": 2}
"""What is opened only if no other event is better: the rest of a request seldom answers what is asked."""


def ranked_reply(context: Context, wanted: SearchEventPreviews, ranked: Ranked) -> Reply:
    """Answer with the best of these sessions, saying how well they hold the query."""
    found, best = best_matches(context.connection, ranked, wanted.limit), ranked.sessions[0]
    summary = f"{'' if wanted.ranks else 'not found literally; '}{_how(ranked)} for {repeated(wanted.query, 40)!r}"
    if ranked.nowhere:
        among = f" in {counted(sessions_searched(context, wanted), 'session')}" if not ranked.sure else ""
        summary = cut(f"{summary}; nowhere{among}: {', '.join(ranked.nowhere)}", SUMMARY)
    elif ranked.lacking:
        summary = cut(f"{summary}; not in the best session: {', '.join(ranked.lacking)}", SUMMARY)
    data: dict[str, Any] = {} if wanted.ranks else {"sessions" if wanted.group_by else "matches": []}
    return Reply(
        summary=summary[0].upper() + summary[1:],
        data=data | {"best": dump(found)},
        budget=limits().list_bytes(wanted.limit),
        hint=session_named(context, wanted.query) or _opening(context, best.session_row, found.sessions[0]),
        untrusted=True,
    )


def _how(ranked: Ranked) -> str:
    if ranked.sure:
        return "partial matches by words" if ranked.nowhere else "best matches by words"
    weak = ranked.nowhere or ranked.share < PARTLY
    return "only weak matches by words" if weak else "only partial matches by words"


def _opening(context: Context, session_row: int, shown: BestSession) -> NextCall:
    """Return the call that opens the best of the events that aren't shown whole, rather an answer than what was asked.

    If all are, it shows what was done in the turn of the best one, if that is short.
    """
    parts = [hit for hit in shown.hits if _CUT in hit[2]]
    turn = events.one(context.connection, session_row, shown.hits[0][0]).turn_index
    found = turns.several(context.connection, session_row, [turn]) if turn is not None and not parts else []
    if turn is not None and found and found[0].step_count <= _FEW_STEPS:
        says = "shows what was done in its turn"
        return opens_turn(context.connection, session_row, shown.session_id, turn, says)
    event_index = min(parts or shown.hits, key=lambda hit: _OPENED_LAST.get(hit[1], 0))[0]
    return opens_event(context.connection, session_row, shown.session_id, event_index, "opens the best event")


class _Walk(Struct, frozen=True):
    """A page of a search on one snapshot of the index."""

    question: Question
    deadline: Deadline
    behind: Place | None
    seen: int
    """The number of items on the previous pages."""
    cursor: Callable[[Hit, int], str]
    """Return the cursor that continues after a hit, given the number of items up to it."""


def answer(context: Context, wanted: SearchEventPreviews) -> Reply:
    """Answer with the best sessions, or with the events that match a query, one by one or grouped by session.

    If the best sessions hold only some of the words, events that contain the query as a text come before them. If no
    event contains it, they are the answer whatever the order.
    """
    walk = _walk(context, wanted)
    best = ranked(walk.question, wanted.query, walk.deadline) if wanted.ranks else Ranked([])
    if best.sure:
        return ranked_reply(context, wanted, best)
    found: Hits | SessionHits
    if wanted.group_by is None:
        found = walk.question.page(wanted.limit, walk.behind, walk.deadline)
    else:
        found = walk.question.sessions(wanted.limit, walk.behind, walk.seen, walk.deadline)
    if found.hits or walk.behind is not None:
        return _listed(context, wanted, walk, found, opening(context, wanted, found.hits))
    if not wanted.ranks and not wanted.regex:
        best = ranked(walk.question, wanted.query, walk.deadline)
    if best.sessions:
        return ranked_reply(context, wanted, best)
    shorter = "; or try a shorter piece of the text."
    hint = (
        session_named(context, wanted.query)
        or _without_filters(wanted, walk.question, walk.deadline)
        or call("list_sessions").saying("lists the sessions", kilobytes(0, limits().usual), after=shorter)
    )
    return _listed(context, wanted, walk, found, hint, best.nowhere)


def _listed(
    context: Context,
    wanted: SearchEventPreviews,
    walk: _Walk,
    found: Hits | SessionHits,
    hint: Hint | None,
    nowhere: Sequence[str] = (),
) -> Reply:
    """Answer with a page of events, or of sessions with their number of events."""
    if isinstance(found, SessionHits):
        items = dump_all(session_matches(context.connection, found, walk.question.matcher, walk.deadline))
        key, total = "sessions", found.found
    else:
        items = dump_all(previews(context.connection, found.hits, walk.question.matcher, walk.deadline))
        key, total = "matches", walk.seen + found.found
    return Reply(
        summary=_summary(context, wanted, total, found.complete, nowhere),
        data=Pages(
            size=len(items),
            build=lambda count: {key: items[:count]},
            cursor=lambda count: walk.cursor(found.hits[count - 1], walk.seen + count),
            more=found.more,
            first=walk.behind is None,
            total=total,
            total_exact=found.complete,
        ),
        budget=limits().list_bytes(wanted.limit),
        hint=hint,
        untrusted=bool(items),
        counts={"total_count": total},
    )


def _walk(context: Context, wanted: SearchEventPreviews) -> _Walk:
    """Return the requested page. Raises `Problem` for an invalid cursor or argument."""
    query, behind, seen = identity(context, wanted), None, 0
    snapshot, moment = snapshot_of(context.connection), moment_of(context, wanted.since, wanted.until)
    if wanted.cursor is not None:
        ts, event, snapshot, seen, moment = context.cursors.read(TOOL.name, query, wanted.cursor)
        behind = Place(ts, event)
    asked = question(replace(context, now=moment / 1000) if moment else context, wanted, snapshot)

    def cursor(hit: Hit, count: int) -> str:
        return context.cursors.make(TOOL.name, query, (*hit.place, snapshot, count, moment))

    return _Walk(asked, Deadline(context.search_seconds), behind, seen, cursor)


def _summary(context: Context, wanted: SearchEventPreviews, total: int, exact: bool, nowhere: Sequence[str]) -> str:
    shown = repeated(wanted.query, 40)
    how, unit = "matching" if wanted.regex else "containing", "session" if wanted.group_by else "event"
    count = f"{'' if exact else 'at least '}{counted(total, unit)}"
    within = "" if total or wanted.session_id else f" in {counted(sessions_searched(context, wanted), 'session')}"
    found = f"Found {count}{f' {how} {shown!r}' if wanted.query else ''}{within}"
    if nowhere and len(wanted.query.split()) > 1:
        found = cut(f"{found}; nowhere: {', '.join(nowhere)}", SUMMARY)
    return unless_behind(found, total, context.freshness)


TOOL = Tool(
    "search_event_previews",
    "Search events",
    "Find what was said or done before, in prompts, answers, tool arguments, outputs and errors: the sessions that "
    "the words of a query are about, best first, with their best events and how the best one ended: often the whole "
    "answer. With order newest or oldest: every event that contains the text. Next: get_event_details.",
    SearchEventPreviews,
    (SearchResult,),
    answer,
)
