"""Which folders belong to one repository: worktrees, clones and former names, joined by what only one repository has.

A folder is what a row of `project` stands for. Pure: the same folders give the same repositories, in whichever order.

- **remote**: folders whose remote is the same. What a log records of its working directory counts as the remote; else
  what git and forges printed, with two votes, or one if the folder is called like it.
- **shared**: folders that share two commits, or two files (by their paths in the folder, deep or in two folders).
- **name**: a folder that is called like a repository, and lies in a folder called like its owner, has a file or a
  folder in common with it, or is a worktree inside it.

Folders of which logs record different remotes are never joined, whatever else they share: that is what a fork is. In a
home directory or a scratch folder one works on many repositories, so only a recorded remote counts there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from agtrace_indexer.events.remotes import name_of, owner_of, without_host

REMOTE, SHARED, NAME, FOLDER = "remote", "shared", "name", "folder"
"""How a repository was joined, the surest way first."""
_SURENESS = {REMOTE: 0, SHARED: 1, NAME: 2}

_ENOUGH = 2
"""The votes for a remote that only outputs show, and the points that join two folders."""
_DEEP = 3
_COMMON = 4
"""A path that folders of this many names have, or more, says nothing about any of them."""
_CROWD = 64
"""More folders than this with one name, file or commit are not compared with each other."""
_SHORTEST_HASH = 7

_SCRATCH = re.compile(
    r"""(?: /?
      | /(?:root|home|Users|private|var|tmp|opt|srv|mnt|work|workspace|workspaces|app|src|code|project|repo|data)
      | /(?:home|Users)/[^/]+ (?:/(?:Desktop|Documents|Downloads|Projects?|code|src|dev|work|workspace|repos?|git))?
      | (?:/private)?/(?:tmp|var/tmp|var/folders)(?:/.*)?
      | [A-Za-z]: (?:/(?:Users(?:/[^/]+ (?:/(?:Desktop|Documents|Downloads))?)?|Windows(?:/.*)?|Temp(?:/.*)?))?
      | [A-Za-z]:/Users/[^/]+/AppData(?:/.*)?
    )/?""",
    re.VERBOSE | re.IGNORECASE,
)
"""Folders in which one works on many repositories, or on none."""

_WORKTREE = re.compile(r"^(.+?)/(?:\.git/|\.claude/)?\.?worktrees?/[^/]+(?:/.*)?$", re.IGNORECASE)
_ELSEWHERE = frozenset(
    """
    .cache .git .github .gitlab .idea .tox .venv .vscode bower_components build deps dist extern external node_modules
    out site-packages submodules target third-party third_party thirdparty vendor vendored venv
    """.split()  # noqa: SIM905
)
"""Folders whose files come from other repositories, are generated, or are in most repositories."""
_GENERIC = frozenset(
    """
    __init__ __main__ _app _layout about account admin android api apis app appdelegate application apps architecture
    assets auth backend base bin blog build button card changelog cli client cmd code com common component components
    conf config configs configuration conftest constants contributing controllers core css custom dashboard data
    database db default demo dependencies deploy dev development dialog doc docker dockerfile docs e2e entities env
    error errors example examples features fixtures footer form frontend func functions generated global globals
    go google handler handlers header health helper helpers hello home hook hooks html http icon images img index infra
    infrastructure init input integration interfaces internal io ios item items java jest js json kotlin layout layouts
    lib libs license list loading local locales log logger logging login logo main makefile manage manager manifest
    meta middleware migrations mock mocks model models module modules my-app myapp net not-found notes org package
    packages page pages parser pkg plugin plugins postcss prisma product products production project projects public
    python queries query react readme register repo repos repositories request requirements resources response route
    router routers routes run runner rust sample samples schema schemas scripts search security server servers service
    services session settings setup shared sidebar site skill skills source spec sql src static store stores storybook
    style styles svc swift table tailwind task tasks template templates test testdata testing tests theme todo tool
    tools tsconfig types ui unit update user users util utilities utils validation validators version view views vite
    web webpack website workspace
    """.split()  # noqa: SIM905
)
"""Names that files, folders and repositories of all kinds have: alone they say nothing."""
_LONG_NAME = 3
"""A name of this many words is one that two repositories hardly share."""


class Folder(NamedTuple):
    """What is known of a folder."""

    id: int
    hash: str
    root: str | None
    """Its path; None if logs name only its hash."""
    recorded: Mapping[str, int] = {}
    """The remotes that logs record -> when that was last so (ms)."""
    shown: Mapping[str, int] = {}
    """The remotes that git and forges printed -> how often."""
    commits: Collection[str] = ()
    files: Collection[str] = ()
    """Paths of touched files, relative to the folder, with `/`."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Folders that belong together."""

    name: str
    remote: str | None
    made: str
    folders: tuple[int, ...]
    """The ids of its folders, in the order of their hashes."""
    names: tuple[str, ...]
    """All its names, in lower case: with and without its owner, those of its folders, and former ones."""


@dataclass(slots=True)
class _Known:
    """A folder with what follows from it."""

    folder: Folder
    way: tuple[str, ...] = ()
    """The names on its path, in lower case, its own the last."""
    remote: str | None = None
    files: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    """Folders of its files that hardly another repository has."""
    scratch: bool = False

    @property
    def name(self) -> str:
        return self.way[-1] if self.way else ""


@dataclass(slots=True)
class _Group:
    """Folders joined so far."""

    members: list[_Known]
    recorded: list[frozenset[str]] = field(default_factory=list)
    """The recorded remotes of its members that have any."""
    made: str = REMOTE

    @property
    def remotes(self) -> set[str]:
        return {known.remote for known in self.members if known.remote}


class _Tie(NamedTuple):
    """What two folders have in common."""

    made: str
    weight: int


_Ties = dict[tuple[int, int], tuple[_Known, _Known, _Tie]]
"""The two folders and what ties them together, by the ids of both."""


def repositories(folders: Iterable[Folder]) -> list[Repository]:
    """Return the repositories of these folders, in the order of the hashes of their first folders."""
    known = [_known(folder) for folder in sorted(folders, key=lambda folder: folder.hash)]
    groups = {one.folder.id: _Group([one], [frozenset(one.folder.recorded)] if one.folder.recorded else [])
              for one in known}  # fmt: skip
    _join_remotes(known, groups)
    ties = _ties([one for one in known if not one.scratch])
    for made in (SHARED, NAME):
        _join_ties(made, ties, groups)
    found = {id(group): group for group in groups.values()}
    return [_repository(group) for group in found.values()]


def _known(folder: Folder) -> _Known:
    path = (folder.root or "").replace("\\", "/")
    scratch = bool(path) and _SCRATCH.fullmatch(path) is not None
    way = tuple(part.lower() for part in path.split("/") if part and not part.endswith(":"))
    told = frozenset() if scratch else frozenset(filter(_is_telling, folder.files))
    places = frozenset(place for path in told for place in _telling_places(path))
    return _Known(folder, way, _remote_of(folder, way, scratch=scratch), told, places, scratch)


def _remote_of(folder: Folder, way: tuple[str, ...], *, scratch: bool) -> str | None:
    """Return the remote of a folder: the newest that a log records, else the one that outputs agree on."""
    if folder.recorded:
        return max(folder.recorded, key=lambda remote: (folder.recorded[remote], remote))
    if scratch or not folder.shown:
        return None
    votes = sorted(folder.shown.items(), key=lambda vote: (-vote[1], not _is_called(way, vote[0]), vote[0]))
    best, count = votes[0]
    rivals = [remote for remote, others in votes[1:] if others == count]
    called = _is_called(way, best)
    if rivals and (not called or any(_is_called(way, rival) for rival in rivals)):
        return None
    return best if count >= _ENOUGH or called else None


def _is_called(way: tuple[str, ...], remote: str) -> bool:
    return bool(way) and _plain(way[-1]) == _plain(name_of(remote))


# -- joining ---------------------------------------------------------------------------------------


def _join_remotes(known: list[_Known], groups: dict[int, _Group]) -> None:
    """Join the folders of one remote; then those whose log records a former one of another folder."""
    by_remote: dict[str, list[_Known]] = defaultdict(list)
    for one in known:
        if one.remote:
            by_remote[one.remote].append(one)
    for same in by_remote.values():
        for one in same[1:]:
            _join(groups, same[0], one, REMOTE)
    for one in known:
        for former in sorted(one.folder.recorded.keys() - {one.remote}):
            for other in by_remote.get(former, ()):
                if other.folder.recorded:
                    _join(groups, one, other, SHARED)


def _join_ties(made: str, ties: _Ties, groups: dict[int, _Group]) -> None:
    """Join the folders with ties of a kind, the strongest first; a tie to two repositories joins none."""
    wanted = sorted(
        (item for item in ties.values() if item[2].made == made),
        key=lambda item: (-item[2].weight, item[0].folder.hash, item[1].folder.hash),
    )
    for one, other, tie in wanted:
        if not _is_torn(one, other, tie, wanted, groups) and not _is_torn(other, one, tie, wanted, groups):
            _join(groups, one, other, made)


def _is_torn(
    one: _Known, other: _Known, tie: _Tie, ties: list[tuple[_Known, _Known, _Tie]], groups: dict[int, _Group]
) -> bool:
    """Whether a folder without a remote is nearly as much tied to a repository of another remote."""
    here, there = groups[one.folder.id], groups[other.folder.id]
    if here.remotes or not there.remotes:
        return False
    for first, second, rival in ties:
        if 2 * rival.weight <= tie.weight:
            return False
        for mine, its in ((first, second), (second, first)):
            remotes = groups[its.folder.id].remotes if groups[mine.folder.id] is here else ()
            if remotes and there.remotes.isdisjoint(remotes):
                return True
    return False


def _join(groups: dict[int, _Group], one: _Known, other: _Known, made: str) -> None:
    """Join the groups of two folders, unless logs record remotes of them that have nothing in common."""
    first, second = groups[one.folder.id], groups[other.folder.id]
    if first is second or any(a.isdisjoint(b) for a in first.recorded for b in second.recorded):
        return
    first.members += second.members
    first.recorded += second.recorded
    first.made = max(first.made, second.made, made, key=_SURENESS.__getitem__)
    for member in second.members:
        groups[member.folder.id] = first


# -- what folders have in common -------------------------------------------------------------------


def _ties(known: list[_Known]) -> _Ties:
    """Return the ties that suffice to join two folders, by their ids."""
    common = _common_paths(known)
    pairs: dict[tuple[int, int], tuple[_Known, _Known]] = {}
    for alike in _candidates(known, common):
        for one, other in combinations(alike, 2):
            pairs[one.folder.id, other.folder.id] = (one, other)
    found = {}
    for ids, (one, other) in pairs.items():
        if tie := _tie(one, other, common):
            found[ids] = (one, other, tie)
    return found


def _candidates(known: list[_Known], common: frozenset[str]) -> Iterator[list[_Known]]:
    """Yield folders with something in common: a commit, a file, a name."""
    marks: dict[tuple[str, str], list[_Known]] = defaultdict(list)
    for one in known:
        own = {("commit", commit[:_SHORTEST_HASH]) for commit in one.folder.commits}
        own |= {("file", path) for path in one.files - common}
        own |= {("name", name) for name in _names(one)}
        for mark in own:
            marks[mark].append(one)
    yield from (alike for alike in marks.values() if 2 <= len(alike) <= _CROWD)


def _names(one: _Known) -> set[str]:
    """The names by which a folder may be known: those on its way, and that of its remote."""
    return {*map(_plain, one.way), *([_plain(name_of(one.remote))] if one.remote else ())}


def _common_paths(known: list[_Known]) -> frozenset[str]:
    """Return the paths that folders of many names have."""
    names: dict[str, set[str]] = defaultdict(set)
    for one in known:
        for path in (*one.files, *one.places):
            names[path].add(one.name)
    return frozenset(path for path, owners in names.items() if len(owners) >= _COMMON)


def _tie(one: _Known, other: _Known, common: frozenset[str]) -> _Tie | None:
    """Return what ties two folders together; None if it isn't enough."""
    commits = _shared_commits(one.folder.commits, other.folder.commits)
    files = (one.files & other.files) - common
    spread = {path.rpartition("/")[0] for path in files}
    deep = any(place.count("/") >= _DEEP - 1 for place in spread)
    enough_files = len(files) >= _ENOUGH and (len(spread) >= _ENOUGH or deep) and not _is_copied(one, other, spread)
    if commits >= _ENOUGH or enough_files:
        return _Tie(SHARED, 10 * commits + len(files))
    points = 2 * _is_worktree(one, other) + max(_called_alike(one, other, common), _called_alike(other, one, common))
    points += bool(commits) + bool(files)
    return _Tie(NAME, points) if points >= _ENOUGH else None


def _shared_commits(some: Collection[str], others: Collection[str]) -> int:
    """Return how many commits are in both; one hash may be longer than the other."""
    beginnings = {commit[:_SHORTEST_HASH]: commit for commit in some}
    same = 0
    for other in {commit[:_SHORTEST_HASH]: commit for commit in others}.values():
        commit = beginnings.get(other[:_SHORTEST_HASH])
        same += commit is not None and (commit.startswith(other) or other.startswith(commit))
    return same


def _is_copied(one: _Known, other: _Known, spread: Collection[str]) -> bool:
    """Whether all shared files lie in a folder that both only contain, such as a library that was copied into them."""
    top = _shared_top(spread)
    return bool(top) and all(any(not path.startswith(top) for path in known.files) for known in (one, other)) and (
        _plain(one.name) != _plain(other.name)
    )  # fmt: skip


def _shared_top(places: Collection[str]) -> str:
    """Return the folder at the top that all of these lie in, with a slash; empty if there is none."""
    tops = {place.partition("/")[0] for place in places}
    return f"{tops.pop()}/" if len(tops) == 1 else ""


def _is_worktree(one: _Known, other: _Known) -> bool:
    """Whether one folder is a worktree inside the other."""
    for inner, outer in ((one, other), (other, one)):
        if found := _WORKTREE.match("/".join(inner.way)):
            return found[1] == "/".join(outer.way)
    return False


def _called_alike(one: _Known, other: _Known, common: frozenset[str]) -> int:
    """Return the points for a folder, or one on its way, that is called like another or like its remote."""
    if one.remote:
        return 0
    name = _plain(name_of(other.remote) if other.remote else other.name)
    if not name or name not in map(_plain, one.way):
        return 0
    above = one.way[: next(n for n, part in enumerate(one.way) if _plain(part) == name)]
    places: frozenset[str] = (one.places & other.places) - common
    if other.remote and (owner_of(other.remote) in above or (places and _is_like(owner_of(other.remote), above))):
        return 2
    if other.remote and _is_like(owner_of(other.remote), above) and _plain(one.name) == name:
        return 2
    if one.name in _GENERIC or (_plain(one.name) != name and not one.files & other.files):
        return 0
    words = len(re.findall(r"[a-z0-9]+", one.name))
    places = places if words >= _LONG_NAME else frozenset(place for place in places if _plain(place) != name)
    return 1 + bool(places)


def _is_like(owner: str, above: Iterable[str]) -> bool:
    """Whether a folder on the way is called nearly like an owner: one name is the beginning of the other."""
    return any(len(part) >= 6 and len(owner) >= 6 and (owner.startswith(part) or part.startswith(owner))
               for part in above)  # fmt: skip


# -- paths and names -------------------------------------------------------------------------------


@lru_cache(maxsize=65_536)
def _is_telling(path: str) -> bool:
    """Whether hardly another repository has a file with this path: it lies in a folder, and not only common names."""
    *folders, file = path.lower().split("/")
    if not folders or not _ELSEWHERE.isdisjoint(folders) or ".." in folders or "components/ui" in path:
        return False
    return any(_is_own(part) for part in (*folders, _stem(file)))


@lru_cache(maxsize=65_536)
def _telling_places(path: str) -> tuple[str, ...]:
    """The folders of a path from the first one that hardly another repository has."""
    folders = path.lower().split("/")[:-1]
    return tuple("/".join(folders[: n + 1]) for n, part in enumerate(folders) if _is_own(part))


def _is_own(name: str) -> bool:
    words = re.findall(r"[a-z0-9]+", name)
    return any(word not in _GENERIC and not word.isdigit() and len(word) > 1 for word in words)


def _stem(file: str) -> str:
    return file.lstrip(".").partition(".")[0]


def _plain(name: str) -> str:
    """Return a name without what people leave out: `git-sync` is `gitsync`."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name.lower()


# -- the result ------------------------------------------------------------------------------------


def _repository(group: _Group) -> Repository:
    members = sorted(group.members, key=lambda known: known.folder.hash)
    remote = _chosen(members)
    made = group.made if len(members) > 1 or remote else FOLDER
    called = Counter(known.name for known in members if known.name and not _is_nested(known))
    called = called or Counter(known.name or known.folder.hash[:8] for known in members)
    name = name_of(remote) if remote else min(called, key=lambda one: (-called[one], one))
    told = {told for known in members for told in (*known.folder.recorded, *([known.remote] if known.remote else ()))}
    names = {name.lower(), *called, *map(name_of, told), *map(without_host, told)}
    return Repository(
        _as_written(name, members), remote, made, tuple(known.folder.id for known in members),
        tuple(sorted(names)),
    )  # fmt: skip


def _chosen(members: list[_Known]) -> str | None:
    """Return the remote of a repository: the newest recorded, else the one that was shown most."""
    recorded = [(time, remote) for known in members for remote, time in known.folder.recorded.items()]
    if recorded:
        return max(recorded)[1]
    votes: Counter[str] = Counter()
    for known in members:
        if known.remote:
            votes[known.remote] += known.folder.shown[known.remote]
    return min(votes, key=lambda remote: (-votes[remote], remote)) if votes else None


def _is_nested(known: _Known) -> bool:
    return _WORKTREE.match("/".join(known.way)) is not None


def _as_written(name: str, members: list[_Known]) -> str:
    """Return a name as a folder spells it, with capital letters."""
    spelled = {part for known in members for part in re.split(r"[/\\]", known.folder.root or "")}
    return min((part for part in spelled if part.lower() == name), default=name)
