"""Several databases of a team, asked together as if they were one: each has other people's sessions.

What a question is about decides who is asked: the database that has the session, or all of them, whose answers are put
together (`together.py`). A row id of one of n databases is that number times n plus the database's place; a mark of the
present state has a part for each of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from inspect import Signature, signature
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from agtrace_indexer.index.engines import Several
from agtrace_indexer.index.questions import (
    counts,
    events,
    files,
    landmarks,
    live,
    matches,
    projects,
    ranking,
    reports,
    sessions,
    texts,
    usage,
)
from agtrace_indexer.index.questions.filters import EventFilters

from agtrace_team.connection import TeamConnection
from agtrace_team.problems import NobodyOfTheTeam, TeamUnavailable

_BEGIN, _STATE = "BEGIN", "PRAGMA data_version"
"""The statements that more than questions use (`agtrace_indexer.index.opening`)."""

_MARK_BITS = 48
_TRIED_AGAIN = 30
"""Seconds after which databases that couldn't be reached are tried again."""

_NOW = events.NOW.newest_row
"""Stands for the end of all rows, in whichever database."""

_OF_ONE = ("session_row", "row", "session", "block", "file_row", "file", "project", "one")
"""The arguments that a question to one database has one of."""
_OF_SOME = ("session_rows", "sessions", "ids", "blocks", "among", "files")
"""The arguments that are several row ids."""
_MARKS = ("newest", "newest_event", "snapshot")

_ROWS: dict[type, tuple[str, ...]] = {
    sessions.Session: ("id", "file_id", "project_id", "parent_session"),
    sessions.Child: ("id", "parent_session"),
    sessions.Family: ("ids",),
    events.Event: ("session_row", "copy_of"),
    events.Placed: ("event",),
    events.Snapshot: ("newest_row",),
    texts.StoredEvent: ("row",),
    matches.Block: ("id", "session"),
    matches.FoundEvent: ("id", "session"),
    ranking.RankedEvent: ("id", "session"),
    counts.FileUses: ("session",),
    files.Use: ("session_row", "row"),
    landmarks.Committer: ("session_row",),
    landmarks.KindOfSession: ("session",),
    live.Active: ("id",),
    reports.Project: ("id",),
    reports.Relative: ("id", "parent"),
    reports.ToolCalls: ("session",),
}
"""The fields that are row ids, or have such fields themselves. Repositories have ids of their own among all databases
(`SeveralConnections.repository`)."""

_GIVEN: dict[type, tuple[str, ...]] = {
    sessions.SessionFilters: ("projects",),
    EventFilters: ("session_row", "projects", "sessions"),
    usage.Among: ("sessions", "projects"),
}
"""The same of what questions are given: each database is asked for its own rows of these."""


class _State(msgspec.Struct, frozen=True):
    """The answer to a statement: a number that changes with any of the databases."""

    number: int

    def fetchone(self) -> tuple[int]:
        """Return it as a row."""
        return (self.number,)


class SeveralConnections(Several):
    """Connections to several databases, for one thread. Its errors are those of `sqlite3`."""

    def __init__(
        self, parts: Mapping[int, TeamConnection], number: int, now: float = 0, why: TeamUnavailable | None = None
    ) -> None:
        """Take the connections by their places among so many databases; those that can't be reached are left out.

        `why` is what the first of these said, at the time `now`, in seconds.
        """
        self.parts, self.number, self._since, self._why = parts, number, now, why
        self._joined: dict[int, int] | None = None

    def asked(self, question: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Ask the databases that can answer, and return what all of them answer."""
        from agtrace_team.together import TOGETHER

        found = _signature(question).bind(None, *given, **named).arguments
        arguments = {
            name: list(value) if isinstance(value, Iterator) else value  # each of them is given its part of it
            for name, value in found.items()
            if name != "connection"
        }
        together = TOGETHER.get(f"{question.__module__.rpartition('.')[2]}.{question.__name__}")
        asking = Asking(self, question, arguments)
        return asking.one(asking.place) if together is None else together(asking)

    # -- what else a connection is asked for -------------------------------------------------------

    def execute(self, sql: str) -> _State:
        """Begin what each of them sees as one moment, or ask for the state of all of them: questions go other ways."""
        if sql not in (_BEGIN, _STATE):
            raise sqlite3.NotSupportedError("several databases are asked questions, not statements")
        if sql == _BEGIN:
            self._joined = None
        found = [part.execute(sql) for part in self.parts.values()]
        return _State(hash(tuple(cursor.fetchone() for cursor in found if sql == _STATE)))

    def rollback(self) -> None:
        """End that moment."""
        self._joined = None
        for part in self.parts.values():
            part.rollback()

    def close(self) -> None:
        """Close all connections."""
        for part in self.parts.values():
            part.close()

    def set_progress_handler(self, is_to_stop: Callable[[], bool] | None, steps: int) -> None:
        """Have statements end with an error once this is true; None: let them run."""
        for part in self.parts.values():
            part.set_progress_handler(is_to_stop, steps)

    def only(self, login: str | None) -> None:
        """Answer from what this person pushed, or from all there is. Raises `sqlite3.Error` for nobody of the team."""
        if login is not None and not any(part.knows(login) for part in self.parts.values()):
            raise NobodyOfTheTeam(login)
        for part in self.parts.values():
            part.narrow(login)

    def note(self, kind: str) -> None:
        """Note in each of them that this person asked this kind of question."""
        for part in self.parts.values():
            part.note(kind)

    @property
    def lacking(self) -> str | None:
        """How many databases couldn't be reached, what the first one is called, and what it said; None if all could."""
        if self._why is None:
            return None
        missing = self.number - len(self.parts)
        return f"{missing} of {self.number} databases {'is' if missing == 1 else 'are'} missing: {self._why}"

    def is_whole(self, now: float) -> bool:
        """Whether all that were reached still answer, and the others needn't be tried again yet."""
        try:
            for part in self.parts.values():
                part.run("SELECT 1", ())
        except TeamUnavailable:
            return False
        return self._why is None or now < self._since + _TRIED_AGAIN

    # -- row ids -----------------------------------------------------------------------------------

    def place_of(self, row: int) -> int:
        """Return the place of the database that has a row."""
        return row % self.number

    def up(self, row: int, place: int) -> int:
        """Return the id of a database's row among all of them."""
        return row if row == _NOW else row * self.number + place

    def down(self, row: int) -> int:
        """Return the id that a row has in its database."""
        return row if row == _NOW else row // self.number

    def those_of(self, rows: Collection[int], place: int) -> list[int]:
        """Return the ids that those of some rows have which are in one database."""
        return [self.down(row) for row in rows if self.place_of(row) == place]

    @property
    def joined(self) -> Mapping[int, int]:
        """Repositories that are one by their remote, which several databases have: id -> the smallest of their ids."""
        if self._joined is None:
            known = [
                (self.up(one.id, place), one.remote)
                for place, part in self.parts.items()
                for one in projects.repositories(part).values()  # type: ignore[arg-type]
                if one.remote is not None
            ]
            of_remote: dict[str, int] = {}
            for id, remote in sorted(known):
                of_remote.setdefault(remote or "", id)
            self._joined = {id: of_remote[remote or ""] for id, remote in known}
        return self._joined

    def repository(self, id: int, place: int) -> int:
        """Return the id of a database's repository among all of them."""
        of_all = self.up(id, place)
        return self.joined.get(of_all, of_all)

    def repositories(self, ids: Collection[int], place: int) -> list[int]:
        """Return the ids that some repositories have in one database."""
        wanted = set(ids) | {id for id, first in self.joined.items() if first in set(ids)}
        return self.those_of(sorted(wanted), place)


class Asking:
    """A question to several databases, with its arguments."""

    def __init__(self, several: SeveralConnections, question: Callable[..., Any], given: Mapping[str, Any]) -> None:
        self.several, self.given, self._question = several, given, question

    @property
    def place(self) -> int:
        """The place of the database that a question about one thing is for."""
        for name in _OF_ONE:
            one = self.given.get(name)
            if one is not None:
                return self.several.place_of(one if isinstance(one, int) else _id_of(one))
        raise sqlite3.NotSupportedError(f"{self._question.__qualname__} can't be asked of several databases")

    def one(self, place: int, **other: Any) -> Any:
        """Return the answer of one database, its row ids among those of all; `other` replaces arguments."""
        return self.raised(self.raw(place, **other), place)

    def raw(self, place: int, **other: Any) -> Any:
        """Return the answer of one database as it is."""
        given = {name: self._lowered(name, value, place) for name, value in self.given.items()}
        if place not in self.several.parts:
            raise TeamUnavailable("the team's database that has this can't be reached")
        return self._question(self.several.parts[place], **(given | other))

    def each(self, **other: Any) -> Iterator[Any]:
        """Yield the answers of all databases, their row ids among those of all."""
        return (self.one(place, **other) for place in self.places())

    def places(self) -> list[int]:
        """Return the places of all databases that can be reached."""
        return list(self.several.parts)

    # -- row ids, there and back -------------------------------------------------------------------

    def _lowered(self, name: str, value: Any, place: int) -> Any:
        """Return what one database is given for an argument."""
        several = self.several
        if value is None:
            return None
        if name in _MARKS:
            return mark_in(value, place)
        if name == "repositories":
            return several.repositories(value, place)
        if name == "repository":
            return next(iter(several.repositories([value], place)), -1)
        if name in _OF_SOME and not isinstance(value, usage.Among):
            return several.those_of(list(value), place)
        if name in (*_OF_ONE, "other") and isinstance(value, int):
            return several.down(value)
        return self._filtered(value, place) if type(value) in _GIVEN else self.lowered(value)

    def _filtered(self, value: Any, place: int) -> Any:
        changed: dict[str, Any] = {}
        for name in _GIVEN[type(value)]:
            given = getattr(value, name)
            if isinstance(given, int):
                changed[name] = self.several.down(given) if self.several.place_of(given) == place else -1
            elif given is not None:
                changed[name] = tuple(self.several.those_of(given, place))
        if isinstance(value, usage.Among):
            marks = {name: getattr(value, name) for name in ("newest", "newest_event")}
            changed |= {name: mark_in(mark, place) for name, mark in marks.items() if mark is not None}
        return msgspec.structs.replace(value, **changed)

    def lowered(self, value: Any) -> Any:
        """Return a row, or several, as the database has it that they are of."""
        return self._changed(value, self.several.down)

    def raised(self, value: Any, place: int) -> Any:
        """Return what a database answered, with its row ids among those of all."""
        if type(value) in (projects.Repository, projects.Project):
            return _replaced(value, {"id": self.several.repository(value.id, place)})
        if type(value) is projects.Folder:
            ids = {"id": self.several.up(value.id, place)}
            return _replaced(value, ids | {"repository": self.several.repository(value.repository, place)})
        if isinstance(value, Iterator):
            return (self.raised(one, place) for one in value)
        if type(value) is list:
            return [self.raised(one, place) for one in value]
        return self._changed(value, lambda row: self.several.up(row, place))

    def _changed(self, value: Any, change: Callable[[int], int]) -> Any:
        if type(value) is list:
            return [self._changed(one, change) for one in value]
        if type(value) not in _ROWS:
            return value
        changed: dict[str, Any] = {}
        for name in _ROWS[type(value)]:
            held = getattr(value, name)
            if isinstance(held, int):
                changed[name] = change(held)
            elif type(held) is tuple:
                changed[name] = tuple(map(change, held))
            elif held is not None:
                changed[name] = self._changed(held, change)
        return _replaced(value, changed)


def _replaced(value: Any, changed: Mapping[str, Any]) -> Any:
    return value._replace(**changed) if hasattr(value, "_replace") else msgspec.structs.replace(value, **changed)


def _id_of(one: Any) -> int:
    """Return a row id that tells the database of something: of a session, or of a block."""
    id: int = one.id
    return id


def mark_of(marks: Mapping[int, int]) -> int:
    """Return a mark of the present state of all databases, given that of each by its place."""
    return sum(mark << place * _MARK_BITS for place, mark in marks.items())


def mark_in(mark: int, place: int) -> int:
    """Return the mark of one database."""
    return mark if mark == _NOW else mark >> place * _MARK_BITS & (1 << _MARK_BITS) - 1


@cache
def _signature(question: Callable[..., Any]) -> Signature:
    return signature(question)


def by_place(several: SeveralConnections, found: Sequence[events.Event]) -> Iterator[tuple[int, list[int]]]:
    """Yield each database with the numbers of those of some events that it has."""
    placed = sorted((several.place_of(one.session_row), number) for number, one in enumerate(found))
    for place, group in groupby(placed, itemgetter(0)):
        yield place, [number for _, number in group]
