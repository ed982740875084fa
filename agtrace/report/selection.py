"""The sessions of a report: main sessions, forks and continuations, each with its sub-agents.

A sub-agent is rolled up into the session that started it, whenever and wherever it ran; it counts by itself only if
that session isn't in the index. Warm-ups don't count as sessions. Filters apply to the session, not to its sub-agents.
What `since` and `until` mean, `sessions/terms.py` says.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from agtrace_indexer.index.queries import sessions
from agtrace_indexer.index.queries.sessions import Session
from msgspec import Struct

from agtrace.report.wording import AGENTS
from agtrace.sessions.terms import believable, is_active_within
from agtrace.text.numbers import counted
from agtrace.times import local, zone


class Selection(Struct, frozen=True):
    """The filters of a report; times are milliseconds since 1970 UTC, both ends included."""

    provider: str | None = None
    project: str | None = None
    """As the user gave it."""
    projects: tuple[int, ...] | None = None
    """The projects that it matches (`sessions.projects.resolved`); None for all sessions."""
    since: int | None = None
    until: int | None = None

    def sentence(self, sessions: int) -> str:
        """Describe the selection: `12 sessions of Codex in tidepool since 2026-11-14 00:00 UTC`."""
        agent = [f"of {AGENTS[self.provider]}"] if self.provider else []
        project = [f"in {self.project}"] if self.project else []
        since = [f"since {minute(self.since)}"] if self.since is not None else []
        until = [f"until {minute(self.until)}"] if self.until is not None else []
        restricted = [*agent, *project, *since, *until, *([zone(self.since or self.until)] if since or until else [])]
        return " ".join([counted(sessions, "session"), *restricted]) if restricted else "all sessions in the index"


def minute(moment: int) -> str:
    """Format a time in milliseconds since 1970 UTC as `2026-11-14 09:30` in the machine's zone."""
    return (local(moment) or "1970-01-01T00:00")[:16].replace("T", " ")


class Family(Struct, frozen=True):
    """A session of a report, with the sub-agents rolled up into it."""

    row: Session
    members: tuple[int, ...]
    """The rows of the session and of the sub-agents below it."""

    @property
    def started_at(self) -> int:
        """When the session began, in milliseconds since 1970 UTC; 0 if unknown."""
        return believable(self.row.started_at)


def families(connection: sqlite3.Connection, selection: Selection) -> list[Family]:
    """Return the selected sessions of all times, oldest first by their own clocks."""
    parents = sessions.parents(connection)
    found: dict[int, list[int]] = defaultdict(list)
    for id in parents:
        found[_top(id, parents)].append(id)
    below = {top: tuple(members) for top, members in found.items()}
    wanted = None if selection.projects is None else set(selection.projects)
    return [
        Family(session, below[session.id])
        for session in sessions.of_provider(connection, selection.provider)
        if session.id in below and (wanted is None or session.project_id in wanted)
    ]


def in_period(found: Iterable[Family], since: int | None, until: int | None) -> list[Family]:
    """Return those in which something happened in the period; those without a time only if no period is given."""
    return [one for one in found if is_active_within(one.started_at, one.row.ended_at, since, until)]


def _top(id: int, parents: dict[int, int | None]) -> int:
    """Return the topmost ancestor of a session; in a cycle, which only damaged logs have, the smallest row of it."""
    above = {id: 0}
    while (parent := parents[id]) is not None and parent in parents:
        if parent in above:
            return min(list(above)[above[parent] :])
        above[parent] = len(above)
        id = parent
    return id
