"""The files that sessions touched, which two of them may share."""

from __future__ import annotations

import ntpath
import posixpath
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from agtrace_indexer.index.queries import files
from agtrace_indexer.index.queries.events import NOW, Snapshot
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.answers import TouchedFile
from agtrace_schema.comparison import ComparedFiles, SharedFile
from agtrace_schema.patterns import later

from agtrace.text.lines import shown_path

_LONGEST_PATH = 160

_WORKTREE = later(r"^.+?[/\\]\.claude[/\\]worktrees[/\\][^/\\]+")
_WINDOWS = later(r"^(?:[A-Za-z]:[\\/]|\\\\)")


class Access(NamedTuple):
    """The numbers of calls that read and wrote a file."""

    reads: int
    writes: int


def touched_files(
    connection: sqlite3.Connection, session: Session, *, same_project: bool, then: Snapshot = NOW
) -> dict[str, Access]:
    """Return the files of a session, keyed so that sessions of one project can be compared."""
    result: dict[str, Access] = {}
    for name, reads, writes in files.touched(connection, session.id, then):
        path = file_key(name, session.cwd, checkout_of(session) if same_project else None)
        before = result.get(path, Access(0, 0))
        result[path] = Access(before.reads + reads, before.writes + writes)
    return result


def file_key(path: str, cwd: str | None, checkout: str | None) -> str:
    """Return the key by which a file is compared: its absolute path, or its path below the checkout if one is given.

    A relative path starts from the working directory; Windows paths follow the rules of Windows.
    """
    rules = ntpath if _WINDOWS.match(cwd or "") or _WINDOWS.match(path) else posixpath
    if cwd and not path.startswith("~") and not rules.isabs(path):
        path = rules.join(cwd, path)
    path = rules.normpath(path)
    if checkout is None:
        return path
    start = rules.join(rules.normpath(checkout), "")
    return (path[len(start) :] or ".") if rules.join(path, "").startswith(start) else path


def checkout_of(session: Session) -> str | None:
    """Return the folder of a session's project: its worktree, the project's root, or else its working directory."""
    cwd, root = session.cwd, session.root_path
    if cwd is None:
        return root
    worktree = _WORKTREE.match(cwd)
    if worktree:
        return worktree[0]
    inside = root and (cwd == root or cwd.startswith((root.rstrip("/\\") + "/", root.rstrip("/\\") + "\\")))
    return root if inside else cwd


def compared_files(one: dict[str, Access], two: dict[str, Access], most: int) -> ComparedFiles:
    """Return the files that only one session touched and those that both did, at most this many in each list."""
    only_1, only_2 = _most_written(one, one.keys() - two.keys()), _most_written(two, two.keys() - one.keys())
    sums = {
        path: Access(*(a + b for a, b in zip(one[path], two[path], strict=True))) for path in one.keys() & two.keys()
    }
    both = _most_written(sums, sums)
    return ComparedFiles(
        total_only_in_1=len(only_1),
        total_only_in_2=len(only_2),
        total_in_both=len(both),
        only_in_1=[TouchedFile(path=_shown_path(path), **one[path]._asdict()) for path in only_1[:most]],
        only_in_2=[TouchedFile(path=_shown_path(path), **two[path]._asdict()) for path in only_2[:most]],
        in_both=[
            SharedFile(path=_shown_path(path), reads_1=a.reads, writes_1=a.writes, reads_2=b.reads, writes_2=b.writes)
            for path, a, b in ((path, one[path], two[path]) for path in both[:most])
        ],
    )


def files_by_use(touched: dict[str, Access]) -> list[TouchedFile]:
    """Return files, most written first."""
    return [TouchedFile(path=_shown_path(path), **touched[path]._asdict()) for path in _most_written(touched, touched)]


def _most_written(touched: dict[str, Access], paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (-touched[path].writes, -touched[path].reads, path))


def _shown_path(path: str) -> str:
    return shown_path(path, _LONGEST_PATH)
