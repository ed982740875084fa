"""What a person wants to know of a session beside an answer: its whole id and title, agent, last activity, cost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agtrace_indexer.index.questions.sessions import people_of
from agtrace_indexer.redact import redact
from msgspec import Struct

from agtrace.problems import Problem
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_session
from agtrace.sessions.usage import Usage, usage_of
from agtrace.times import iso


class Described(Struct, frozen=True):
    """A session."""

    session_id: str
    """Its whole id."""
    provider: str
    user: str | None
    """Who pushed it, in a team's index."""
    project: str | None
    title: str | None
    """Whole; the beginning of the first request if it has none."""
    started: str | None
    """When it began, in ISO 8601."""
    started_at: int | None
    """Milliseconds since 1970 UTC, as the next one."""
    ended_at: int | None
    cost_usd: float | None
    cost_made: str | None
    """How it was made (`usage.Usage.cost_made`)."""


def described(connection: sqlite3.Connection, prices: PriceTable, ids: Iterable[str]) -> dict[str, Described]:
    """Return sessions by the ids that an answer gives them; those that have been forgotten since are left out."""
    rows = {}
    for id in dict.fromkeys(ids):
        try:
            rows[id] = find_session(connection, id)
        except Problem:
            continue
    names, users = labels(connection), people_of(connection, [session.id for session in rows.values()])
    used = usage_of(connection, prices, [session.id for session in rows.values()])
    return {
        id: Described(
            session_id=session.uid,
            provider=session.provider,
            user=users.get(session.id),
            project=names.get(session.project_id or 0),
            title=redact(session.title or session.snippet or "") or None,
            started=iso(session.started_at),
            started_at=session.started_at,
            ended_at=session.ended_at,
            cost_usd=used.get(session.id, Usage()).cost,
            cost_made=used.get(session.id, Usage()).cost_made,
        )
        for id, session in rows.items()
    }
