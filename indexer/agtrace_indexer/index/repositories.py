"""The repositories that folders belong to: their clues and files from the tables, and what follows from these back.

They are computed as a whole, as a function of all sessions, at the end of a run in which one of these changed: there
are few folders (`index.membership` joins them).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import pairwise

from agtrace_indexer.events.clues import COMMIT, REMOTE, ROOT, SHOWN
from agtrace_indexer.index import meta
from agtrace_indexer.index.membership import Folder, Repository, place_of, repositories
from agtrace_indexer.index.projects import portable

JOINED = "repositories"
"""The key of `meta` for what the repositories were computed from."""

_STATE = """
SELECT (SELECT coalesce(max(id), 0) FROM session) || '/' || (SELECT coalesce(max(id), 0) FROM path) || '/' ||
  (SELECT count(*) FROM clue) || '/' || (SELECT count(*) FROM project WHERE root_path IS NOT NULL)
"""
_TOUCHED = "SELECT count(*) FROM touched"
_ROOTS = "SELECT root_path FROM project WHERE root_path IS NOT NULL"
_FOLDERS = "SELECT id, hash, root_path FROM project WHERE id IN (SELECT project_id FROM session)"
_CLUES = """
SELECT s.project_id, c.kind, c.value, sum(e.copy_of IS NULL), max(coalesce(s.started_at, 0))
FROM clue c JOIN session s ON s.id = c.session_id
JOIN event e ON e.session_id = c.session_id AND e.event_index = c.event_index
WHERE s.project_id IS NOT NULL GROUP BY 1, 2, 3
"""
_FILES = """
SELECT DISTINCT s.project_id, p.text
FROM touched t JOIN session s ON s.id = t.session_id JOIN path p ON p.id = t.path_id WHERE s.project_id IS NOT NULL
"""
_MOST_FILES = 2_000
"""Files of a folder that are compared, those with the shortest paths."""


def join(connection: sqlite3.Connection, *, anew: bool = False) -> None:
    """Bring the repositories up to date, in the open transaction, if something they are computed from has changed.

    `anew` says that something has changed that the tables don't show.
    """
    (state,) = connection.execute(_STATE).fetchone()
    if _are_nested(connection):
        state = f"{state}/{connection.execute(_TOUCHED).fetchone()[0]}"
    if anew or meta.get(connection, JOINED) != state:
        _write(connection, repositories(_folders(connection)))
        meta.put(connection, JOINED, state)


def _are_nested(connection: sqlite3.Connection) -> bool:
    """Whether a folder lies in another one, so that a file known of one may be new in the other."""
    roots = sorted(f"{place_of(root)}/" for (root,) in connection.execute(_ROOTS))
    return any(inner.startswith(outer) for outer, inner in pairwise(roots))


def _folders(connection: sqlite3.Connection) -> Iterable[Folder]:
    folders = {id: Folder(id, hash, root) for id, hash, root in connection.execute(_FOLDERS)}
    unplaced = {id for id, folder in folders.items() if folder.root is None}
    for project, kind, value, count, time in connection.execute(_CLUES):
        folder = folders[project]
        if kind == REMOTE:
            folder.recorded[value] = time
        elif kind == SHOWN and count:
            folder.shown[value] = count
        elif kind == COMMIT:
            folder.commits.append(value)
        elif kind == ROOT and project in unplaced:
            folder.root = value
    for project, path in connection.execute(_FILES):
        if within := _within(path, folders[project].root):
            folders[project].files.append(within)
    for folder in folders.values():
        folder.files = sorted(folder.files, key=lambda path: (len(path), path))[:_MOST_FILES]
    return folders.values()


def _within(path: str, root: str | None) -> str | None:
    """Return a path relative to a folder; None if it lies elsewhere."""
    path = portable(path)
    if path[:1] != "/" and path[1:2] != ":":
        return path.removeprefix("./")
    top = f"{place_of(root or '')}/"
    return path[len(top) :] if len(top) > 1 and place_of(path).startswith(top) else None


def _write(connection: sqlite3.Connection, found: list[Repository]) -> None:
    for table in ("repository", "repository_folder", "repository_name"):
        connection.execute(f"DELETE FROM {table}")
    for one in found:
        id = min(one.folders)
        connection.execute("INSERT INTO repository VALUES (?, ?, ?, ?)", (id, one.name, one.remote, one.made))
        connection.executemany("INSERT INTO repository_folder VALUES (?, ?)", [(folder, id) for folder in one.folders])
        connection.executemany("INSERT INTO repository_name VALUES (?, ?)", [(id, name) for name in one.names])
