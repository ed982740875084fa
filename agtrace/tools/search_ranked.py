"""A ranked search: the sessions that a query is about, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agtrace_indexer.index.questions import turns
from agtrace_indexer.index.questions.matches import Span
from agtrace_indexer.redact import redact
from agtrace_indexer.texts.ranked_words import query_words
from agtrace_schema.answers import BestSession
from agtrace_schema.model import dump
from msgspec.structs import replace

from agtrace.problems import SearchTimeout
from agtrace.search.best import best_matches
from agtrace.search.deadline import Deadline
from agtrace.search.matching import Contains
from agtrace.search.question import Question
from agtrace.search.ranking import PARTLY, Ranking
from agtrace.search.scoring import Ranked
from agtrace.shaping.replies import Reply
from agtrace.text.lines import SUMMARY, cut, repeated
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.search_arguments import SearchEventPreviews, sessions_searched
from agtrace.tools.search_hints import session_named
from agtrace.tools.tool import Context, event_kilobytes, list_budget, turn_kilobytes

_END_OF_TIME = 1 << 62
_CUT = "..."
_FEW_STEPS = 10
_OPENED_LAST = {"thought": 1, "human": 2, "task": 2}
"""What is opened only if no other event is better: the rest of a request seldom answers what is asked."""
_SECONDS = 0.5
"""The limit for making sure that words stand nowhere."""
_PHRASE, _FEW, _PHRASE_SECONDS = 3, 8, 0.1
"""A query of so many words that at most so many events contain as a text is meant as one; and the limit for that."""


def ranked_sessions(question: Question, query: str) -> Ranked:
    """Return the sessions that the words of a query are about, best first; none if even the best one is faint.

    Words of a secret aren't told: on their own, they might not be recognized as one.
    """
    filters = question.filters
    span = Span(-_END_OF_TIME if filters.since is None else filters.since, filters.until or _END_OF_TIME)
    ranked = Ranking(question.connection, filters, question.snapshot, span).ranked(query, _literally(question, query))
    if not ranked.sessions or (ranked.sure and not ranked.nowhere):
        return ranked
    shown, deadline = query_words(redact(query)), Deadline(_SECONDS)

    def absent(words: Sequence[str], asked: Question) -> tuple[str, ...]:
        return tuple(word for word in words if word in shown and _is_nowhere(asked, word, deadline))

    inside = replace(question, filters=replace(filters, session_row=ranked.sessions[0].session_row))
    return ranked._replace(nowhere=absent(ranked.nowhere, question), lacking=absent(ranked.lacking, inside))


def _literally(question: Question, query: str) -> frozenset[int]:
    """Return the events that contain a query of several words as a text; none if there are many, or no time.

    The ranking index doesn't have the words of the middle of long outputs.
    """
    if len(query_words(query)) < _PHRASE:
        return frozenset()
    with suppress(SearchTimeout):
        found = replace(question, matcher=Contains(query.strip())).page(_FEW, None, Deadline(_PHRASE_SECONDS))
        if not found.more:
            return frozenset(hit.event_id for hit in found.hits)
    return frozenset()


def _is_nowhere(question: Question, word: str, deadline: Deadline) -> bool:
    """Whether no event that passes the filters contains a word: the ranking index lacks the middle of long outputs."""
    return replace(question, matcher=Contains(word)).count(1, deadline) == (0, True)


def ranked_reply(context: Context, wanted: SearchEventPreviews, ranked: Ranked, *, left_out: int = 0) -> Reply:
    """Answer with the best of these sessions, saying how well they hold the query.

    `left_out` is the number of calls to agtrace that contain the query as a text, and of their results.
    """
    found, best = best_matches(context.connection, ranked, wanted.limit), ranked.sessions[0]
    summary = f"{'' if wanted.ranks else 'not found literally; '}{_how(ranked)} for {repeated(wanted.query, 40)!r}"
    if ranked.nowhere:
        among = f" in {counted(sessions_searched(context, wanted), 'session')}" if not ranked.sure else ""
        summary = cut(f"{summary}; nowhere{among}: {', '.join(ranked.nowhere)}", SUMMARY)
    elif ranked.lacking:
        summary = cut(f"{summary}; not in the best session: {', '.join(ranked.lacking)}", SUMMARY)
    data: dict[str, Any] = {} if wanted.ranks else {"sessions" if wanted.group_by else "matches": []}
    data |= {"own_left_out": left_out} if left_out else {}
    return Reply(
        summary=summary[0].upper() + summary[1:],
        data=data | {"best": dump(found)},
        budget=list_budget(wanted.limit),
        hint=session_named(context, wanted.query)
        or _opening(context, best.session_row, best.hits[0].event.turn, found.sessions[0]),
        untrusted=True,
    )


def _how(ranked: Ranked) -> str:
    """Say how well the best session holds the query."""
    if ranked.sure:
        return "partial matches by words" if ranked.nowhere else "best matches by words"
    weak = ranked.nowhere or ranked.sessions[0].share < PARTLY
    return "only weak matches by words" if weak else "only partial matches by words"


def _opening(context: Context, session_row: int, turn: int | None, shown: BestSession) -> NextCall:
    """Return the call that opens the best of the events that aren't shown whole, rather an answer than what was asked.

    If all are, it shows what was done in the turn of the best one, if that is short.
    """
    parts = [hit for hit in shown.hits if _CUT in hit[2]]
    if not parts and turn is not None and _is_short(context, session_row, turn):
        done = call("get_session_details", session_id=shown.session_id, detail_level="turns", turn_index=turn)
        return done.saying(
            "shows what was done in its turn", turn_kilobytes(context.connection, session_row, turn, "turns")
        )
    event_index = min(parts or shown.hits, key=lambda hit: _OPENED_LAST.get(hit[1], 0))[0]
    opened = call("get_event_details", session_id=shown.session_id, event_index=event_index)
    return opened.saying("opens the best event", event_kilobytes(context.connection, session_row, event_index))


def _is_short(context: Context, session_row: int, turn: int) -> bool:
    return turns.size(context.connection, session_row, turn).steps <= _FEW_STEPS
