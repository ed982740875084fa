"""How a session is continued: the agent's own command, and the folder where it ran."""

from __future__ import annotations

import shlex
import sqlite3

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from msgspec import Struct

from agtrace.sessions.query import short_id


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
