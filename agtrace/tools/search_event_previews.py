"""Search: the events that contain a text, or the sessions that have such events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agtrace_indexer.index.questions.matches import Span
from agtrace_schema.answers import dump_all

from agtrace.index.freshness import Freshness
from agtrace.search.best import best_matches
from agtrace.search.deadline import Deadline
from agtrace.search.grouping import previews, session_matches
from agtrace.search.hits import Hit, Place
from agtrace.search.question import Hits, Question, SessionHits, snapshot_of
from agtrace.search.ranking import FAINT, SURE, RankedSession, Ranking
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.lines import repeated
from agtrace.text.next_call import Hint, call
from agtrace.text.numbers import counted
from agtrace.tools.search_arguments import SearchEventPreviews, identity, moment_of, question
from agtrace.tools.search_hints import after_hits, after_nothing
from agtrace.tools.tool import Context, Tool, event_kilobytes, list_budget, unless_behind

_END_OF_TIME = 1 << 62

__all__ = ["TOOL", "SearchEventPreviews", "answer"]


@dataclass(frozen=True, slots=True)
class _Walk:
    """A page of a search on one snapshot of the index."""

    question: Question
    behind: Place | None
    seen: int
    """The number of items on the previous pages."""
    cursor: Callable[[Hit, int], str]
    """Return the cursor that continues after a hit, given the number of items up to it."""


def answer(context: Context, wanted: SearchEventPreviews) -> Reply:
    """Answer with the events that match a query, in the requested order, or grouped by session."""
    walk, deadline = _walk(context, wanted), Deadline(context.search_seconds)
    if wanted.order == "best":
        return _best(context, wanted, walk.question)
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
    elif walk.behind is None and not wanted.regex and (ranked := _ranked(walk.question, wanted.query)):
        return _by_words(context, wanted, ranked, found.left_out)
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


def _ranked(question: Question, query: str) -> list[RankedSession]:
    """Return the sessions that the words of a query are about, if there is any that isn't faint."""
    filters = question.filters
    span = Span(-_END_OF_TIME if filters.since is None else filters.since, filters.until or _END_OF_TIME)
    found = Ranking(question.connection, filters, question.snapshot, span).sessions(query)
    return found if found and found[0].share >= FAINT else []


def _best(context: Context, wanted: SearchEventPreviews, question: Question) -> Reply:
    """Answer with the best sessions by the words of the query."""
    ranked = _ranked(question, wanted.query)
    if not ranked:
        said = f"Nothing is about {repeated(wanted.query, 60)!r}"
        return Reply(summary=unless_behind(said, 0, context.freshness), data={"best": {"sessions": [], "others": []}},
                     budget=list_budget(wanted.limit))  # fmt: skip
    return _ranked_reply(context, wanted, ranked, "", {})


def _by_words(context: Context, wanted: SearchEventPreviews, ranked: list[RankedSession], left_out: int) -> Reply:
    """Answer by words a query that stands literally nowhere."""
    beside: dict[str, Any] = {"sessions" if wanted.group_by else "matches": []}
    beside |= {"own_left_out": left_out} if left_out else {}
    return _ranked_reply(context, wanted, ranked, "Not found literally; ", beside)


def _ranked_reply(
    context: Context, wanted: SearchEventPreviews, ranked: list[RankedSession], first: str, beside: dict[str, Any]
) -> Reply:
    found, best = best_matches(context.connection, ranked), ranked[0]
    how = "best matches by words" if best.share >= SURE else "only weak matches by words"
    summary = f"{first}{how} of {repeated(wanted.query, 40)!r}"
    hit = best.hits[0].event
    opened = call("get_event_details", session_id=found.sessions[0].session_id, event_index=hit.event_index)
    size = event_kilobytes(context.connection, hit.session, hit.event_index)
    return Reply(
        summary=summary[:1].upper() + summary[1:],
        data=beside | {"best": found.model_dump(mode="json", exclude_none=True)},
        budget=list_budget(wanted.limit),
        hint=(opened.saying("opens the best event", size),),
        untrusted=True,
    )


def _walk(context: Context, wanted: SearchEventPreviews) -> _Walk:
    """Return the requested page. Raises `Problem` for an invalid cursor or argument."""
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
    count = f"{'' if exact else 'at least '}{counted(total, unit)}"
    return unless_behind(f"Found {count}{f' {how} {shown!r}' if wanted.query else ''}", total, freshness)


TOOL = Tool(
    "search_event_previews",
    "Search events",
    "Find what was said or done before: every prompt, answer, tool argument, tool output and error that "
    "contains a text, newest first, with a preview of the match. Paths, code and punctuation are ordinary "
    "text. If nothing is found, try a shorter literal text or set words. Next: get_event_details on a match.",
    SearchEventPreviews,
    answer,
)
