"""The calls of all sessions that wrote a file, as edits in the order of time."""

from __future__ import annotations

import ntpath
import os
import posixpath
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace_indexer.index.projects import project_root
from agtrace_indexer.index.questions import events, files, sessions
from agtrace_indexer.index.questions.files import Use
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import text_reader

from agtrace.health.facts.edits import Edit, edits
from agtrace.problems import UnknownProject
from agtrace.sessions.clones import known_as
from agtrace.sessions.files import checkout_of, file_key
from agtrace.sessions.projects import resolved

_MOST_NAMES = 8
"""The former names of a file that are followed."""


class Stroke(NamedTuple):
    """An edit of a file by a call."""

    session: Session
    event_index: int
    at: int
    """Milliseconds since 1970 UTC; 0 is unknown."""
    edit: Edit
    copy: str | None
    """The checkout of the repository in which it was made; None if it was made to this very file."""


class Uses(NamedTuple):
    """What sessions did with a file."""

    strokes: list[Stroke]
    touched: list[tuple[Session, Use]]
    """Every use, oldest first: also those of which it isn't known what they wrote, and reading."""


def uses_of(connection: sqlite3.Connection, names: Iterable[str], *, in_clones: bool) -> Uses:
    """Return what sessions did with a file, given its absolute path, and those that it had before.

    With `in_clones`, the git configuration around it is read to know other clones of its repository.
    """
    paths = list(dict.fromkeys(names))
    found: dict[tuple[int, int], tuple[Session, Use, bool]] = {}
    strokes: dict[tuple[int, int], list[Stroke]] = {}
    seen = 0
    while seen < min(len(paths), _MOST_NAMES):
        target = _Target(connection, paths[seen], in_clones=in_clones)
        seen += 1
        for session, use, here in target.uses():
            place = session.id, use.event_index
            if place in found and strokes.get(place):
                continue
            found[place] = session, use, here
            made = list(_strokes(connection, target, session, use, here)) if use.access == "write" else []
            strokes[place] = made
            moved = (stroke.edit.moved_from for stroke in made if here and stroke.edit.moved_from)
            paths += [path for each in moved if (path := file_key(each, session.cwd, None)) not in paths]
    ordered = sorted(found, key=lambda place: found[place][1].row)
    ordered.sort(key=lambda place: found[place][1].at)
    return Uses([stroke for place in ordered for stroke in strokes[place]], [(found[place][:2]) for place in ordered])


def _name_of(path: str) -> str:
    """Return the name of a file, also of one on Windows."""
    return ntpath.basename(path) if ntpath.splitdrive(path)[0] else posixpath.basename(path)


class _Target:
    """A path, with what finds the same file in other checkouts of its repository."""

    def __init__(self, connection: sqlite3.Connection, path: str, *, in_clones: bool) -> None:
        self._connection, self._path = connection, path
        self._alike = {path, os.path.realpath(path)}
        root = project_root(posixpath.dirname(path))
        self._below = file_key(path, None, root) if root else path
        try:
            self._folders = set(resolved(connection, known_as(connection, root) if in_clones else root, roughly=False))
        except UnknownProject:
            self._folders = set()

    def matches(self, named: str, session: Session) -> bool | None:
        """Return whether a name in a session is this file; False for one in another checkout, None for neither."""
        if file_key(named, session.cwd, None) in self._alike:
            return True
        if session.project_id not in self._folders:
            return None
        below = file_key(named, session.cwd, checkout_of(session)).replace("\\", "/")
        return False if below == self._below else None

    def uses(self) -> Iterator[tuple[Session, Use, bool]]:
        """Yield the calls that named the file and didn't fail, with whether it was this very one."""
        found = list(files.uses(self._connection, _name_of(self._path)))
        rows = {use.session_row for use in found}
        known = {session.id: session for session in sessions.in_rows(self._connection, rows)}
        for use in found:
            here = self.matches(use.path, known[use.session_row])
            if here is not None:
                yield known[use.session_row], use, here


def _strokes(
    connection: sqlite3.Connection, target: _Target, session: Session, use: Use, here: bool
) -> Iterator[Stroke]:
    """Yield what a call did to the file."""
    copy = None if here else checkout_of(session) or ""
    event = text_reader(connection)(events.one(connection, session.id, use.event_index))
    for edit in edits(event.row.name or "", event.rest.get("arguments"), writes=True):
        if target.matches(edit.path, session) is not None or (
            edit.moved_from and target.matches(edit.moved_from, session) is not None
        ):
            yield Stroke(session, use.event_index, use.at, edit, copy)
