"""What a person wants to know of a session beside an answer: title, last activity, cost, and how to continue it."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterable

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session, people_of
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact
from msgspec import Struct

from agtrace.problems import Problem
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.usage import Usage, usage_of
from agtrace.times import iso


class Resuming(Struct, frozen=True):
    """How a session is continued."""

    command: list[str]
    """Empty if it can't be continued."""
    folder: str | None
    log_gone: bool
    """Whether the agent has deleted the log, so that it doesn't know the session any more."""
    parent_of: str | None
    """The sub-agent that was asked for: only the session that started it can be continued."""
    why_not: str | None
    """Why it can't be continued."""

    @property
    def obstacle(self) -> str | None:
        """Why the agent will not continue it, as far as that is known; None if nothing is in its way."""
        return "its log is gone: the agent doesn't know it any more" if self.log_gone else self.why_not

    @property
    def line(self) -> str:
        """The command as it is pasted into a shell, after a change to the folder; empty if there is none."""
        typed = shlex.join(self.command)
        return (
            typed
            if self.folder is None or not typed
            else f"cd {'-- ' * self.folder.startswith('-')}{shlex.quote(self.folder)} && {typed}"
        )


def resuming(connection: sqlite3.Connection, asked: Session) -> Resuming:
    """Return how a session is continued; a sub-agent, in the session that started it."""
    found = asked
    while found.kind == "subagent" and found.parent_session is not None:
        (found,) = sessions.in_rows(connection, [found.parent_session])
    agent = AGENTS[found.provider]
    why_not = None
    if not agent.resumes:
        why_not = f"{agent.title} has no command for it"
    elif found.kind == "subagent":
        why_not = "its parent is unknown"
    command = [] if why_not else [agent.command, *agent.resumes, found.own_id]
    parent_of = None if asked is found else short_id(connection, asked.uid)
    return Resuming(command, found.cwd, bool(found.gone), parent_of, why_not)


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
