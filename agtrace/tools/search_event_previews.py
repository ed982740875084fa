"""Search: the events that contain a text, or the sessions that have such events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agtrace_schema.answers import SearchResult
from agtrace_schema.model import dump_all
from msgspec import Struct
from msgspec.structs import replace

from agtrace.search.answers import previews, session_matches
from agtrace.search.matching import Deadline
from agtrace.search.ranking import Ranked, ranked
from agtrace.search.scan import Hit, Hits, Place, Question, SessionHits, snapshot_of
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.lines import SUMMARY, cut, repeated
from agtrace.text.next_call import Hint
from agtrace.text.numbers import counted
from agtrace.tools.search_arguments import SearchEventPreviews, identity, question, sessions_searched
from agtrace.tools.search_hints import after_nothing, opening
from agtrace.tools.search_ranked import ranked_reply
from agtrace.tools.tool import Context, Tool, list_budget, moment_of, unless_behind

__all__ = ["TOOL", "SearchEventPreviews", "answer"]


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
    found = _found(walk, wanted)
    if found.hits or walk.behind is not None:
        return _listed(context, wanted, walk, found, opening(context, wanted, found.hits))
    if not wanted.ranks and not wanted.regex:
        best = ranked(walk.question, wanted.query, walk.deadline)
    if best.sessions:
        return ranked_reply(context, wanted, best)
    hint = after_nothing(context, wanted, walk.question, walk.deadline)
    return _listed(context, wanted, walk, found, hint, best.nowhere)


def _found(walk: _Walk, wanted: SearchEventPreviews) -> Hits | SessionHits:
    if wanted.group_by is None:
        return walk.question.page(wanted.limit, walk.behind, walk.deadline)
    return walk.question.sessions(wanted.limit, walk.behind, walk.seen, walk.deadline)


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
        budget=list_budget(wanted.limit),
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
