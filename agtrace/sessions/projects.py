"""Projects: repositories with their folders, as a list, and by whatever name somebody gives one."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Set
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from agtrace_indexer.index.queries import projects
from agtrace_indexer.index.queries.projects import Folder, Project, Repository
from agtrace_indexer.index.queries.usage import Among
from agtrace_schema.answers import ProjectItem
from agtrace_schema.patterns import later

from agtrace.problems import UnknownProject
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.terms import known_failures_of_all
from agtrace.sessions.usage import Snapshot, Usage, usage_by
from agtrace.text.lines import LABEL, one_line, repeated, shown_path
from agtrace.times import iso

SHORT_HASH = 8
"""Characters of a project hash that answers show."""

_FOLDERS_SHOWN = 5
_NAMED = 5
"""Projects that an error names."""

_SHORTEST_PART = 3
_SHORTEST_HASH = 4
"""The fewest characters of a hash that name a project."""

_HASH = later("[0-9a-f]+")


class ProjectPage(NamedTuple):
    """A page of projects, the most recently active first."""

    items: list[ProjectItem]
    places: list[tuple[int, int]]
    """(last activity, row) of each item, as the position after it."""
    total: int
    more: bool


def list_projects(
    connection: sqlite3.Connection,
    limit: int,
    *,
    snapshot: Snapshot,
    behind: tuple[int, int] | None,
    prices: PriceTable,
) -> ProjectPage:
    """Return the projects of the snapshot's sessions, in the order that they had then: pages stay disjoint."""
    found = projects.page(
        connection, snapshot=snapshot.session, newest_event=snapshot.event, behind=behind, most=limit + 1
    )
    shown = found[:limit]
    folders = {project.id: projects.folders_of(connection, project.id) for project in shown}
    ids = tuple(folder.id for some in folders.values() for folder in some)
    used = usage_by(connection, prices, Among("project", projects=ids, newest=snapshot.session))
    known, names = projects.repositories(connection), labels(connection)
    items = []
    for project in shown:
        usage = used.get(project.id, Usage())
        items.append(_project_item(project, known.get(project.id), folders[project.id], names[project.id], usage))
    places = [(project.last, project.id) for project in shown]
    return ProjectPage(items, places, found[0].total if found else 0, len(found) > limit)


def _project_item(
    project: Project, known: Repository | None, folders: list[Folder], name: str, usage: Usage
) -> ProjectItem:
    main, providers = folders[0], sorted(project.providers.split(","))
    roots = [shown_path(folder.root_path or folder.hash[:SHORT_HASH]) for folder in folders]
    return ProjectItem(
        name=name,
        remote=known and known.remote and one_line(known.remote, LABEL),
        made=known.made if known and len(folders) > 1 else None,
        hash=main.hash[:SHORT_HASH],
        root_path=main.root_path and shown_path(main.root_path),
        folders=roots[1 : 1 + _FOLDERS_SHOWN] or None,
        total_folders=len(folders) if len(folders) > 1 + _FOLDERS_SHOWN else None,
        session_count=project.sessions,
        providers=providers,
        failed_calls=known_failures_of_all(providers, project.failed_calls),
        responses=usage.responses,
        **usage.totals,
        last_activity=iso(project.last),
    )


# -- names -----------------------------------------------------------------------------------------


def labels(connection: sqlite3.Connection) -> dict[int, str]:
    """Return by what name each project can be asked for, by its row id and those of its folders.

    That is its name, its owner and name, the path of its first folder or the beginning of a hash: the first of these
    that no other project has.
    """
    taken = Counter(name for _, name in {*projects.names(connection)})  # several people may call one so
    known, folders = projects.repositories(connection), projects.folders(connection)
    mains: dict[int, Folder] = {}
    for folder in folders:
        mains.setdefault(folder.repository, folder)
    found = {id: _label(main, known.get(id), taken) for id, main in mains.items()}
    return {folder.id: found[folder.repository] for folder in folders} | found


def _label(folder: Folder, known: Repository | None, taken: Counter[str]) -> str:
    if known and taken[known.name.lower()] == 1 and not _HASH.fullmatch(known.name.lower()):
        return one_line(known.name, LABEL)
    if known and known.remote and taken[known.remote.partition("/")[2]] == 1:
        return one_line(known.remote.partition("/")[2], LABEL)
    return shown_path(folder.root_path) if folder.root_path else folder.hash[:SHORT_HASH]


def resolved(
    connection: sqlite3.Connection, given: str, *, roughly: bool = True, several: bool = False
) -> tuple[int, ...]:
    """Return the row ids of all folders of the repository that somebody names; of `several` if these are called so.

    Understood are the path of a folder or of one inside it, a name, an owner and a name, the address of a remote, the
    end of a path, the beginning of a hash, and, if `roughly` will do, a part of a name that no other has. Raises
    `UnknownProject` if none is named, or several are.
    """
    folders = projects.folders(connection)
    found = _by_path(folders, given) or projects.called(connection, _plain(given))
    found = found or _by_end(folders, given) or {folder.repository for folder in _with_hash(folders, given)}
    called = "are called" if found else "have in a name"
    found = found or (_by_part(connection, given) if roughly else set())
    if len(found) == 1 or (found and several):
        return tuple(folder.id for folder in folders if folder.repository in found)
    names = labels(connection)
    if found:
        among = _apart(connection, found, [names[id] for id in sorted(found)])
        raise UnknownProject(f"{len(found)} projects {called} {repeated(given, 100)!r}", among)
    known = {*names.values()}
    raise _unknown(f"no project matches {repeated(given, 100)!r} (the index has {len(known) or 'none'})", given, known)


def in_folders(connection: sqlite3.Connection, rows: Collection[int]) -> str:
    """Return whose folders these are and their names, where they differ, as the end of a summary.

    Whoever knows a project by one name has all of them, and sees whether that meant several.
    """
    meant, known = {one.repository for one in projects.folders(connection) if one.id in rows}, labels(connection)
    if len(meant) > 1:
        return f" of {len(meant)} projects: {', '.join(sorted(known[id] for id in meant)[:_FOLDERS_SHOWN])}"
    named, remote = folder_names(connection, rows), remote_of(connection, rows)
    more = " ..." if len(named) > _FOLDERS_SHOWN else ""
    inside = f"{f' of {remote}' if remote else ''} in the folders {', '.join(named[:_FOLDERS_SHOWN])}{more}"
    return inside if len(named) > 1 else ""


def hashes_of(connection: sqlite3.Connection, rows: Collection[int]) -> list[str]:
    """Return the hashes of these folders, by which they are the same in any index of this machine."""
    return [one.hash for one in projects.folders(connection) if one.id in rows]


def with_hashes(connection: sqlite3.Connection, hashes: Collection[str]) -> tuple[int, ...]:
    """Return the row ids of the folders with these hashes, and of all others of their repositories."""
    folders = projects.folders(connection)
    meant = {one.repository for one in folders if one.hash in hashes}
    return tuple(one.id for one in folders if one.repository in meant)


def paths_of(connection: sqlite3.Connection, rows: Collection[int]) -> list[str]:
    """Return the paths of these folders, in the order of the alphabet; the hash of one whose path isn't known."""
    return sorted(one.root_path or one.hash[:SHORT_HASH] for one in projects.folders(connection) if one.id in rows)


def folder_names(connection: sqlite3.Connection, rows: Collection[int]) -> list[str]:
    """Return the names of these folders, each once, in the order of the alphabet."""
    folders = projects.folders(connection) if rows else []
    return sorted({PurePath(_slashes(one.root_path)).name for one in folders if one.id in rows and one.root_path})


def remote_of(connection: sqlite3.Connection, rows: Collection[int]) -> str | None:
    """Return the remote of the repository that all of these folders belong to; None if there is none, or several."""
    meant = {one.repository for one in projects.folders(connection) if one.id in rows}
    known = projects.repositories(connection)
    return known[meant.pop()].remote if len(meant) == 1 and meant <= known.keys() else None


def folders_meant(connection: sqlite3.Connection, given: str) -> tuple[Folder, ...]:
    """Return the folders that somebody means: a path or the beginning of a hash means one, a name a whole repository.

    Raises `UnknownProject` as `resolved` does, and for a path that is none of a folder.
    """
    folders = projects.folders(connection)
    if is_path(given):
        paths = _paths(given)
        named = [one for one in folders if one.root_path and _slashes(one.root_path) in paths]
    else:
        named = [] if projects.called(connection, _plain(given)) else _with_hash(folders, given)
    if len(named) == 1:
        return (*named,)
    ids = set() if is_path(given) else set(resolved(connection, given, roughly=False))
    if len(named) > 1 or not ids:
        known = [one.root_path or one.hash[:SHORT_HASH] for one in named or folders]
        trouble = f"{len(named) or 'no'} folders match {repeated(given, 100)!r}"
        raise UnknownProject(trouble, known[:_NAMED]) if named else _unknown(trouble, given, {*known})
    return tuple(one for one in folders if one.id in ids)


def _unknown(trouble: str, given: str, names: Set[str]) -> UnknownProject:
    """Return the error for a name that nothing has, with some that are like it; with any if none is."""
    import difflib  # only if needed

    asked, by_lower = given.strip().lower(), {name.lower(): name for name in sorted(names)}
    holding = sorted((name for name in by_lower if asked in name), key=lambda name: (name.find(asked) > 0, name))
    close = difflib.get_close_matches(asked, by_lower, _NAMED)
    near = [by_lower[name] for name in dict.fromkeys([*holding, *close])]
    known, as_what = (near, "nearest: ") if near else (sorted(names, key=str.lower), "known: ")
    return UnknownProject(trouble, known[:_NAMED], as_what=as_what)


def _apart(connection: sqlite3.Connection, found: Iterable[int], names: list[str]) -> list[str]:
    """Return names of repositories by which they can be told apart: their paths where the names are the same."""
    if len(set(names)) == len(names):
        return names[:_NAMED]
    mains = (projects.folders_of(connection, id)[0] for id in sorted(found))
    return [main.root_path or main.hash[:SHORT_HASH] for main in mains][:_NAMED]


def _plain(given: str) -> str:
    """Return a name or an address without what people copy with it."""
    bare = re.sub(r"^(?:https?://|(?:ssh://)?git@)", "", given.strip())
    return bare.replace(":", "/").rstrip("/").removesuffix(".git")


def _by_path(folders: Iterable[Folder], given: str) -> set[int]:
    """The repository of a folder, or of the innermost folder that a path lies in; nothing is looked up on the disk.

    What lies below a home directory or a scratch folder is no part of it.
    """
    if not is_path(given):
        return set()
    paths = _paths(given)
    above = [
        (len(root), folder.repository)
        for folder in folders
        if folder.root_path and (root := _slashes(folder.root_path))
        if any(path == root or (path.startswith(f"{root}/") and not folder.is_scratch) for path in paths)
    ]
    return {max(above)[1]} if above else set()


def _by_part(connection: sqlite3.Connection, given: str) -> set[int]:
    part = given.strip().lower()
    return {id for id, name in projects.names(connection) if len(part) >= _SHORTEST_PART and part in name}


def is_path(given: str) -> bool:
    """Whether somebody names a project by a path."""
    return given.startswith(("/", "~", ".")) or PurePath(given).is_absolute() or given[1:3] in (":\\", ":/")


def _paths(given: str) -> set[str]:
    """Return a path as it was given, and in full."""
    return {_slashes(given), _slashes(os.path.normpath(os.path.expanduser(given)))}


def _by_end(folders: Iterable[Folder], given: str) -> set[int]:
    end = _slashes(given).lstrip("/")
    return {
        folder.repository
        for folder in folders
        if end and folder.root_path and _slashes(folder.root_path).endswith(f"/{end}")
    }


def _with_hash(folders: Iterable[Folder], given: str) -> list[Folder]:
    if len(given) < _SHORTEST_HASH or not _HASH.fullmatch(given.lower()):
        return []
    return [folder for folder in folders if folder.hash.startswith(given.lower())]


def _slashes(path: str) -> str:
    return path.replace("\\", "/").rstrip("/") if path.strip("/\\") else path


_ORIGIN = 'remote "origin"'


def remote_at(path: str) -> str | None:
    """Return the remote of the repository around a path, as `host/owner/name`; None without one.

    Of several remotes that is `origin`, or the first one. No program is run for it.
    """
    import configparser  # only if needed, as the next ones

    from agtrace_indexer.events.remotes import repository_at
    from agtrace_indexer.index.projects import is_of_this_machine, project_root, small_file

    root = project_root(os.path.abspath(os.path.expanduser(path)))
    if not is_of_this_machine(root):
        return None
    git = Path(root, ".git")
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        if git.is_file():  # which names the folder, as in a submodule
            named = git.parent / small_file(git).removeprefix("gitdir:").strip()
            git = named if is_of_this_machine(str(named)) else git
        if not (git / "config").is_file():
            return None
        config.read_string(small_file(git / "config"))
    except (OSError, ValueError, configparser.Error):
        return None
    remotes = {one: config.get(one, "url", fallback=None) for one in config.sections() if one.startswith("remote ")}
    address = remotes.get(_ORIGIN) or next(filter(None, remotes.values()), None)
    return repository_at(address) if address else None


def known_as(connection: sqlite3.Connection, name: str) -> str:
    """Return how the index knows a project that somebody names: as it was named, or the path of a clone by its remote.

    Only for what a person at this machine names: what a client asks for is never looked up on the disk.
    """
    if not is_path(name):
        return name
    with suppress(UnknownProject):
        resolved(connection, name, roughly=False)
        return name
    remote = remote_at(name)
    return remote if remote and projects.called(connection, remote) else name
