"""The logs that belong together when one of them is forgotten."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace_indexer.events.strings import plain_id
from agtrace_indexer.index.tombstones import UUID, Tombstones, digest_of
from agtrace_indexer.providers.registry import AGENTS

STARTED = ("subagent", "warmup")
"""The kinds of sessions that were started by another one and go with it; a fork is a session of its own."""

_TOLD_BY_NAME = later(rf"{UUID}|agent-.+", re.DOTALL)
_ADDED = later(r"(\.zst)?(#replaced-[0-9]+)?$")
"""Suffixes added to a path when its log is compressed or replaced."""

_LOGGED = """
SELECT s.id, s.file_id, s.thread, s.provider, s.own_id, s.parent_id, s.kind, s.parent_session, s.ended_at, f.path
FROM session s JOIN file f ON f.id = s.file_id ORDER BY s.id
"""


class _Session(NamedTuple):
    """A session and the log that contains it."""

    id: int
    file: int
    thread: str
    provider: str
    own_id: str
    parent_id: str | None
    kind: str
    parent_session: int | None
    ended_at: int | None
    path: str

    @property
    def key(self) -> tuple[str, str]:
        """What it has in common with its earlier and other logs."""
        return self.provider, known_as(self.own_id, self.path)


def known_as(own_id: str, path: str) -> str:
    """Return the key of a session: its id, or if only the file's name serves as one, the id with the log's path.

    Names such as `checkpoint-latest` are used again in other folders for other sessions.
    """
    stem = PurePath(path).name.partition(".")[0]
    if own_id != plain_id(stem) or _TOLD_BY_NAME.fullmatch(stem):
        return own_id
    return f"{own_id}\0{_ADDED.sub('', path)}"


def lies_beside(path: str, forgotten: Tombstones) -> bool:
    """Whether a folder or file in this path has the id of a forgotten session in its name.

    Agents keep more of a session next to its log: spilled outputs, descriptions of sub-agents, copies.
    """
    return any(digest_of(agent, plain_id(name)) in forgotten for name in set(_names(path)) for agent in AGENTS)


def _names(path: str) -> Iterator[str]:
    """Yield the parts of a path that may be ids: folders, the file's name without suffixes, and UUIDs within these."""
    parts = PurePath(path).parts
    yield from parts[1:]
    yield parts[-1].partition(".")[0]
    yield from re.findall(UUID, path)


class Logs:
    """The logs of the index, by the ids of their files."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sessions: dict[int, list[_Session]] = defaultdict(list)
        self._heads: dict[int, _Session] = {}
        """The main session of each log; the others in the same log are sub-agents."""
        self._same: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._started: dict[int, set[int]] = defaultdict(set)
        """Log -> the logs of sub-agents that its sessions started."""
        named: dict[tuple[str, str | None], set[int]] = defaultdict(set)
        file_of: dict[int | None, int] = {}
        for session in map(_Session._make, connection.execute(_LOGGED)):
            self._sessions[session.file].append(session)
            named[session.provider, session.own_id].add(session.file)
            file_of[session.id] = session.file
            if session.thread == "":
                self._heads[session.file] = session
                self._same[session.key].add(session.file)
        for file, head in self._heads.items():
            if head.kind in STARTED:
                for starter in {*named[head.provider, head.parent_id], file_of.get(head.parent_session, file)}:
                    self._started[starter].add(file)

    def with_all_of(self, files: Iterable[int]) -> set[int]:
        """Return these logs, those of the sub-agents they started, and earlier or other logs of the same sessions."""
        result: set[int] = set()
        waiting = list(files)
        while waiting:
            file = waiting.pop()
            if file not in result:
                result.add(file)
                waiting += self._started[file]
                waiting += self._same[self._heads[file].key] if file in self._heads else ()
        return result

    def digests(self, files: Iterable[int]) -> set[str]:
        """Return the tombstone digests of these logs' sessions, except inline sub-agents, which have no own log."""
        return {digest_of(*self._heads[file].key) for file in files if file in self._heads}

    def kept_out(self, tombstones: Tombstones) -> set[int]:
        """Return the logs of sessions that are forgotten for good, and of sub-agents that one of these started."""
        return {
            file
            for file, head in self._heads.items()
            if tombstones.keep_out(*head.key)
            or (head.kind in STARTED and head.parent_id and tombstones.keep_out(head.provider, head.parent_id))
        }

    @property
    def roots(self) -> set[int]:
        """The logs of sessions that no other session in the index started."""
        return self._heads.keys() - {file for starter, files in self._started.items() for file in files - {starter}}

    def ended_before(self, time: int) -> set[int]:
        """Return those of `roots` whose last event, including everything that belongs to them, is before a time (ms).

        A session without any time is never old.
        """
        old = {file for file, head in self._heads.items() if head.ended_at is not None and head.ended_at < time}
        return {file for file in old & self.roots if self._last_event(file) < time}

    def _last_event(self, file: int) -> int:
        sessions = (session for log in self.with_all_of([file]) for session in self._sessions[log])
        return max(session.ended_at or 0 for session in sessions)
