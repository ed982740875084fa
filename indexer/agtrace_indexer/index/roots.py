"""The roots: the files and folders that are kept fresh. A root can be removed; what was read below it stays."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from agtrace_indexer.index import meta
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import write_lock

_REMOVED = "removed_roots"
_BELOW = "NOT f.gone AND f.status != 'forgotten' AND (f.path = {0} OR instr(f.path, rtrim({0}, :sep) || :sep) = 1)"
"""Whether a file that existed when it was last looked at is a root, or lies below it."""

_LISTED = f"""
SELECT r.path, count(*) FILTER (WHERE f.status = 'log'),
  coalesce(sum((SELECT count(*) FROM session s WHERE s.file_id = f.id)), 0)
FROM root r LEFT JOIN file f ON {_BELOW.format("r.path")} GROUP BY r.path ORDER BY r.path
"""

_ONLY_BELOW = f"""
SELECT f.id FROM file f WHERE {_BELOW.format(":path")}
  AND NOT EXISTS (SELECT 1 FROM root r WHERE {_BELOW.format("r.path")})
"""


class UnknownRoot(Exception):
    """The path is not a root."""


class Root(NamedTuple):
    """A root, and the number of logs and sessions indexed below it."""

    path: str
    exists: bool
    logs: int
    sessions: int


def all_roots(connection: sqlite3.Connection) -> list[Root]:
    """Return all roots, by path."""
    found = connection.execute(_LISTED, {"sep": os.sep})
    return [Root(path, os.path.exists(path), logs, sessions) for path, logs, sessions in found]


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

    with write_lock(database, patience), closing(Catalog(database)) as catalog:
        store, path = Store(catalog.connection), os.path.abspath(path)
        result = next((root for root in all_roots(catalog.connection) if root.path == path), None)
        if result is None:
            raise UnknownRoot(path)
        store.begin()
        Database(catalog.connection, execute_plugins=False).table("root").delete(path)
        catalog.set_meta("root_forgotten", "1")  # if it was the last one, the agents' homes don't take its place
        if path in homes:
            _remember(catalog, removed(catalog.connection) | {path})
        only_below = catalog.connection.execute(_ONLY_BELOW, {"path": path, "sep": os.sep}).fetchall()
        store.mark_gone(file for (file,) in only_below)
        store.commit()
    return result


def bring_back(catalog: Catalog, paths: Collection[str]) -> None:
    """Forget that these paths were removed, as they are named again."""
    before = removed(catalog.connection)
    if before & set(paths):
        _remember(catalog, before - set(paths))


def _remember(catalog: Catalog, paths: set[str]) -> None:
    catalog.set_meta(_REMOVED, orjson.dumps(sorted(paths)).decode())
