"""The index of a team, on PostgreSQL, as a reader sees it: what its people pushed. Nothing refreshes it from here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from agtrace.index.reader import CachingReader, lent
from agtrace.index.trouble import Freshness, unusable
from agtrace.problems import IndexUnavailable, SettingError

if TYPE_CHECKING:
    from agtrace_team.connection import TeamConnection


def check_installed() -> None:
    """Raise `SettingError` if what a team's index takes isn't installed."""
    if find_spec("psycopg") is None:
        raise SettingError(
            "the index of a team needs psycopg, which isn't installed: pip install 'psycopg[binary]' (with pipx: "
            "pipx inject agtrace 'psycopg[binary]')"
        )


def connection_to(url: str, only: str | None = None) -> sqlite3.Connection:
    """Return a connection to a team's index: it offers what questions use of SQLite's. Raises `sqlite3.Error`.

    `only` is the login of the person whose sessions are asked; None for all people.
    """
    check_installed()
    from agtrace_team.connection import TeamConnection

    connection = TeamConnection(url)
    if only is not None:
        connection.only(only)
    return cast(sqlite3.Connection, connection)


class TeamReader(CachingReader):
    """A reader of a team's index."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._only: str | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """A connection that only reads. Raises `sqlite3.Error`."""
        if self._connection is None:
            self._connection = connection_to(self._url, self._only)
        connection: sqlite3.Connection = self._connection
        return connection

    def narrow(self, only: str | None) -> None:
        """Answer from what this person pushed from now on, or from all there is. Raises `sqlite3.Error`."""
        if only != self._only:
            self._only, self._kept = only, {}
            if self._connection is not None:
                self._connection.only(only)


class TeamIndex:
    """The index at a URL. Safe to use from several threads: each question has a connection of its own."""

    def __init__(self, url: str, user: str | None = None) -> None:
        """Ask the index at a URL, or in it only the sessions that one person, by login, pushed.

        Raises `SettingError` if what that takes isn't installed.
        """
        check_installed()
        self._url, self._user = url, user
        self._readers: list[TeamReader] = []
        """The readers that are not in use."""

    def explain(self, error: sqlite3.Error | OSError) -> IndexUnavailable:
        """Return why the index can't be used, given an error."""
        return unusable(error)

    def damage(self) -> None:
        """Return None: a server looks after its own files."""

    @contextmanager
    def reader(self, user: str | None = None) -> Iterator[TeamReader]:
        """Lend a reader exclusively, of one person's sessions or of all. After an error it connects anew."""
        with lent(self._readers, partial(TeamReader, self._url)) as reader:
            reader.narrow(user or self._user)
            yield reader

    def refresh(self, seconds: float) -> Freshness:
        """Return that it is as of the last push of each person."""
        return Freshness("ready")

    def check_masks(self, connection: sqlite3.Connection) -> None:
        """Do nothing: what was pushed was masked by the rules of who pushed it, and answers are masked once more."""

    def note(self, kind: str) -> None:
        """Note on the server that this person asked this kind of question. Raises `sqlite3.Error`."""
        with self.reader() as reader:
            cast("TeamConnection", reader.connection).note(kind)
