"""The readable thoughts of a session, each with what the model did next."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from agtrace_indexer.index.queries import events
from agtrace_indexer.index.queries.events import Event, StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import ReasoningChain, Thought
from agtrace_schema.events import EventType
from agtrace_schema.model import dump_all

from agtrace.sessions import turns
from agtrace.sessions.query import find_session, last_event_of, short_id
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages, Reply, of_rows
from agtrace.text.lines import LABEL, SUMMARY, cut, name_in_sentence, one_line, without_controls
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.times import iso
from agtrace.tools.arguments import DEFAULT_LIMIT, AnotherId, Arguments, Cursor, Fields, Limit, TurnIndex
from agtrace.tools.tool import Context, Tool, opens_event, query_of, up_to

TEXT = 1_000
"""The most characters of a thought that the chain shows."""

_KINDS = (EventType.REASONING, EventType.TOOL_CALL, EventType.MESSAGE)


class Chain(NamedTuple):
    """The events with the thinking of a session; their texts are not opened yet."""

    readable: list[int]
    """The event_index of every thought with a text, in file order."""
    hidden: int
    """The number of thoughts without readable text in the log."""
    copied: int
    """How many of the readable ones are copies from another session."""


def chain_of(connection: sqlite3.Connection, session: Session, turn_index: int | None, last_event: int) -> Chain:
    """Find the thoughts of a session, or of a turn, up to an event, including copies but not superseded ones.

    Codex's encrypted reasoning is counted per log, so it is among the hidden only if no turn is requested.
    """
    found = events.reasoning(connection, session.id, last_event=last_event, turn_index=turn_index)
    having_text = events.having_text(connection, session.id, found)
    left_out = 0 if turn_index is not None else events.reasoning_left_out(connection, session.file_id)
    return Chain(
        readable=[index for index in found if index in having_text],
        hidden=len(found) - len(having_text) + left_out,
        copied=sum(found[index] for index in having_text),
    )


def thoughts(connection: sqlite3.Connection, session: Session, indices: list[int], last_event: int) -> list[Thought]:
    """Return the thoughts with these event indices."""
    if not indices:
        return []
    found = events.several(connection, session.id, indices)
    following = _actions(connection, session.id, found, last_event)
    return [_thought(event, following.get(event.event_index)) for event in with_texts(connection, found)]


def _thought(event: StoredEvent, following: str | None) -> Thought:
    row, text = event.row, without_controls(event.text).strip()
    return Thought(
        event_index=event.event_index,
        turn_index=row.turn_index,
        step_index=row.step_index,
        timestamp=iso(row.ts),
        text=cut(text, TEXT),
        chars=len(event.text) if len(text) > TEXT else None,
        next=following,
        copied=True if row.copy_of is not None else None,
    )


def _actions(
    connection: sqlite3.Connection, session_row: int, thinking: Iterable[Event], last_event: int
) -> dict[int, str]:
    """Return what follows each of these thoughts in its step, up to the next thought."""
    places = {
        thought.event_index: (thought.turn_index, thought.step_index)
        for thought in thinking
        if thought.turn_index is not None and thought.step_index is not None
    }
    steps: dict[tuple[int | None, int | None], list[Event]] = {}
    for event in events.of_steps(connection, session_row, set(places.values()), _KINDS, last_event):
        steps.setdefault((event.turn_index, event.step_index), []).append(event)
    said = {thought: _action(connection, thought, steps[place]) for thought, place in places.items()}
    return {index: action for index, action in said.items() if action is not None}


def _action(connection: sqlite3.Connection, thought: int, step: list[Event]) -> str | None:
    """Return the tools called after a thought, or else the beginning of the message after it."""
    behind = [event for event in step if event.event_index > thought]
    followed = list(takewhile(lambda event: event.type != EventType.REASONING, behind))
    tools = Counter(
        name_in_sentence(event.name, LABEL) if event.name else "an unnamed tool"
        for event in followed
        if event.type == EventType.TOOL_CALL
    )
    if tools:
        return cut("calls " + ", ".join(f"{name} x{n}" if n > 1 else name for name, n in tools.items()), SUMMARY)
    messages = [event for event in followed if event.type == EventType.MESSAGE]
    if not messages:
        return None
    said = one_line(with_texts(connection, messages[:1])[0].text, SUMMARY - len("says ''"))
    return f"says {said!r}"


_LONG_BYTES = 51_200


class GetReasoningChain(Arguments):
    """Arguments of get_reasoning_chain."""

    session_id: AnotherId
    turn_index: TurnIndex = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor = None
    fields: Fields = None


def answer(context: Context, request: GetReasoningChain) -> Reply:
    """Answer with the readable thoughts of a session, in file order."""
    connection = context.connection
    session = find_session(connection, request.session_id)
    if request.turn_index is not None:
        turns.check_turn(connection, session, request.turn_index)
    query = {**query_of(request), "session_id": session.uid}
    behind, last_event = -1, last_event_of(connection, session)
    if request.cursor is not None:
        behind, last_event = context.cursors.read(TOOL.name, query, request.cursor)
    chain = chain_of(connection, session, request.turn_index, last_event)
    left = [index for index in chain.readable if index > behind]
    shown = thoughts(connection, session, left[: request.limit], last_event)
    shown_id = short_id(connection, session.uid)
    parts = {
        "session_id": shown_id,
        "turn_index": request.turn_index,
        "total": len(chain.readable),
        "hidden": chain.hidden,
        "copied": chain.copied or None,
    }
    head = {name: part for name, part in parts.items() if part is not None}
    return Reply(
        summary=_summary(session.provider, shown_id, request.turn_index, chain),
        data=Pages(
            size=len(shown),
            build=lambda count: {**head, "chain": dump_all(shown[:count])},
            cursor=lambda count: context.cursors.make(TOOL.name, query, (shown[count - 1].event_index, last_event)),
            more=len(left) > len(shown),
            first=request.cursor is None,
            total=len(chain.readable),
        ),
        budget=limits().size(_LONG_BYTES if request.limit > limits().page_size else None),
        hint=_hint(connection, session, request.turn_index, shown),
        reference=f"ax://session/{shown_id}",
        untrusted=True,
        counts={"total": len(chain.readable), "hidden": chain.hidden},
        only=of_rows(request.fields, Thought, "chain"),
    )


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
        return opening.saying("shows what was done", up_to(30_720))
    what = f"a thought of {cut.chars:,} characters" if cut.chars else "a thought with its links"
    return opens_event(shown_id, cut.event_index, f"opens {what}")


TOOL = Tool(
    "get_reasoning_chain",
    "Read the thinking",
    "Why something was done: each thought of a session with what the model did next.",
    GetReasoningChain,
    (ReasoningChain,),
    answer,
)
