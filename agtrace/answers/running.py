"""The sessions of all agents that are running, each with what it does now, as the index and the logs show them."""

from __future__ import annotations

import sqlite3
from typing import Any

from agtrace_indexer.index.queries import events, sessions, turns
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.index.queries.usage import Among, filled, largest_request
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import EventType

from agtrace.answers.doing import doing
from agtrace.sessions.activity import Activity, Recent, Running, RunningSession
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


def open_question(connection: sqlite3.Connection, session: Session, last_at: int, now: int) -> str | None:
    """Return what a session asked the human within a day, if nothing has happened since; else None.

    Times are milliseconds since 1970 UTC; `last_at` is when something happened last.
    """
    recent = now - last_at < DAY_MS and not session.gone and session.kind != "subagent"
    does = doing(connection, session, last_at, now) if recent else None
    return _now(connection, session, does) if does is not None and does.waits in _ASKED else None


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
