"""Strings shared by many rows, by their ids: names, paths and projects, each looked up once."""

from __future__ import annotations

import sqlite3

from agtrace_indexer.events.strings import masked
from agtrace_indexer.index.projects import project_hash, project_root, told_hash


class Interning:
    """The ids of strings; a new string gets a row."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._projects: dict[str, int] = {}
        self.relative = False
        """Whether there was a path that says nothing about the folder it lies in."""

    def name(self, name: str) -> int:
        """Return the id of a short, recurring string."""
        found = self._names.get(name)
        if found is None:
            found = self._interned("name", "text", masked(name))
            self._names[name] = found
        return found

    def path(self, path: str) -> int:
        """Return the id of a path, masked."""
        self.relative |= path[:1] != "/" and path[1:2] != ":"
        found = self._paths.get(path)  # masking a masked path changes nothing
        if found is None:
            path = masked(path)
            found = self._paths.get(path) or self._interned("path", "text", path)
            self._paths[path] = found
        return found

    def project(self, cwd: str | None, told: str | None = None) -> int | None:
        """Return the id of a project, by a session's directory or the hash that its log tells; None without either."""
        if cwd:
            root = project_root(cwd)
            key, values = project_hash(root), root
        elif told:
            key, values = told_hash(told), None
        else:
            return None
        if key not in self._projects:
            self._projects[key] = self._interned("project", "hash", key)
        if values is not None:
            self._connection.execute(
                "UPDATE project SET root_path = ? WHERE id = ? AND root_path IS NULL", (values, self._projects[key])
            )
        return self._projects[key]

    def _interned(self, table: str, column: str, value: str) -> int:
        self._connection.execute(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", (value,))
        return int(self._connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()[0])
