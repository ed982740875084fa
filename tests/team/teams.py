"""A team in tests: its people, what they push, and what each of them is answered."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from agtrace_indexer.run import index
from agtrace_team import people
from agtrace_team.connection import TeamConnection, connect
from agtrace_team.push import Audience, Push, Pushed, chosen
from agtrace_team.server import Server

from agtrace.answers.service import Service
from agtrace.settings import load

NOBODY: Callable[[str, str], bool] = lambda _provider, _id: False  # noqa: E731
"""Nothing was forgotten."""


def index_of(folder: Path, *roots: Path) -> Path:
    """Index some logs; return the index."""
    database = folder / "index.sqlite3"
    index(database, [str(root) for root in roots], otherwise=[])
    return database


@dataclass(frozen=True)
class Team:
    """A team's database."""

    server: Server
    name: str
    _asked: dict[str, Service] = field(default_factory=dict)

    def url(self, login: str = "postgres") -> str:
        return self.server.url(self.name, login)

    def add(self, *logins: str, push: bool = True) -> None:
        with self.owner() as connection:
            for login in logins:
                people.add(connection, login, login.title(), None, push=push)

    @contextmanager
    def owner(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection of the owner's, who sees everything."""
        with closing(connect(self.url())) as connection:
            connection.execute("SET search_path = team, pg_catalog")
            yield connection

    def push(
        self,
        database: Path,
        login: str,
        audience: Audience = "team",
        *,
        machine: str = "laptop",
        only: Callable[[str], bool] = lambda _uid: True,
        dry: bool = False,
        forgotten: Callable[[str, str], bool] = NOBODY,
    ) -> Pushed:
        """Push all sessions of an index, or those whose id fulfils something."""
        with closing(sqlite3.connect(database)) as index, closing(connect(self.url(login))) as connection:
            index.execute("BEGIN")
            push = Push(index, connection, machine, machine, "")
            audiences: Mapping[Any, Audience] = {
                project: audience for (project,) in index.execute("SELECT DISTINCT project_id FROM session")
            }
            sessions = [one for one in chosen(index, audiences) if only(one.uid)]
            return push.run(sessions, forgotten, dry=dry)

    def answers(self, login: str) -> Service:
        """What answers a person's questions."""
        if login not in self._asked:
            settings = load({"AGTRACE_DATA_DIR": str(self.server.folder / "nowhere"), "AGTRACE_INDEX": self.url(login)})
            self._asked[login] = Service(settings, log=lambda _record: None)
        return self._asked[login]

    def ask(self, login: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer to a person."""
        return self.answers(login).ask(tool, arguments).value

    def connection(self, login: str) -> TeamConnection:
        return TeamConnection(self.url(login))

    def sessions(self, login: str) -> set[str]:
        """The ids of all sessions that a person sees."""
        with closing(self.connection(login)) as connection:
            return {uid for (uid,) in connection.execute("SELECT uid FROM session")}


def own_answers(database: Path, now: Callable[[], float] = time.time) -> Service:
    """What answers from one's own index, of which no log is looked at any more."""
    settings = load({"AGTRACE_DATA_DIR": str(database.parent), "HOME": str(database.parent / "nobody")})
    return Service(settings, log=lambda _record: None, now=now, refresh_seconds=60)
