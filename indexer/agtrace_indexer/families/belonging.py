"""The logs that belong together when one of them is forgotten."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from agtrace_schema.patterns import later

from agtrace_indexer.events.strings import plain_id
from agtrace_indexer.index import lineage
from agtrace_indexer.index.lineage import Logged
from agtrace_indexer.index.tombstones import UUID, Tombstones, digest_of
from agtrace_indexer.providers.registry import AGENTS

STARTED = ("subagent", "warmup")
"""The kinds of sessions that were started by another one and go with it; a fork is a session of its own."""

_TOLD_BY_NAME = later(rf"{UUID}|agent-.+", re.DOTALL)
_ADDED = later(r"(\.zst)?(#replaced-[0-9]+)?$")
"""Suffixes added to a path when its log is compressed or replaced."""


def known_as(own_id: str, path: str) -> str:
    """Return the key of a session: its id, or if only the file's name serves as one, the id with the log's path.

    Names such as `checkpoint-latest` are used again in other folders for other sessions.
    """
    stem = PurePath(path).name.partition(".")[0]
    if own_id != plain_id(stem) or _TOLD_BY_NAME.fullmatch(stem):
        return own_id
    return f"{own_id}\0{_ADDED.sub('', path)}"


def _key(session: Logged) -> tuple[str, str]:
    return session.provider, known_as(session.own_id, session.path)


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
        self._of_file: dict[int, list[Logged]] = defaultdict(list)
        self._heads: list[Logged] = []
        """The main session of each log; the others in the same log are sub-agents."""
        self._by_id: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._started_by_id: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._started_by: dict[int, list[int]] = defaultdict(list)
        for session in lineage.logged(connection):
            self._of_file[session.file].append(session)
            if session.thread == "":
                self._add_head(session)

    def _add_head(self, session: Logged) -> None:
        self._heads.append(session)
        self._by_id[_key(session)].append(session.file)
        if session.kind in STARTED:
            if session.parent_id is not None:
                self._started_by_id[session.provider, session.parent_id].append(session.file)
            if session.parent_session is not None:
                self._started_by[session.parent_session].append(session.file)

    def with_all_of(self, files: Iterable[int]) -> set[int]:
        """Return these logs, those of the sub-agents they started, and earlier or other logs of the same sessions."""
        found: set[int] = set()
        waiting = list(files)
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                waiting += self._related(file)
        return found

    def _related(self, file: int) -> list[int]:
        related = []
        for session in self._of_file[file]:
            related += self._started(session)
            if session.thread == "":
                related += self._by_id[_key(session)]
        return related

    def digests(self, files: Iterable[int]) -> set[str]:
        """Return the tombstone digests of these logs' sessions, except inline sub-agents, which have no own log."""
        return {digest_of(*_key(s)) for file in files for s in self._of_file[file] if s.thread == ""}

    def kept_out(self, tombstones: Tombstones) -> set[int]:
        """Return the logs of sessions that are forgotten for good, and of sub-agents that one of these started."""
        return {
            head.file
            for head in self._heads
            if tombstones.keep_out(*_key(head))
            or (head.kind in STARTED and head.parent_id and tombstones.keep_out(head.provider, head.parent_id))
        }

    @property
    def roots(self) -> set[int]:
        """The logs of sessions that no other session in the index started."""
        started = set()
        for session in (session for sessions in self._of_file.values() for session in sessions):
            started |= set(self._started(session)) - {session.file}
        return {head.file for head in self._heads} - started

    def ended_before(self, time: int) -> set[int]:
        """Return those of `roots` whose last event, including everything that belongs to them, is before a time (ms).

        A session without any time is never old.
        """
        old = {head.file for head in self._heads if head.ended_at is not None and head.ended_at < time}
        return {file for file in old & self.roots if self._last_event(file) < time}

    def _last_event(self, file: int) -> int:
        sessions = (session for log in self.with_all_of([file]) for session in self._of_file[log])
        return max(session.ended_at or 0 for session in sessions)

    def _started(self, session: Logged) -> list[int]:
        return self._started_by[session.id] + self._started_by_id[session.provider, session.own_id]
