"""How a session is continued: by the agent's own command, in the folder where it ran."""

from __future__ import annotations

import shlex
import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.providers.registry import AGENTS

from agtrace.problems import NotResumable
from agtrace.sessions.query import short_id


class Resuming(NamedTuple):
    """How a session is continued."""

    command: list[str]
    folder: str | None
    log_gone: bool
    """Whether the agent has deleted the log, so that it doesn't know the session any more."""
    parent_of: str | None
    """The sub-agent that was asked for: only the session that started it can be continued."""

    @property
    def line(self) -> str:
        """The command as a line for a shell."""
        line = " ".join(map(shlex.quote, self.command))
        return line if self.folder is None else f"cd {shlex.quote(self.folder)} && {line}"


def resuming(connection: sqlite3.Connection, asked: Session) -> Resuming:
    """Return how a session is continued; a sub-agent, by the session that started it. Raises `NotResumable`."""
    found = asked
    while found.kind == "subagent" and found.parent_session is not None:
        (found,) = sessions.in_rows(connection, [found.parent_session])
    shown = short_id(connection, asked.uid)
    agent = AGENTS[found.provider]
    if not agent.resumes or found.kind == "subagent":
        why = "its parent is unknown" if agent.resumes else f"{agent.title} has no command for it"
        raise NotResumable(f"{shown} can't be continued: {why}")
    command = [agent.command, *agent.resumes, found.own_id]
    return Resuming(command, found.cwd, bool(found.gone), None if asked is found else shown)
