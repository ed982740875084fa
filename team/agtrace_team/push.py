"""Pushing sessions of one's own index to a team's database: what was chosen, masked once more, and nothing else.

A session goes as a whole, in one transaction: a push that dies has pushed some sessions, and none in part. A session
whose digest the server has isn't sent again. Row ids are the server's own; an event keeps its id when its session is
pushed again, so that cursors go on leading to it.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from itertools import chain, count
from typing import Any, Literal, NamedTuple, TypeAlias

import psycopg
from agtrace_indexer.families.belonging import known_as
from agtrace_indexer.redact import redact
from msgspec import field

from agtrace_team.export import Columns, Export, Masked, TeamWriter
from agtrace_team.problems import PushRefused

Audience: TypeAlias = Literal["self", "project", "team"]
"""Who sees a session: the person alone, those who may read its project, or everybody of the team."""

WIDTH: dict[Audience, int] = {"self": 0, "project": 1, "team": 2}
"""How many see a session: where two say it of the same one, the narrower audience holds."""

_SESSIONS = """
SELECT s.id, s.uid, s.project_id, s.parent_session, (SELECT o.uid FROM session o WHERE o.id = s.parent_session),
  s.event_count + s.copied_events
FROM session s ORDER BY s.id
"""
_STATE = """
SELECT max(e.id), count(*), count(e.superseded_by), count(e.copy_of), coalesce(sum(e.outcome), 0),
  (SELECT coalesce(sum(text_size), 0) FROM block b WHERE b.session_id = :session),
  (SELECT count(*) FROM landmark l WHERE l.session_id = :session)
FROM event e WHERE e.session_id = :session
"""
_COPIES = """
SELECT e.event_index, s.uid, o.event_index
FROM event e JOIN event o ON o.id = e.copy_of JOIN session s ON s.id = o.session_id
WHERE e.session_id = ? AND e.copy_of > 0
"""
_ORIGINS = """
SELECT DISTINCT o.session_id FROM event e JOIN event o ON o.id = e.copy_of WHERE e.session_id = ? AND e.copy_of > 0
"""
_KIN = "SELECT o.uid FROM kin k JOIN session o ON o.id = k.other_id WHERE k.session_id = ?"
_RECORD_TYPES = "SELECT status, type, count, first_line FROM record_type WHERE file_id = ?"
_THERE = """
SELECT s.pushed_uid, s.id, s.digest, s.audience, s.machine_id, s.event_count + s.copied_events, s.provider, s.own_id,
  f.path
FROM session s LEFT JOIN file f ON f.id = s.file_id WHERE s.person_id = %s
"""
_NOTE = "INSERT INTO push (machine_id, sessions, events, bytes, removed, masked) VALUES (%s, %s, %s, %s, %s, %s)"


class Chosen(NamedTuple):
    """A session that may leave."""

    row: int
    uid: str
    project: int | None
    parent: int | None
    parent_uid: str | None
    events: int
    """All of them, copies included."""
    audience: Audience


class _There(NamedTuple):
    """A session as the server has it."""

    id: int
    digest: bytes
    audience: Audience
    machine: int
    events: int
    provider: str
    own_id: str
    path: str | None = None
    """Of its log, if it was there before this push."""

    @property
    def forgotten_as(self) -> set[str]:
        """What a tombstone may know it as: by its id, or by its id with the path of its log."""
        return {self.own_id, known_as(self.own_id, self.path)} if self.path else {self.own_id}


class Pushed(Masked):
    """What a push did, or would do."""

    new: list[str] = field(default_factory=list)
    """Ids of sessions that the server didn't have."""
    changed: list[str] = field(default_factory=list)
    same: int = 0
    older: list[str] = field(default_factory=list)
    """Sessions of which another machine of this person has pushed more."""
    removed: list[str] = field(default_factory=list)
    """Sessions that were forgotten here, or are no longer shared."""
    seen_by: dict[str, Audience] = field(default_factory=dict)
    """Who sees each session that goes, and each that is there already but was seen by others before."""
    events: int = 0
    bytes: int = 0
    """Of text, before compression."""


def chosen(index: sqlite3.Connection, audiences: Mapping[int, Audience]) -> list[Chosen]:
    """Return the sessions of these projects (row id -> audience), each after those that it comes from."""
    rows = index.execute(_SESSIONS).fetchall()
    by_row = {row[0]: Chosen._make((*row, audiences[row[2]])) for row in rows if row[2] in audiences}
    ordered: dict[int, Chosen] = {}

    def put(one: Chosen, below: frozenset[int]) -> None:
        if one.row in ordered or one.row in below:  # a circle in damaged logs ends where it began
            return
        for row in (one.parent, *(row for (row,) in index.execute(_ORIGINS, (one.row,)).fetchall())):
            if row in by_row and row != one.row:
                put(by_row[row], below | {one.row})
        ordered[one.row] = one

    for one in by_row.values():
        put(one, frozenset())
    return list(ordered.values())


class Push:
    """A push of one machine's sessions over one connection, by the person who logged in."""

    def __init__(
        self, index: sqlite3.Connection, team: psycopg.Connection[Any], machine: str, shown: str, rules: str
    ) -> None:
        """Begin; `machine` identifies this machine, `shown` is its name, `rules` what secrets are masked by.

        Raises `PushRefused` if the login is nobody of the team, or may only read.
        """
        self._index, self._team, self._rules = index, team, rules
        team.execute("SET search_path = team, pg_catalog")
        if team.execute("SELECT to_regclass('team.session')").fetchone() == (None,):
            raise PushRefused("that database has no tables of a team: have its owner run `agtrace team init`")
        me, pusher = team.execute("SELECT me(), pusher()").fetchone() or (None, None)
        if me is None:
            raise PushRefused("this login is nobody of the team: have its owner run `agtrace team add`")
        if pusher is None:
            raise PushRefused("this login may only read: have the team's owner run `agtrace team add --push`")
        self._person = int(pusher)
        self._machine = self._machine_of(machine, shown)
        self._columns = Columns(index, team)
        self._mask = lru_cache(100_000)(redact)
        """The same models, paths and names come again and again."""
        self._writing = TeamWriter(team, self._columns)
        self._ids: dict[int, int] = {}
        """Session here -> the row id that is reserved for it there."""
        self._events, self._event_ids = array("q"), range(0)
        """The events of new sessions here, in order, and the row ids that are reserved for them there."""
        self._there = {uid: _There(*row) for uid, *row in team.execute(_THERE, (self._person,))}

    def _machine_of(self, uid: str, shown: str) -> int:
        named = (self._person, uid)
        self._team.execute(
            "INSERT INTO machine (person_id, uid, shown) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (*named, shown)
        )
        row = self._team.execute("SELECT id FROM machine WHERE person_id = %s AND uid = %s", named).fetchone()
        assert row is not None
        return int(row[0])

    def run(
        self,
        sessions: list[Chosen],
        is_forgotten: Callable[[str, str], bool],
        *,
        dry: bool = False,
        report: Callable[[int, int], None] = lambda done, total: None,
    ) -> Pushed:
        """Push these sessions; remove those that were forgotten here, by (agent, its own id), or are no longer shared.

        With `dry`, only say what that would do. `report` is told how many of how many sessions are done.
        """
        done = Pushed()
        self._remove(sessions, is_forgotten, done, dry=dry)
        if not dry:
            self._number(sessions)
        for number, session in enumerate(sessions):
            report(number, len(sessions))
            self._one(session, done, dry=dry)
        report(len(sessions), len(sessions))
        if not dry:
            for session in self._before_their_origins(sessions) if done.new or done.changed else ():
                self._one(session, Pushed(), dry=False)
            with self._team.transaction():
                self._join({one.project for one in sessions})
                self._relate(sessions)
                self._team.execute("SELECT sweep()")
                sent = len(done.new) + len(done.changed)
                if sent or done.removed:
                    told = (sent, done.events, done.bytes, len(done.removed), json.dumps(done.masked))
                    self._team.execute(_NOTE, (self._machine, *told))
        return done

    def _before_their_origins(self, sessions: list[Chosen]) -> list[Chosen]:
        """Return the sessions that came before one that they come from, as happens where logs name each other."""
        places = {one.row: place for place, one in enumerate(sessions)}

        def last_origin(one: Chosen) -> int:
            origins = (row for (row,) in self._index.execute(_ORIGINS, (one.row,)).fetchall())
            return max((places.get(row, -1) for row in (one.parent, *origins) if row is not None), default=-1)

        return [one for place, one in enumerate(sessions) if last_origin(one) > place]

    def _remove(
        self, sessions: list[Chosen], is_forgotten: Callable[[str, str], bool], done: Pushed, *, dry: bool
    ) -> None:
        """Remove what was forgotten here, and what this machine pushed and no longer shares.

        What an index merely lacks stays: it may have been made anew, and the logs be gone.
        """
        local = {uid for (uid,) in self._index.execute("SELECT uid FROM session")}
        shared = {one.uid for one in sessions}
        for uid, there in list(self._there.items()):
            if uid in local:
                goes = uid not in shared and there.machine == self._machine
            else:
                goes = any(is_forgotten(there.provider, known) for known in there.forgotten_as)
            if goes:
                done.removed.append(uid)
                del self._there[uid]
                if not dry:
                    self._team.execute("DELETE FROM session WHERE id = %s", (there.id,))

    def _number(self, sessions: list[Chosen]) -> None:
        """Reserve row ids for new sessions, in the order that they have here: what has equal times is listed by it."""
        new = sorted(one.row for one in sessions if one.uid not in self._there)
        self._ids = dict(zip(new, self._writing.new_ids("session", len(new)), strict=True))
        sql = "SELECT id FROM event WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY id"
        self._events = array("q", (id for (id,) in self._index.execute(sql, (json.dumps(new),))))
        self._event_ids = self._writing.new_ids("event", len(self._events))

    def _reserved(self, event: int) -> int | None:
        at = bisect_left(self._events, event)
        return self._event_ids[at] if at < len(self._events) and self._events[at] == event else None

    def _one(self, session: Chosen, done: Pushed, *, dry: bool) -> None:
        there, digest = self._there.get(session.uid), self._digest(session)
        if there is not None and there.digest == digest:
            done.same += 1
            self._show(session, there, done, dry=dry)
            return
        if there is not None and there.machine != self._machine and there.events > session.events:
            done.older.append(session.uid)
            if WIDTH[session.audience] < WIDTH[there.audience]:
                self._show(session, there, done, dry=dry)
            return
        (done.changed if there else done.new).append(session.uid)
        done.seen_by[session.uid] = session.audience
        rows = Export(self._index, session.row, self._columns, self._mask, done)
        done.events += len(rows.events)
        done.bytes += rows.bytes
        if not dry:
            try:
                self._send(session, digest, rows)
            except psycopg.errors.UniqueViolation:  # another person has pushed one of that id meanwhile
                self._send(session, digest, rows)

    def _show(self, session: Chosen, there: _There, done: Pushed, *, dry: bool) -> None:
        """Have a session that stays as it is seen by others from now on, if that was said."""
        if there.audience == session.audience:
            return
        done.seen_by[session.uid] = session.audience
        if not dry:
            self._team.execute("UPDATE session SET audience = %s WHERE id = %s", (session.audience, there.id))

    def _send(self, session: Chosen, digest: bytes, rows: Export) -> None:
        with self._team.pipeline(), self._team.transaction():  # most statements wait for no answer
            self._team.execute(
                "SELECT pg_advisory_xact_lock(%s)",
                (int.from_bytes(sha256(f"{self._person}\0{session.uid}".encode()).digest()[:8], "big", signed=True),),
            )
            self._put(session, digest, rows)

    def _digest(self, session: Chosen) -> bytes:
        """Return a digest that changes with everything that is pushed of a session."""
        columns = ", ".join(self._columns.of("session"))
        own = self._index.execute(f"SELECT {columns} FROM session WHERE id = ?", (session.row,)).fetchone()
        state = self._index.execute(_STATE, {"session": session.row}).fetchone()
        origins = sorted({uid for _, uid, _ in self._index.execute(_COPIES, (session.row,))} & self._there.keys())
        told = [list(own), list(state), origins, session.parent_uid in self._there, self._rules]
        return sha256(json.dumps(told, default=repr).encode()).digest()

    def _put(self, session: Chosen, digest: bytes, rows: Export) -> None:
        """Put a session in the place of the one that is there, in the open transaction."""
        project = self._project(session)
        parent, there = self._there.get(session.parent_uid or ""), self._there.get(session.uid)
        sql = "SELECT repository_id FROM repository_folder WHERE project_id = %s"
        found = self._team.execute(sql, (project,)).fetchone()
        row = rows.session | {
            "person_id": self._person,
            "pushed_uid": session.uid,
            "machine_id": self._machine,
            "audience": session.audience,
            "digest": digest,
            "file_id": self._file(session, rows),
            "project_id": project,
            "repository_id": (project if found is None else found[0]),
            "parent_session": parent and parent.id,
            "started_by": parent and rows.session["started_by"],
            "uid": self._free_uid(session.uid),
        }
        row["id"] = there.id if there is not None else self._ids[session.row]
        id = self._writing.put("session", row, "person_id, pushed_uid", but="id")
        was_there = there is not None or id != row["id"]  # another machine may have been faster
        if was_there:
            self._team.execute("UPDATE session SET pushed_at = now() WHERE id = %s", (id,))
        self._writing.session(rows, id, self._originals(session), self._reserved, was_there=was_there)
        told = (str(row["provider"]), str(row["own_id"]))
        self._there[session.uid] = _There(id, digest, session.audience, self._machine, session.events, *told)

    def _originals(self, session: Chosen) -> dict[int, int]:
        """Return event index -> the server's id of the event that it repeats, as far as that was pushed."""
        wanted: dict[str, dict[int, int]] = {}
        for index, uid, original in self._index.execute(_COPIES, (session.row,)):
            wanted.setdefault(uid, {})[index] = original
        result: dict[int, int] = {}
        for uid, originals in wanted.items():
            if uid in self._there:
                sql = "SELECT event_index, id FROM event WHERE session_id = %s AND event_index = ANY (%s)"
                given = (self._there[uid].id, sorted({*originals.values()}))
                ids = dict(self._team.execute(sql, given).fetchall())
                result |= {index: ids[original] for index, original in originals.items() if original in ids}
        return result

    def _file(self, session: Chosen, rows: Export) -> int:
        names = self._columns.of("file")
        listed = ", ".join(f"f.{name}" for name in names)
        sql = f"SELECT f.id, {listed} FROM file f JOIN session s ON s.file_id = f.id WHERE s.id = ?"
        local, *values = self._index.execute(sql, (session.row,)).fetchone()
        row = rows.clean("file", dict(zip(names, values, strict=True)))
        row["path"] = rows.indexed(row["path"])
        id = self._writing.put("file", {**row, "machine_id": self._machine}, "machine_id, path")
        self._team.execute("DELETE FROM record_type WHERE file_id = %s", (id,))
        types = (
            rows.clean("record_type", dict(zip(("status", "type", "count", "first_line"), told, strict=True)))
            for told in self._index.execute(_RECORD_TYPES, (local,)).fetchall()
        )
        self._writing.insert("record_type", ({**told, "file_id": id} for told in types))
        return id

    def _project(self, session: Chosen) -> int | None:
        if session.project is None:
            return None
        sql = "SELECT hash, root_path FROM project WHERE id = ?"
        hash, root = self._index.execute(sql, (session.project,)).fetchone()
        row = {"person_id": self._person, "hash": hash, "root_path": root and redact(root)}
        return self._writing.put("project", row, "person_id, hash")

    def _free_uid(self, uid: str) -> str:
        """Return the id by which the team knows a session: its own, unless another session there has that id.

        The ids of an index may end like those that are made here, if two of its logs share an id.
        """
        named = f"{uid}~{self._person}"
        return next(one for one in chain([uid, named], (f"{named}~{n}" for n in count(2))) if self._is_free(one, uid))

    def _is_free(self, one: str, uid: str) -> bool:
        """Whether no other session has an id: neither another person's, nor another one of this person's."""
        sql = """
        SELECT uid_is_taken(%(one)s) OR EXISTS (
          SELECT 1 FROM session WHERE uid = %(one)s AND person_id = %(person)s AND pushed_uid != %(uid)s)
        """
        row = self._team.execute(sql, {"one": one, "person": self._person, "uid": uid}).fetchone()
        return row is not None and not row[0]

    def _join(self, projects: set[int | None]) -> None:
        """Tell the server which of the pushed folders are one repository."""
        sql = "SELECT f.repository_id, p.hash, p.id FROM repository_folder f JOIN project p ON p.id = f.project_id"
        joined: dict[int, list[str]] = {}
        for id, hash, project in self._index.execute(sql).fetchall():
            if project in projects:
                joined.setdefault(id, []).append(hash)
        for id, hashes in joined.items():
            name, remote, made = self._index.execute(
                "SELECT name, remote, made FROM repository WHERE id = ?", (id,)
            ).fetchone()
            names = self._index.execute("SELECT name FROM repository_name WHERE repository_id = ?", (id,)).fetchall()
            found = self._team.execute(
                "SELECT id FROM project WHERE person_id = %s AND hash = ANY (%s)", (self._person, hashes)
            ).fetchall()
            if found:
                self._team.execute(
                    "SELECT join_repository(%s::bigint[], %s, %s, %s, %s::text[])",
                    (
                        [id for (id,) in found],
                        redact(name),
                        remote and redact(remote),
                        made,
                        [redact(n) for (n,) in names],
                    ),
                )

    def _relate(self, sessions: list[Chosen]) -> None:
        """Say which of the pushed sessions share events."""
        pairs = []
        for one in sessions:
            for (uid,) in self._index.execute(_KIN, (one.row,)).fetchall():
                if one.uid in self._there and uid in self._there:
                    pairs.append((self._there[one.uid].id, self._there[uid].id))
        if pairs:
            sql = "INSERT INTO kin SELECT * FROM unnest(%s::bigint[], %s::bigint[]) ON CONFLICT DO NOTHING"
            self._team.execute(sql, [list(side) for side in zip(*pairs, strict=True)])


@contextmanager
def refused() -> Iterator[None]:
    """Raise what PostgreSQL refuses within this context as `PushRefused`, without the rows that it refused."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise PushRefused(f"the team's database doesn't allow that: {_first_line(error)}") from None
    except psycopg.errors.DiskFull:
        raise PushRefused("the disk of the team's database is full; what was pushed before stays, try again") from None
    except (
        psycopg.errors.UndefinedTable,
        psycopg.errors.UndefinedColumn,
        psycopg.errors.UndefinedFunction,
        psycopg.errors.NotNullViolation,
    ):
        raise PushRefused(
            "its tables are of another version: update agtrace here, or `agtrace team migrate` there"
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise PushRefused(
            f"the connection was lost ({_first_line(error)}); what was pushed before stays, push again to go on"
        ) from None


def _first_line(error: psycopg.Error) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
