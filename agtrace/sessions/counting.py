"""Calls, uses of files and tokens by group; and the files that sessions touched, which two of them may share."""

from __future__ import annotations

import ntpath
import posixpath
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, TypeAlias

from agtrace_indexer.index.questions import counts, files, sessions
from agtrace_indexer.index.questions.counts import Group
from agtrace_indexer.index.questions.events import NOW, Snapshot
from agtrace_indexer.index.questions.matches import EventFilters
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.answers import Counts, TouchedFile
from agtrace_schema.comparison import ComparedFiles, SharedFile
from agtrace_schema.patterns import later
from agtrace_schema.requests import CountOf, GroupBy

from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.text.lines import LABEL, one_line, shown_path

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
    found: dict[str, Access] = {}
    for name, reads, writes in files.touched(connection, session.id, then):
        path = file_key(name, session.cwd, checkout_of(session) if same_project else None)
        before = found.get(path, Access(0, 0))
        found[path] = Access(before.reads + reads, before.writes + writes)
    return found


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


Key: TypeAlias = str | int | None
"""What tells a group from others: a name, or the row id of a session or a project, or a day."""

_UNKNOWN = "unknown"
YOU = "you"
"""Whose one's own index is."""


def counted(
    connection: sqlite3.Connection, by: GroupBy, measure: CountOf, filters: EventFilters, kind: str | None
) -> list[Group]:
    """Count what passes the filters, by group, the largest first; `kind` as in `SessionFilters`."""
    if measure == "tokens":
        return _largest_first(counts.tokens(connection, by, filters, kind), 0)
    if by == "file":
        groups = _files(counts.files(connection, filters, kind))
    else:
        groups = counts.calls(connection, by, filters, kind)
    return _largest_first(groups, 1 if measure == "failed" else 0)


def totals(groups: Sequence[Group]) -> list[int | None]:
    """Return the figures of all groups together, as far as they are known; None for one that no group has."""
    return [
        None if all(figure is None for figure in figures) else sum(filter(None, figures))
        for figures in zip(*(group.figures for group in groups), strict=True)
    ]


def shown(connection: sqlite3.Connection, by: GroupBy, groups: Sequence[Group], most: int) -> Counts:
    """Show the first groups, and what the others come to."""
    first, others = groups[:most], groups[most:]
    titles = _titles(connection, first) if by == "session" else {}
    return Counts(
        rows=[
            [_label(connection, by, group.key), *group.figures, titles.get(group.key, group.sessions)]
            for group in first
        ],
        others=[len(others), *totals(others)] if others else None,
    )


def _largest_first(groups: Iterable[Group], column: int) -> list[Group]:
    """Sort groups by one of their figures, then by the others; of equal ones names in order, or the newest first."""

    def rank(group: Group) -> tuple[Any, ...]:
        key = group.key
        figures = [-(figure or 0) for figure in group.figures]
        return figures[column], *figures, -key if isinstance(key, int) else 0, str(key)

    return sorted(groups, key=rank)


def _files(uses: Iterable[counts.FileUses]) -> list[Group]:
    """Sum up the uses of files by their absolute paths: a relative one starts from the session's directory."""
    calls: dict[str, tuple[int, int | None]] = {}
    users: dict[str, set[int]] = {}
    for use in uses:
        path = file_key(use.path, use.cwd, None)
        done, failed = calls.get(path, (0, None))
        calls[path] = done + use.calls, failed if use.failed is None else (failed or 0) + use.failed
        users.setdefault(path, set()).add(use.session)
    return [Group(path, (done, failed), len(users[path])) for path, (done, failed) in calls.items()]


# -- labels ----------------------------------------------------------------------------------------


def _label(connection: sqlite3.Connection, by: GroupBy, key: Key) -> str:
    """Return the name of a group; that of a session or a project can be used to ask for it."""
    if key is None:
        return YOU if by == "user" else _UNKNOWN
    if isinstance(key, str):
        return shown_path(key, _LONGEST_PATH) if by == "file" else one_line(key, LABEL)
    if by == "day":
        return (date(1970, 1, 1) + timedelta(days=key)).isoformat()
    if by == "session":
        return short_id(connection, sessions.id_of(connection, key))
    return labels(connection)[key]


def _titles(connection: sqlite3.Connection, groups: Sequence[Group]) -> dict[Key, str]:
    found = sessions.in_rows(connection, (key for key, *_ in groups if isinstance(key, int)))
    return {one.id: one_line(one.title or one.snippet or "", LABEL) for one in found}
