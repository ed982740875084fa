"""Search: the events that contain a text, or the sessions that have such events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agtrace.index.freshness import Freshness
from agtrace.search.deadline import Deadline
from agtrace.search.grouping import previews, session_matches
from agtrace.search.hits import Hit, Place
from agtrace.search.question import Hits, Question, SessionHits, snapshot_of
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.lines import repeated
from agtrace.text.next_call import Hint
from agtrace.tools.search_arguments import SearchEventPreviews, identity, moment_of, question
from agtrace.tools.search_hints import after_hits, after_nothing
from agtrace.tools.tool import Context, Tool, dump_all, list_budget, unless_behind

__all__ = ["TOOL", "SearchEventPreviews", "answer"]


@dataclass(frozen=True, slots=True)
class _Walk:
    """Which page of an answer is wanted, and of which state of the index."""

    question: Question
    behind: Place | None
    seen: int
    """Items on the pages before."""
    cursor: Callable[[Hit, int], str]
    """Give the cursor that continues behind a hit, and how many items lie before that."""


def answer(context: Context, wanted: SearchEventPreviews) -> Reply:
    """The events that answer a query, newest first, or as the order says; on request by session."""
    walk, deadline = _walk(context, wanted), Deadline(context.search_seconds)
    found: Hits | SessionHits
    if wanted.group_by is None:
        found = walk.question.page(wanted.limit, walk.behind, deadline)
        items = dump_all(previews(context.connection, found.hits, walk.question.matcher))
        key, total = "matches", walk.seen + found.found
    else:
        found = walk.question.sessions(wanted.limit, walk.behind, walk.seen, deadline)
        items = dump_all(session_matches(context.connection, found, walk.question.matcher))
        key, total = "sessions", found.found
    beside: dict[str, Any] = {"own_left_out": found.left_out} if found.left_out else {}
    hint: Hint | None = None
    if found.hits:
        hint = after_hits(context, wanted, walk.question, found.hits, deadline, first=walk.behind is None)
    elif walk.behind is None:
        words, hint = after_nothing(context, wanted, walk.question, found.left_out, deadline)
        beside |= {"words": dump_all(words)} if words else {}
    return Reply(
        summary=_summary(wanted, total, found.complete, context.freshness),
        data=Pages(
            size=len(items),
            build=lambda count: {key: items[:count], **beside},
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
    """Where the answer goes on. Raises `Problem` for a cursor or arguments that can't be used."""
    query, behind, seen = identity(context, wanted), None, 0
    snapshot, moment = snapshot_of(context.connection), moment_of(context, wanted)
    if wanted.cursor is not None:
        ts, event, snapshot, seen, moment = context.cursors.read(TOOL.name, query, wanted.cursor)
        behind = Place(ts, event)
    asked = question(replace(context, now=moment / 1000) if moment else context, wanted, snapshot)

    def cursor(hit: Hit, count: int) -> str:
        return context.cursors.make(TOOL.name, query, (*hit.place, snapshot, count, moment))

    return _Walk(asked, behind, seen, cursor)


def _summary(wanted: SearchEventPreviews, total: int, exact: bool, freshness: Freshness) -> str:
    shown = repeated(wanted.query, 40)
    how = "matching" if wanted.regex else "with all words of" if wanted.words else "containing"
    unit = "session" if wanted.group_by else "turn" if wanted.words == "turn" else "event"
    count = f"{'' if exact else 'at least '}{total} {unit}{'s' * (total != 1)}"
    return unless_behind(f"Found {count}{f' {how} {shown!r}' if wanted.query else ''}", total, freshness)


TOOL = Tool(
    "search_event_previews",
    "Search events",
    "Find what was said or done before: every prompt, answer, tool argument, tool output and error that "
    "contains a text, newest first, as previews around the match. Paths, code and punctuation are ordinary "
    "text. If nothing is found, try a shorter, more literal piece, or words. Next: get_event_details on a match.",
    SearchEventPreviews,
    answer,
)
