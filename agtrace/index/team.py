"""The index of a team, on PostgreSQL, as a reader sees it: what its people pushed. Nothing refreshes it from here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agtrace.index.freshness import Freshness
from agtrace.index.trouble import unusable
from agtrace.problems import IndexUnavailable, SettingError

if TYPE_CHECKING:
    from agtrace_team.connection import TeamConnection

Kept = TypeVar("Kept")


def connection_to(url: str) -> sqlite3.Connection:
    """Return a connection to a team's index: it offers what questions use of SQLite's. Raises `sqlite3.Error`."""
    if find_spec("psycopg") is None:
        raise SettingError(
            "the setting index names a team's database, and psycopg isn't installed: pip install 'agtrace[team]'"
        )
    from agtrace_team.connection import TeamConnection

    return cast(sqlite3.Connection, TeamConnection(url))


class TeamReader:
    """A reader of a team's index, with objects that it caches. For one thread at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: sqlite3.Connection | None = None
        self._kept: dict[type, Any] = {}

    @property
    def connection(self) -> sqlite3.Connection:
        """A connection that only reads. Raises `sqlite3.Error`."""
        if self._connection is None:
            self._connection = connection_to(self._url)
        return self._connection

    def kept(self, kind: type[Kept]) -> Kept:
        """Return the object of this class that is cached until the connection is lost; create it if necessary."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        found: Kept = self._kept[kind]
        return found

    def close(self) -> None:
        """Forget everything: the next request connects anew."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._kept = None, {}


class _TeamSoundness:
    """What errors mean: nothing is repaired from here."""

    def damage(self, *, seconds: float | None, good_for: float = 0) -> None:
        """Return None: a server looks after its own files."""

    def unusable(self, error: sqlite3.Error | OSError, *, seconds: float | None = None) -> IndexUnavailable:
        """Return why the index can't be used, given an error."""
        return unusable(error)


class TeamIndex:
    """The index at a URL. Safe to use from several threads: each question has a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.soundness = _TeamSoundness()
        self._readers: list[TeamReader] = []
        """The readers that are not in use."""

    @contextmanager
    def reader(self) -> Iterator[TeamReader]:
        """Lend a reader exclusively. After an error of the database it connects anew."""
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = TeamReader(self._url)
        try:
            yield reader
        except sqlite3.Error:
            reader.close()
            raise
        finally:
            self._readers.append(reader)

    def refresh(self, seconds: float) -> Freshness:
        """Return that it is as of the last push of each person: that is all there is to know."""
        return Freshness("ready")

    def check_masks(self, connection: sqlite3.Connection) -> None:
        """Do nothing: what was pushed was masked by the rules of who pushed it, and answers are masked once more."""

    def note(self, kind: str) -> None:
        """Note on the server that this person asked this kind of question. Raises `sqlite3.Error`."""
        with self.reader() as reader:
            cast("TeamConnection", reader.connection).note(kind)
