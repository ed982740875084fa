"""The sessions of all agents that are running, each with what it does now, as the index and the logs show them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.index.questions import events, sessions, turns
from agtrace_indexer.index.questions import events as stored_events
from agtrace_indexer.index.questions.events import Event, StoredEvent, with_texts
from agtrace_indexer.index.questions.sessions import Session, last_piece
from agtrace_indexer.index.questions.usage import Among, filled, largest_request
from agtrace_indexer.logs.content import last_records
from agtrace_indexer.providers.provider import Agent, Phase
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import EventType, Outcome, UserKind

from agtrace.sessions.activity import Activity, OpenCall, Recent, Running, RunningSession, Seen, activity
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.turns import telling_argument
from agtrace.sessions.usage import Usage, usage_by
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, repeated
from agtrace.times import iso

MOST = 50
"""The most sessions that are shown at once."""

RECENT = 5
"""Sessions named where none is running."""

DAY_MS = 24 * 3600 * 1000
"""For so long a question of an agent waits to be answered, however long nothing happens meanwhile."""

_ASKED = frozenset({"question", "plan", "permission"})
"""What the human is asked for, unlike an answer that they may or may not go on with."""

_LOOKED_AT = 4_000
"""Characters of a text of which the beginning is shown."""


def running(
    connection: sqlite3.Connection,
    prices: PriceTable,
    *,
    now: int,
    within_ms: int,
    asked: dict[tuple[int, int], bool] | None = None,
    problem: str | None = None,
) -> Running:
    """Return the sessions in which something happened within a time, and those that asked the human something before.

    `now` is in milliseconds since 1970 UTC. `asked` remembers, for the next look, which sessions did that, by row id
    and last activity. `problem` is why the index isn't up to date.
    """
    names = labels(connection)
    last_at = sessions.active(connection, now - max(within_ms, DAY_MS), MOST)
    known = {} if asked is None else asked
    for session in sessions.in_rows(connection, (id for id, at in last_at.items() if at < now - within_ms)):
        at = last_at[session.id]
        if (session.id, at) not in known:
            known[session.id, at] = doing(connection, session, at, now).waits in _ASKED and not session.gone
        if not known[session.id, at]:
            del last_at[session.id]
    found = [
        _running(connection, session, names, prices, last_at[session.id], now)
        for session in sessions.in_rows(connection, last_at)
    ]
    found.sort(key=lambda session: (session.is_closed, session.waits_for_you is not True, session.idle_seconds))
    at_work = any(not session.is_closed for session in found)
    recent = [] if at_work else [_recent(connection, session, names) for session in sessions.newest(connection, RECENT)]
    asked_before = sum(session.idle_seconds * 1000 >= within_ms and not session.is_closed for session in found)
    return Running(tuple(found), tuple(recent), asked_before, problem)


def asks(connection: sqlite3.Connection, session: Session, last_at: int, now: int) -> bool:
    """Whether a session has asked the human something within a day, and nothing has happened since.

    Times are milliseconds since 1970 UTC; `last_at` is when something happened last.
    """
    recent = now - last_at < DAY_MS and not session.gone and session.kind != "subagent"
    return recent and doing(connection, session, last_at, now).waits in _ASKED


def _running(
    connection: sqlite3.Connection, session: Session, names: dict[int, str], prices: PriceTable, last_at: int, now: int
) -> RunningSession:
    does = doing(connection, session, last_at, now)
    family = sessions.with_agents(connection, session.id)
    usage = usage_by(connection, prices, Among("all", sessions=family.ids)).get(0, Usage())
    model, tokens, window = _context(connection, session, prices)
    waits_for_you = does.state == "waiting" if does.waits_known else None
    return RunningSession(
        id=short_id(connection, session.uid),
        session_id=session.uid,
        provider=session.provider,
        agent=AGENTS[session.provider].title,
        project=names.get(session.project_id or 0),
        branch=session.branch and repeated(session.branch, LABEL),
        title=_shown(session.title or session.snippet),
        request=_request(connection, session),
        state=does.state,
        waits=does.waits,
        waits_for_you=waits_for_you,
        now=_now(connection, session, does),
        why=does.why,
        tool=does.call and repeated(does.call.tool or NO_TOOL, LABEL),
        last_activity=iso(last_at),
        idle_seconds=max(now - last_at, 0) // 1000,
        model=model and repeated(model, LABEL),
        context_tokens=tokens,
        context_window=window,
        context_percent=None if not tokens or not window else round(100 * tokens / window),
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        tool_calls=family.tool_calls,
        failed_calls=family.failed_calls,
        log_gone=bool(session.gone),
    )


def _recent(connection: sqlite3.Connection, session: Session, names: dict[int, str]) -> Recent:
    return Recent(
        id=short_id(connection, session.uid),
        agent=AGENTS[session.provider].title,
        project=names.get(session.project_id or 0),
        title=_shown(session.title or session.snippet),
        last_activity=iso(session.ended_at),
    )


def _context(
    connection: sqlite3.Connection, session: Session, prices: PriceTable
) -> tuple[str | None, int | None, int | None]:
    """Return the model, the tokens that fill its window, and the window's size.

    After a compaction nothing is known until the next response. A window that a request exceeded isn't the real one.
    """
    found = filled(connection, session.id)
    if found is None:
        return session.model, None, None
    largest, _ = largest_request(connection, session.id)
    window = found.context_window or prices.window(found.model)
    if window and max(largest or 0, found.tokens) > window:
        window = None
    tokens = None if _is_compacted(connection, session, found.event_index) else found.tokens
    return found.model or session.model, tokens, window


def _is_compacted(connection: sqlite3.Connection, session: Session, since: int) -> bool:
    """Whether the context was replaced by a summary after an event."""
    signs = AGENTS[session.provider].notices.compactions
    later = [event for event in events.latest(connection, session.id, MOST) if event.event_index > since]
    notices = [event for event in later if event.type is EventType.NOTIFICATION]
    named = [event for event in notices if any(sign.kind == event.name for sign in signs)]
    return any(
        any(sign.fits(event.row.name or "", event.text) for sign in signs) for event in with_texts(connection, named)
    )


def _request(connection: sqlite3.Connection, session: Session) -> str | None:
    last = turns.last(connection, session.id)
    found = [] if last is None else turns.several(connection, session.id, [last])
    return _shown(found[0].request) if found else None


def _now(connection: sqlite3.Connection, session: Session, does: Activity) -> str:
    if does.call is not None:
        return _call(_event(connection, session, does.call.event_index))
    if does.state in ("waiting", "idle", "unknown", "answering"):
        last = events.last(connection, session.id)
        said = None if last is None else events.last_of_type(connection, session.id, EventType.MESSAGE, last)
        text = "" if said is None or does.waits == "error" else _event(connection, session, said).text
        return _shown(text) or ""
    return ""


def _event(connection: sqlite3.Connection, session: Session, event_index: int) -> StoredEvent:
    (event,) = with_texts(connection, [events.one(connection, session.id, event_index)])
    return event


def _call(call: StoredEvent) -> str:
    """Return the tool of a call with its most telling argument, or the question that it asks."""
    arguments = call.rest.get("arguments")
    question = _question(arguments)
    if question:
        return _shown(question) or ""
    tool, about = repeated(call.row.name or NO_TOOL, LABEL), _shown(telling_argument(arguments))
    return f"{tool} {about}" if about else tool


def _question(arguments: Any) -> str | None:
    """Return the first of the questions that a call puts to the human."""
    asked = arguments.get("questions") if isinstance(arguments, dict) else None
    first = asked[0] if isinstance(asked, list) and asked else None
    said = first.get("question") if isinstance(first, dict) else first
    return said if isinstance(said, str) else None


def _shown(text: str | None) -> str | None:
    return repeated(text[:_LOOKED_AT], USER_MESSAGE) or None if text else None


# -- at work ------------------------------------------------------------------------------------------

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
    seen = Seen(
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
    from agtrace.health.facts.questions import asks_to_go_on

    return asks_to_go_on(_text(connection, event))


def _text(connection: sqlite3.Connection, event: Event) -> str:
    from agtrace_indexer.index.questions.events import with_texts

    (stored,) = with_texts(connection, [event])
    return stored.text
