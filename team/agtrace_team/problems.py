"""What can go wrong with a team's database, as whoever asked is told. Loads nothing."""

from __future__ import annotations

import sqlite3


class TeamUnavailable(sqlite3.OperationalError):
    """The team's database can't be reached, or refuses the login."""


class LoginRefused(TeamUnavailable):
    """The team's server runs, and doesn't let this login in."""


class NobodyOfTheTeam(sqlite3.OperationalError):
    """No person of the team has this login."""

    def __init__(self, login: str) -> None:
        super().__init__(f"nobody of the team is called {login}")
        self.login = login


class TeamProblem(Exception):
    """A problem; its message says what to do."""


class PushRefused(TeamProblem):
    """The team's database doesn't take what was pushed."""


class NewerTables(TeamProblem):
    """A newer agtrace made the tables."""


class NoServer(TeamProblem):
    """There are no programs of PostgreSQL on this machine."""
