"""The roots: the files and folders that are kept fresh. A root can be removed; what was read below it stays."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from agtrace_indexer.index import meta
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.lock import WriteLock

_REMOVED = "removed_roots"
_HELD = """
SELECT f.id, f.path, f.status = 'log' AS is_log, (SELECT count(*) FROM session s WHERE s.file_id = f.id) AS sessions
FROM file f WHERE NOT f.gone AND f.status != 'forgotten'
"""


class UnknownRoot(Exception):
    """The path is not a root."""


class Root(NamedTuple):
    """A root, and the number of logs and sessions indexed below it."""

    path: str
    exists: bool
    logs: int
    sessions: int


class _Held(NamedTuple):
    """A file in the index that existed when it was last looked at."""

    id: int
    path: str
    is_log: bool
    sessions: int


def listed(connection: sqlite3.Connection) -> list[Root]:
    """Return all roots, by path."""
    held = [_Held(*row) for row in connection.execute(_HELD)]
    paths = [path for (path,) in connection.execute("SELECT path FROM root ORDER BY path")]
    return [_root(path, [file for file in held if _lies_below(file.path, path)]) for path in paths]


def removed(connection: sqlite3.Connection) -> set[str]:
    """Return the removed homes of agents: they come back only if they are named."""
    noted = meta.get(connection, _REMOVED)
    return set() if noted is None else set(orjson.loads(noted))


def remove(database: Path, path: str, homes: Collection[str] = (), *, patience: float = 0) -> Root:
    """Stop keeping a root fresh and return it; its logs are archived, whether they still exist or not.

    It is remembered if it is one of the agents' `homes`. Raise `UnknownRoot`; `lock.Busy` if another process is still
    writing after `patience` seconds; `sqlite3.Error`.
    """
    from sqlite_utils import Database  # takes 0.2 s

    from agtrace_indexer.index.store import Store

    with WriteLock(database, patience), closing(Catalog(database)) as catalog:
        store, path = Store(catalog.connection), os.path.abspath(path)
        found = next((root for root in listed(catalog.connection) if root.path == path), None)
        if found is None:
            raise UnknownRoot(path)
        store.begin()
        Database(catalog.connection, execute_plugins=False).table("root").delete(path)
        catalog.set_meta("root_forgotten", "1")  # if it was the last one, the agents' homes don't take its place
        if path in homes:
            _remember(catalog, removed(catalog.connection) | {path})
        store.mark_gone(_only_below(catalog, path))
        store.commit()
    return found


def bring_back(catalog: Catalog, paths: Collection[str]) -> None:
    """Forget that these paths were removed, as they are named again."""
    before = removed(catalog.connection)
    if before & set(paths):
        _remember(catalog, before - set(paths))


def _remember(catalog: Catalog, paths: set[str]) -> None:
    catalog.set_meta(_REMOVED, orjson.dumps(sorted(paths)).decode())


def _only_below(catalog: Catalog, path: str) -> Iterator[int]:
    """Yield the files below a path that are not below any root."""
    roots = catalog.roots()
    for held in catalog.connection.execute(_HELD).fetchall():
        file = _Held(*held)
        if _lies_below(file.path, path) and not any(_lies_below(file.path, root) for root in roots):
            yield file.id


def _root(path: str, below: list[_Held]) -> Root:
    logs = sum(file.is_log for file in below)
    return Root(path, os.path.exists(path), logs, sum(file.sessions for file in below))


def _lies_below(path: str, root: str) -> bool:
    return path == root or path.startswith(os.path.join(root, ""))
