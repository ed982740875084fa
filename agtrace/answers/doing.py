"""What a session does now, by the end of its log: read from the index and from the log itself.

The status line loads this every few hundred milliseconds, so it loads next to nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.index.queries import events as stored_events
from agtrace_indexer.index.queries.events import Event
from agtrace_indexer.index.queries.sessions import Session, last_piece
from agtrace_indexer.logs.content import last_records
from agtrace_indexer.providers.provider import Agent, Phase
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import EventType, Outcome, UserKind

from agtrace.sessions.activity import Activity, LogEnd, OpenCall, activity

_EVENTS = 200
"""The last events that are looked at: more than one response has."""

_RECORDS = 400
"""The last records of a log in which one is sought that says something about the turn."""

_OF_THE_HARNESS = frozenset({UserKind.COMMAND, UserKind.INJECTED, UserKind.COMPACTION_SUMMARY})


def doing(
    connection: sqlite3.Connection, session: Session, last_at: int, now: int, *, by_words: bool = True
) -> Activity:
    """Return what a session does now; `last_at` is when something happened last in it or its sub-agents.

    Times are milliseconds since 1970 UTC. `by_words`: whether the model's last text is examined for a question.
    """
    agent = AGENTS[session.provider]
    events = stored_events.latest(connection, session.id, _EVENTS)
    last = last_thing(connection, events, agent)
    seen = LogEnd(
        last=None if last is None else last.type,
        open_calls=open_calls(events, agent.tools),
        phase=None if session.gone else phase_of(last_piece(connection, session.path), agent),
        silent_ms=max(now - last_at, 0),
        interrupted=last is not None and _is_interruption(connection, last, agent),
        asks=by_words and last is not None and last.type is EventType.MESSAGE and _asks(connection, last),
    )
    return activity(seen, agent.tools)


def last_thing(connection: sqlite3.Connection, events: Iterable[Event], agent: Agent) -> Event | None:
    """Return the last thing that the human, the model or a tool did, or that stopped them; the latest event is first.

    An error after a text of the model is that of a command, if the agent's commands have errors of the same kind.
    """
    things = (event for event in events if _is_thing(connection, event, agent))
    last = next(things, None)
    if last is None or not (agent.notices.also_of_commands and _is_error(last, agent)):
        return last
    before = next((event for event in things if not _is_error(event, agent)), None)
    return before if before is not None and before.type is EventType.MESSAGE else last


def open_calls(events: Sequence[Event], tools: Tools) -> tuple[OpenCall, ...]:
    """Return the calls of the last turn that have no result, in file order; the latest event is first."""
    turn = next((event.turn_index for event in events if event.turn_index is not None), None)
    never = tools.unanswered | tools.answering
    return tuple(
        OpenCall(event.event_index, event.name or "")
        for event in reversed(events)
        if event.type is EventType.TOOL_CALL
        and event.turn_index == turn
        and event.link is None
        and event.outcome is Outcome.UNKNOWN
        and event.name not in never
    )


def phase_of(path: str, agent: Agent) -> Phase | None:
    """Return what the last record of a log that says something about the turn says; None if none does."""
    if agent.phase is None or path.endswith(".zst"):
        return None
    return next(filter(None, map(agent.phase, islice(last_records(path), _RECORDS))), None)


def _is_thing(connection: sqlite3.Connection, event: Event, agent: Agent) -> bool:
    match event.type:
        case EventType.TOKEN_USAGE:
            return False
        case EventType.USER:
            return event.name not in _OF_THE_HARNESS
        case EventType.NOTIFICATION:
            return _is_error(event, agent) or _is_interruption(connection, event, agent)
    return True


def _is_error(event: Event, agent: Agent) -> bool:
    return event.type is EventType.NOTIFICATION and event.name in agent.notices.api_errors


def _is_interruption(connection: sqlite3.Connection, event: Event, agent: Agent) -> bool:
    if event.type is EventType.USER:
        return event.name == UserKind.INTERRUPTION
    signs = [sign for sign in agent.notices.interruptions if sign.kind == event.name]
    return bool(signs) and any(sign.fits(sign.kind, _text(connection, event)) for sign in signs)


def _asks(connection: sqlite3.Connection, event: Event) -> bool:
    from agtrace.health.facts.questions import question_in

    return question_in(_text(connection, event)) is not None


def _text(connection: sqlite3.Connection, event: Event) -> str:
    from agtrace_indexer.index.queries.events import with_texts

    (stored,) = with_texts(connection, [event])
    return stored.text
