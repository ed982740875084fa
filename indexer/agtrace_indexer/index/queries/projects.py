"""The projects that sessions belong to: repositories, each with its folders."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from msgspec import Struct

from agtrace_indexer.index.projects import is_scratch
from agtrace_indexer.index.queries.base import BELOW, REPOSITORY, rows, tuples, values
from agtrace_indexer.index.queries.usage import ENDED

_ACTIVE = f"""
WITH active AS (
  SELECT {REPOSITORY} AS id,
    count(*) FILTER (WHERE NOT {BELOW}) AS sessions,
    group_concat(DISTINCT s.provider) AS providers,
    sum(s.failed_calls) AS failed, coalesce(max({ENDED}), 0) AS last
  FROM session s WHERE s.project_id IS NOT NULL AND s.kind != 'warmup' AND s.id <= :snapshot GROUP BY 1)
SELECT *, (SELECT count(*) FROM active) FROM active
WHERE (last, id) < (:last, :row) ORDER BY last DESC, id DESC LIMIT :most
"""

_FOLDERS = """
SELECT p.id, p.hash, p.root_path, coalesce(f.repository_id, p.id)
FROM project p LEFT JOIN repository_folder f ON f.project_id = p.id
"""

_BY_USE = "(SELECT count(*) FROM session s WHERE s.project_id = p.id AND s.kind != 'warmup') DESC"


class Project(Struct, frozen=True):
    """A repository with its sessions. Times are milliseconds since 1970 UTC; 0 is unknown."""

    id: int
    """Its row id."""
    sessions: int
    providers: str
    """Separated by commas."""
    failed_calls: int
    last: int
    """The time of the last activity in its sessions."""
    total: int
    """The number of projects in the whole list."""


class Folder(Struct, frozen=True):
    """A folder in which agents worked."""

    id: int
    """Its row id."""
    hash: str
    root_path: str | None
    """None if logs name only the hash."""
    repository: int
    """The row id of the repository that it belongs to."""

    @property
    def is_scratch(self) -> bool:
        """Whether what lies below it is no part of it, as in a home directory."""
        return bool(self.root_path) and is_scratch(self.root_path or "")


class Repository(NamedTuple):
    """What is known of a repository."""

    id: int
    name: str
    remote: str | None
    """`host/owner/name` in lower case; None if nothing tells."""
    made: str
    """How its folders were joined: remote, shared, name, or folder if there is but one without a remote."""


def page(
    connection: sqlite3.Connection, *, snapshot: int, newest_event: int, behind: tuple[int, int] | None, most: int
) -> list[Project]:
    """Return the projects after a (last, row), those in which something happened last first, at most `most`.

    `snapshot` and `newest_event` mark the sessions and events that existed when the list was begun
    (`sessions.newest_row`, `matches.newest_event`): what happened since then doesn't change the order.
    """
    last, row = behind or (1 << 62, 1 << 62)
    named = {"last": last, "row": row, "most": most, "snapshot": snapshot, "newest": newest_event}
    return list(rows(connection, Project, _ACTIVE, named))


def folders(connection: sqlite3.Connection) -> list[Folder]:
    """Return all folders, by path; those without one last."""
    return list(rows(connection, Folder, f"{_FOLDERS} ORDER BY p.root_path IS NULL, p.root_path, p.hash"))


def folders_of(connection: sqlite3.Connection, repository: int) -> list[Folder]:
    """Return the folders of a repository, those with the most sessions first."""
    sql = f"{_FOLDERS} WHERE coalesce(f.repository_id, p.id) = ? ORDER BY {_BY_USE}, p.root_path IS NULL, p.root_path"
    return list(rows(connection, Folder, sql, (repository,)))


def repositories(connection: sqlite3.Connection) -> dict[int, Repository]:
    """Return what is known of repositories, by their row ids."""
    found = rows(connection, Repository, "SELECT id, name, remote, made FROM repository")
    return {one.id: one for one in found}


def called(connection: sqlite3.Connection, name: str) -> set[int]:
    """Return the repositories with a name: theirs, with or without the owner, a folder's or a former one."""
    sql = """
    SELECT repository_id FROM repository_name WHERE name = :name UNION SELECT id FROM repository WHERE remote = :name
    """
    return set(values(connection, sql, {"name": name.lower()}))


def names(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return all names that repositories have, each with the row id of the repository."""
    return list(tuples(connection, "SELECT repository_id, name FROM repository_name"))
