"""Search: the sessions that words are about, or the events that contain a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from agtrace_indexer.index.queries import events, sessions, turns
from agtrace_indexer.index.queries.candidates import near_word
from agtrace_indexer.index.queries.matches import EventFilters
from agtrace_indexer.index.queries.sessions import SessionFilters
from agtrace_schema.answers import EventPreview, SearchResult
from agtrace_schema.events import EventType
from agtrace_schema.model import dump_all
from agtrace_schema.patterns import later
from agtrace_schema.requests import EventKind
from msgspec import Meta, Struct
from msgspec.structs import replace

from agtrace.problems import InvalidParameter, Problem
from agtrace.search.answers import Best, best_matches, further_matches, previews
from agtrace.search.matching import Contains, Deadline, Matches
from agtrace.search.ranking import PARTLY, Ranked, ranked
from agtrace.search.scan import Hit, Hits, Order, Place, Question, SessionHits, snapshot_of
from agtrace.sessions.projects import in_folders
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.usage import snapshot_now
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply, of_rows
from agtrace.text.lines import SUMMARY, cut, repeated
from agtrace.text.next_call import Hint, NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import (
    DEFAULT_LIMIT,
    Agent,
    Arguments,
    Cursor,
    Fields,
    Limit,
    ProjectName,
    Time,
    Until,
    arguments_of,
)
from agtrace.tools.tool import Context, Tool, moment_of, opens_event, opens_turn, query_of, unless_behind

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
    regex: Annotated[bool, Meta(description="^ and $ match per line.")] = False
    order: Annotated[
        Literal["best", "newest", "oldest"] | None,
        Meta(description="best (default): by the words of query; else: every event containing it."),
    ] = None
    group_by: Annotated[Literal["session"] | None, Meta(description="Each session once, with hits.")] = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    session_id: _Name = None
    provider: Agent | None = None
    project: ProjectName = None
    kind: EventKind | None = None
    event_type: EventType | None = None
    tool: Annotated[_Name, Meta(description="Such as Bash.")] = None
    path: Annotated[_Name, Meta(description="Part of a named file's path.")] = None
    failed: Annotated[bool | None, Meta(description="true: only failed tool executions.")] = None
    since: Time = None
    until: Until = None
    fields: Fields = None

    @property
    def ranks(self) -> bool:
        """Whether to rank sessions; a cursor may continue a list of events nevertheless."""
        listed = self.order in ("newest", "oldest") or self.regex or self.group_by
        return not listed and bool(self.query.strip())


def question(context: Context, request: SearchEventPreviews, snapshot: int) -> Question:
    """Return the query on the index. Raises `Problem` for invalid arguments."""
    if request.order == "best" and (request.regex or request.group_by):
        raise InvalidParameter("order", "best ranks sessions by words: leave out regex and group_by")
    session = find_session(context.connection, request.session_id) if request.session_id is not None else None
    period = context.period(request.since, request.until)
    filters = EventFilters(
        session_row=session.id if session else None,
        provider=request.provider,
        projects=context.projects(request.project),
        event_type=request.event_type,
        kind=request.kind,
        tool=request.tool,
        failed=request.failed,
        since=period.since,
        until=period.until,
        path=request.path,
        without_own=True,
    )
    order = Order.OLDEST if request.order == "oldest" else Order.NEWEST
    matcher = Matches(request.query) if request.regex else Contains(request.query)
    return Question(context.connection, matcher, filters, snapshot, order)


def sessions_searched(context: Context, request: SearchEventPreviews) -> int:
    """Return the number of sessions that were searched: that nothing was found means more if it is known where."""
    period = context.period(request.since, request.until)
    among = SessionFilters(
        provider=request.provider,
        projects=context.projects(request.project),
        since=period.since,
        until=period.until,
    )
    return sessions.count(context.connection, among, newest=snapshot_now(context.connection).session).sessions


_FILTERS = ("session_id", "project", "provider", "path", "tool", "event_type", "kind", "failed", "since", "until")
"""The arguments that only narrow a search."""

_LONGEST_CALL = 300
"""The most characters of a call in a hint."""

_PART_OF_ID = later(r"(?:agent-)?[0-9a-f][0-9a-f-]{7,}", re.IGNORECASE)


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
    return opens.saying("opens the session with this id")


def _without_filters(request: SearchEventPreviews, asked: Question, deadline: Deadline) -> NextCall | None:
    given = [name for name in _FILTERS if getattr(request, name) is not None]
    if not given:
        return None
    everything = replace(asked, filters=EventFilters(without_own=asked.filters.without_own))
    found = everything.page(request.limit, None, deadline)
    arguments: dict[str, Any] = {**arguments_of(request), **dict.fromkeys(given), "cursor": None}
    other = call("search_event_previews", **arguments)
    if not found.hits or len(other.written) > _LONGEST_CALL:
        return None
    number = f"{'' if found.complete else 'at least '}{found.found}"
    return other.saying(f"finds {number}, without {{}}", names=given)


_CUT = "..."
_FEW_STEPS = 10
_ASKED = frozenset({"human", "task"})
"""What is opened only if no other event is better: the rest of a request seldom answers what is asked."""


def _how(ranked: Ranked) -> str:
    if ranked.is_part and ranked.literal:
        return f"found in {counted(len(ranked.literal), 'event')}, then best matches by words"
    if ranked.sure:
        return "partial matches by words" if ranked.nowhere else "best matches by words"
    weak = ranked.nowhere or ranked.share < PARTLY
    return "only weak matches by words" if weak else "only partial matches by words"


def _opening(context: Context, best: Best) -> NextCall:
    """Return the call that opens the best of the events that aren't shown whole, rather an answer than what was asked.

    If all are, it shows what was done in the turn of the best one, if that is short.
    """
    row, shown_id = best.opened.id, best.matches[0].session_id
    shown = [match for match in best.matches if match.session_id == shown_id]
    parts = [match for match in shown if _CUT in str((match.preview, match.result, match.error))]
    turn = events.one(context.connection, row, shown[0].event_index).turn_index
    found = turns.several(context.connection, row, [turn]) if turn is not None and not parts else []
    if turn is not None and found and found[0].step_count <= _FEW_STEPS:
        return opens_turn(context.connection, row, shown_id, turn, "shows what was done in its turn")
    opened = min(parts or shown, key=lambda match: match.preview.get("kind") in _ASKED)
    return opens_event(shown_id, opened.event_index, "opens the best event")


class _Walk(Struct, frozen=True):
    """A page of a search on one snapshot of the index."""

    question: Question
    deadline: Deadline
    behind: Place | None
    seen: int
    """The number of items on the previous pages."""
    cursor: Callable[[Hit | None, int], str]
    """Return the cursor that continues after a hit, or in a ranked list, given the number of items up to it."""
    ranks: bool
    """Whether this is a page of a ranked list."""


def answer(context: Context, request: SearchEventPreviews) -> Reply:
    """Answer with the events of the best sessions, or with those that contain the query, one by one or by session.

    If the best sessions hold only some of the words, events that contain the query as a text are listed instead.
    """
    only = of_rows(request.fields, EventPreview, "matches")
    return replace(_reply(context, request, _walk(context, request)), only=only)


def _reply(context: Context, request: SearchEventPreviews, walk: _Walk) -> Reply:
    best = ranked(walk.question, request.query, walk.deadline, walk.seen) if walk.ranks else Ranked([])
    if best.sure or (best.sessions and walk.seen):
        return _ranked_page(context, request, walk, best)
    found: Hits | SessionHits
    if request.group_by is None:
        found = walk.question.page(request.limit, walk.behind, walk.deadline)
    else:
        found = walk.question.sessions(request.limit, walk.behind, walk.seen, walk.deadline)
    if best.sessions and not found.hits:
        return _ranked_page(context, request, walk, best)
    if found.hits or walk.behind is not None:
        return _page_answer(context, request, walk, found)
    hint = (
        session_named(context, request.query)
        or _corrected(context, request, best.nowhere)
        or _without_filters(request, walk.question, walk.deadline)
    )
    return _page_answer(context, request, walk, found, hint or _otherwise(request), best.nowhere)


def _corrected(context: Context, request: SearchEventPreviews, nowhere: Iterable[str]) -> NextCall | None:
    """Return the same search with the nearest words in place of those that are nowhere; None if none is near."""
    query = request.query
    for word in nowhere:
        query = query.replace(word, near_word(context.connection, word) or word)
    corrected = call(TOOL.name, **arguments_of(request, {*_FILTERS}), query=query)
    return None if query == request.query else corrected.saying("searches the words that may be meant")


def _otherwise(request: SearchEventPreviews) -> NextCall:
    """Return what else to try if nothing was found."""
    by_words = call(TOOL.name, **arguments_of(request, {"query", *_FILTERS}))
    shorter = "; or try a shorter piece of the text."
    if request.ranks or request.regex or not request.query.strip() or len(by_words.written) > _LONGEST_CALL:
        return call("list_sessions").saying("lists the sessions", after=shorter)
    return by_words.saying("finds sessions by its words", after=shorter)


def _ranked_page(context: Context, request: SearchEventPreviews, walk: _Walk, ranked: Ranked) -> Reply:
    """Answer with the matches of the best sessions, saying how well they hold the query, or with those after them."""
    best, seen = best_matches(context.connection, ranked, request.query, context.sent), walk.seen
    size, is_usual = len(best.matches), not seen and request.limit <= limits().page_size
    end = seen + (min(best.first, request.limit) if is_usual else request.limit)
    after = best.rest[max(seen - size, 0) : max(end - size, 0)]
    further, sessions = further_matches(context.connection, ranked, request.query, after)
    matches = dump_all([*best.matches[seen:end], *further])
    around = {} if seen else best.around
    known = {one["session_id"]: one for one in (*dump_all(sessions), *around.get("sessions", ()))}

    def build(count: int) -> dict[str, Any]:
        shown = dict.fromkeys(match["session_id"] for match in matches[:count])
        return {**around, "matches": matches[:count], "sessions": [known[one] for one in shown]}

    return Reply(
        summary=_in_projects(context, walk, _of_ranked(context, request, ranked)),
        data=Pages(
            size=len(matches),
            build=build,
            cursor=lambda count: walk.cursor(None, seen + count),
            more=end < size + len(best.rest),
            first=not seen,
            order="best",
        ),
        budget=limits().list_bytes(request.limit),
        hint=session_named(context, request.query)
        or _corrected(context, request, ranked.nowhere)
        or _opening(context, best),
        untrusted=True,
    )


def _in_projects(context: Context, walk: _Walk, summary: str) -> str:
    return cut(f"{summary}{in_folders(context.connection, walk.question.filters.projects or ())}", SUMMARY)


def _of_ranked(context: Context, request: SearchEventPreviews, ranked: Ranked) -> str:
    summary = _how(ranked)
    if ranked.nowhere:
        among = f" in {counted(sessions_searched(context, request), 'session')}" if not ranked.sure else ""
        summary = cut(f"{summary}; nowhere{among}: {', '.join(ranked.nowhere)}", SUMMARY)
    elif ranked.lacking:
        summary = cut(f"{summary}; not in the best session: {', '.join(ranked.lacking)}", SUMMARY)
    return summary[0].upper() + summary[1:]


def _page_answer(
    context: Context,
    request: SearchEventPreviews,
    walk: _Walk,
    found: Hits | SessionHits,
    hint: Hint | None = None,
    nowhere: Sequence[str] = (),
) -> Reply:
    """Answer with a page of events, or of sessions with their number of events."""
    matches = dump_all(previews(context.connection, found, walk.question.matcher, walk.deadline))
    if matches:
        which = "newest match" if walk.question.order is Order.NEWEST and walk.behind is None else "first of these"
        hint = opens_event(matches[0]["session_id"], matches[0]["event_index"], f"opens the {which}")
    total = found.found if isinstance(found, SessionHits) else walk.seen + found.found
    return Reply(
        summary=_in_projects(context, walk, _summary(context, request, total, found.complete, nowhere)),
        data=Pages(
            size=len(matches),
            build=lambda count: {"matches": matches[:count]},
            cursor=lambda count: walk.cursor(found.hits[count - 1], walk.seen + count),
            more=found.more,
            first=walk.behind is None,
            order=walk.question.order,
            total=total,
            total_exact=found.complete,
        ),
        budget=limits().list_bytes(request.limit),
        hint=hint,
        untrusted=bool(matches),
        counts={"total_count": total},
    )


def _walk(context: Context, request: SearchEventPreviews) -> _Walk:
    """Return the requested page. Raises `Problem` for an invalid cursor or argument."""
    query, behind, seen, ranks = query_of(request), None, 0, request.ranks
    if request.session_id is not None:  # a cursor goes on for whatever prefix of the id
        query["session_id"] = find_session(context.connection, request.session_id).uid
    snapshot, moment = snapshot_of(context.connection), moment_of(context, request.since, request.until)
    if request.cursor is not None:
        snapshot, seen, moment, *place = context.cursors.read(TOOL.name, query, request.cursor)
        behind, ranks = Place(*place) if place else None, not place
    asked = question(replace(context, now=moment / 1000) if moment else context, request, snapshot)

    def cursor(hit: Hit | None, count: int) -> str:
        return context.cursors.make(TOOL.name, query, (snapshot, count, moment, *(hit.place if hit else ())))

    return _Walk(asked, Deadline(context.search_seconds), behind, seen, cursor, ranks)


def _summary(context: Context, request: SearchEventPreviews, total: int, exact: bool, nowhere: Sequence[str]) -> str:
    shown = repeated(request.query, 40)
    how, unit = "matching" if request.regex else "containing", "session" if request.group_by else "event"
    count = f"{'' if exact else 'at least '}{counted(total, unit)}"
    within = "" if total or request.session_id else f" in {counted(sessions_searched(context, request), 'session')}"
    found = f"Found {count}{f' {how} {shown!r}' if request.query else ''}{within}"
    if nowhere and len(request.query.split()) > 1:
        found = cut(f"{found}; nowhere: {', '.join(nowhere)}", SUMMARY)
    return unless_behind(found, total, context)


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
