"""The queries of forgetting, and its changes to the rows that stay; `forget.py` gives the reasons."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from agtrace_indexer.index.questions.queries import FILES, as_json

_OF_FILES = f"(SELECT id FROM session WHERE file_id IN {FILES})"

_ARCHIVED_COPIES = f"""
SELECT e.copy_of, e.id, e.session_id FROM session s JOIN file f ON f.id = s.file_id JOIN event e ON e.session_id = s.id
WHERE f.gone AND e.copy_of IN (SELECT id FROM event WHERE session_id IN {_OF_FILES})
  AND s.file_id NOT IN {FILES}
ORDER BY e.copy_of, s.started_at IS NULL, s.started_at, f.path, e.id
"""

_ARCHIVED_TITLES = f"""
UPDATE session SET title = own_title
WHERE title IS NOT own_title AND title IN (SELECT title FROM naming WHERE session_id IN {_OF_FILES})
"""

_CHILDREN = f"""
UPDATE session SET parent_session = NULL, started_by = NULL, pending = 2 WHERE parent_session IN {_OF_FILES}
"""


class ArchivedCopy(NamedTuple):
    """An event of a vanished log that repeats an event being forgotten."""

    original: int
    event: int
    session: int


class File(NamedTuple):
    """A file as recorded in the index."""

    path: str
    gone: int
    stamp: str


def newest_end(connection: sqlite3.Connection, now: float) -> int | None:
    """Return the newest end of a session (ms) that isn't after a time (ms); None if there is none."""
    query = "SELECT max(ended_at) FROM session WHERE ended_at <= ?"
    found: int | None = connection.execute(query, (now,)).fetchone()[0]
    return found


def any_ended_before(connection: sqlite3.Connection, time: int) -> bool:
    """Whether any session ended before a time (ms)."""
    return connection.execute("SELECT 1 FROM session WHERE ended_at < ? LIMIT 1", (time,)).fetchone() is not None


def archived_copies(connection: sqlite3.Connection, files: Iterable[int]) -> list[ArchivedCopy]:
    """Return the copies, in archived logs, of these files' events, the oldest copy of each event first.

    The end of a run never looks at archived logs again.
    """
    return [ArchivedCopy(*row) for row in connection.execute(_ARCHIVED_COPIES, {"files": as_json(files)})]


def drop_given_titles(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Restore the own titles of sessions that these files gave titles to."""
    connection.execute(_ARCHIVED_TITLES, {"files": as_json(files)})


def leave_children(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Remove the parent of the sessions that were started from these files, until families are joined again."""
    connection.execute(_CHILDREN, {"files": as_json(files)})


def file(connection: sqlite3.Connection, id: int) -> File:
    """Return a file by its row id."""
    return File(*connection.execute("SELECT path, gone, stamp FROM file WHERE id = ?", (id,)).fetchone())


def no_logs(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the files that are not logs, with their paths."""
    query = "SELECT id, path FROM file WHERE status NOT IN ('log', 'forgotten')"
    return [(id, path) for id, path in connection.execute(query)]


def drop_root(connection: sqlite3.Connection, path: str) -> bool:
    """Stop keeping a path fresh; return whether it was a root."""
    return connection.execute("DELETE FROM root WHERE path = ?", (path,)).rowcount > 0


def drop_repeats(connection: sqlite3.Connection, reason: str) -> None:
    """Drop the files that weren't read because they repeat a log, which the reason names."""
    connection.execute("DELETE FROM file WHERE status = 'duplicate' AND reason = ?", (reason,))


def drop_hidden(connection: sqlite3.Connection) -> None:
    """Drop the records of forgotten logs' files, so that the files are looked at again."""
    connection.execute("DELETE FROM file WHERE status = 'forgotten'")
