"""The thinking of a session, and nothing else."""

from __future__ import annotations

import sqlite3
from typing import Any

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import ReasoningChain, Thought
from agtrace_schema.model import dump_all

from agtrace.sessions import reasoning, turns
from agtrace.sessions.query import find_session, last_event_of, short_id
from agtrace.sessions.reasoning import Chain, Extent
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import DEFAULT_LIMIT, AnotherId, Arguments, Cursor, Limit, TurnIndex
from agtrace.tools.tool import Context, Tool, event_kilobytes, kilobytes, query_of

_LONG_BYTES = 51_200


class GetReasoningChain(Arguments):
    """Arguments of get_reasoning_chain."""

    session_id: AnotherId
    turn_index: TurnIndex = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None


def answer(context: Context, wanted: GetReasoningChain) -> Reply:
    """Answer with the readable thoughts of a session, in file order."""
    connection = context.connection
    session = find_session(connection, wanted.session_id)
    if wanted.turn_index is not None:
        turns.check_turn(connection, session, wanted.turn_index)
    query = {**query_of(wanted), "session_id": session.uid}
    behind, last_event = -1, last_event_of(connection, session)
    if wanted.cursor is not None:
        behind, last_event = context.cursors.read(TOOL.name, query, wanted.cursor)
    chain = reasoning.chain_of(connection, session, Extent(wanted.turn_index, last_event))
    left = [index for index in chain.readable if index > behind]
    shown = reasoning.thoughts(connection, session, left[: wanted.limit], last_event)
    shown_id = short_id(connection, session.uid)
    head = _head(shown_id, wanted.turn_index, chain)
    return Reply(
        summary=_summary(session.provider, shown_id, wanted.turn_index, chain),
        data=Pages(
            size=len(shown),
            build=lambda count: {**head, "chain": dump_all(shown[:count])},
            cursor=lambda count: context.cursors.make(TOOL.name, query, (shown[count - 1].event_index, last_event)),
            more=len(left) > len(shown),
            first=wanted.cursor is None,
            total=len(chain.readable),
        ),
        budget=limits().size(_LONG_BYTES if wanted.limit > limits().page_size else None),
        hint=_hint(connection, session, wanted.turn_index, shown),
        reference=f"ax://session/{shown_id}",
        untrusted=True,
        counts={"total": len(chain.readable), "hidden": chain.hidden},
    )


def _head(shown_id: str, turn_index: int | None, chain: Chain) -> dict[str, Any]:
    """Return the fields before the thoughts; they are exact on every page."""
    parts = {
        "session_id": shown_id,
        "turn_index": turn_index,
        "total": len(chain.readable),
        "hidden": chain.hidden,
        "copied": chain.copied or None,
    }
    return {name: part for name, part in parts.items() if part is not None}


def _summary(provider: str, shown_id: str, turn_index: int | None, chain: Chain) -> str:
    """Say how many thoughts there are, or why none can be read."""
    where = f"Session {shown_id}" if turn_index is None else f"Turn {turn_index} of session {shown_id}"
    readable, hidden = len(chain.readable), chain.hidden
    if readable:
        return f"{where}: {counted(readable, 'thought')}{f', {hidden} more hidden' if hidden else ''}"
    if hidden:
        return (
            f"{where}: no readable reasoning: {counted(hidden, 'thought')}, logged {AGENTS[provider].hidden_reasoning}"
        )
    return f"{where}: no reasoning: {provider} logged none here"


def _hint(connection: sqlite3.Connection, session: Session, turn_index: int | None, shown: list[Thought]) -> NextCall:
    """Return the call that opens the longest truncated thought, otherwise the first one; without any, the steps."""
    shown_id = short_id(connection, session.uid)
    cut = max(shown, key=lambda thought: thought.chars or 0, default=None)
    if cut is None:
        opening = call("get_session_details", session_id=shown_id, detail_level="turns", turn_index=turn_index)
        return opening.saying("shows what was done", kilobytes(0, 30_720))
    what = f"a thought of {cut.chars:,} characters" if cut.chars else "a thought with its links"
    opening = call("get_event_details", session_id=shown_id, event_index=cut.event_index)
    return opening.saying(f"opens {what}", event_kilobytes(connection, session.id, cut.event_index))


TOOL = Tool(
    "get_reasoning_chain",
    "Read the thinking",
    "Why something was done: each thought of a session with what the model did next.",
    GetReasoningChain,
    (ReasoningChain,),
    answer,
)
