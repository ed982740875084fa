"""A ranked search: the sessions that a query is about, and how sure that is."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.index.questions import events, turns
from agtrace_schema.answers import BestSession
from agtrace_schema.model import dump

from agtrace.search.answers import best_matches
from agtrace.search.ranking import PARTLY, Ranked
from agtrace.shaping.replies import Reply
from agtrace.text.lines import SUMMARY, cut, repeated
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.search_arguments import SearchEventPreviews, sessions_searched
from agtrace.tools.search_hints import session_named
from agtrace.tools.tool import Context, event_kilobytes, list_budget, turn_kilobytes

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
        budget=list_budget(wanted.limit),
        hint=session_named(context, wanted.query) or _opening(context, best.session_row, found.sessions[0]),
        untrusted=True,
    )


def _how(ranked: Ranked) -> str:
    """Say how well the best session holds the query."""
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
