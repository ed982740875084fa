"""Which folders belong to one repository: worktrees, clones and former names, joined by what only one repository has.

A folder is what a row of `project` stands for. Pure: the same folders give the same repositories, in whichever order.

- **folder**: one folder by the names that Windows and WSL have for it.
- **remote**: folders whose remote is the same. What a log records of its working directory counts as the remote; else
  what git and forges printed, with two votes, or one if the folder is called like it.
- **shared**: folders that share two commits, or two files in folders that not every repository has (by their paths).
- **name**: a folder that is called like a repository, and lies in a folder called like its owner, has a file or a
  folder in common with it, or is a worktree inside it.

Folders of which logs record different remotes are never joined, whatever else they share: that is what a fork is. In a
home directory or a scratch folder one works on many repositories, so only a recorded remote counts there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from functools import lru_cache
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from agtrace_schema.patterns import later
from msgspec import Struct, field

from agtrace_indexer.events.remotes import name_of, owner_of, without_host
from agtrace_indexer.index.projects import is_scratch, portable

REMOTE, SHARED, NAME, FOLDER = "remote", "shared", "name", "folder"
"""How a repository was joined, the surest way first."""
_SURENESS = {FOLDER: 0, REMOTE: 1, SHARED: 2, NAME: 3}

_ENOUGH = 2
"""The votes for a remote that only outputs show, and the points that join two folders."""
_DEEP = 3
_COMMON = 4
"""A path that folders of this many names have, or more, says nothing about any of them."""
_CROWD = 64
"""More folders than this with one name, file or commit are not compared with each other."""
_SHORTEST_HASH = 7

_WORKTREE = later(r"^(.+?)/(?:\.git/|\.claude/)?\.?worktrees?/[^/]+(?:/.*)?$", re.IGNORECASE)
_ELSEWHERE = frozenset(
    """
    .agents .cache .claude .codex .cursor .gemini .git .github .gitlab .idea .tox .venv .vscode bower_components build
    deps dist extern external node_modules out site-packages
    submodules target third-party third_party thirdparty vendor vendored venv
    """.split()  # noqa: SIM905
)
"""Folders whose files come from other repositories, are generated, or are in most repositories."""
_GENERIC = frozenset(
    """
    __init__ __main__ _app _layout about abstract account activity adapter admin alert android api apis app
    appdelegate application apps architecture array assets auth avatar backend background badge base bin block
    blocks blog breadcrumb build bundle button cache calendar card cart category changelog channel chart chat
    checkout cli client cmd code com comment common component components concern conf config configs configuration
    conftest constants contributing controller controllers core cron crud css custom dao dashboard data database db
    default delegate demo dependencies deploy detail dev development devise dialog doc docker dockerfile docs drawer
    dropdown dto e2e editor email entities env error errors event example examples exception factory favicon
    features feed file filter firebase fixtures flutter folder footer form fragment frontend func functions
    generated global globals go google gradle graph grid group guard handler handlers header heading health hello
    helper helpers hero home hook hooks html http icon images img impl index info infra infrastructure init input
    instrumented integration interfaces internal io ios item items java jest job js json key kotlin label layer
    layout layouts lib library libs license link list loading local locales log logger logging login logo mail
    mailer main makefile manage manager manifest map master menu message meta metric middleware migrate migrations
    mixin mock mocks modal model models module modules my-app myapp nav navbar navigation net next node not-found
    notes notification option order org overview package packages page pages panel parse parser payment pkg
    playwright plugin plugins policy popup post postcss prettier preview prisma private process product production
    products profile progress project projects provider public python queries query queue react readme reducer
    register renderer repo repos repositories repository request requirements resources response rest role root
    route router routers routes rule run runner rust sample samples schema schemas screen scripts search section
    security select serializer server servers service services session sessions settings setup shared show sidebar
    sign signup site skill skills slice slider socket source spec spinner sql src stack state static status step
    store stores storybook stripe style styles supabase svc swagger swift switch tab table tag tailwind task tasks
    template templates test testdata testing tests text theme time toast todo toggle tool tools tooltip translation
    tsconfig type types ui unit update upload url user users util utilities utils validate validation validator
    validators vercel version video view views vite vue web webpack website workspace wrapper
    """.split()  # noqa: SIM905
)
"""Names that files, folders and repositories of all kinds have: alone they say nothing."""
_WORD = later(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_OUTSIDE = ("..", "~", "$", "%")
"""How paths begin that lie in no folder of a repository, but in the user's."""
_LONG_NAME = 3
"""A name of this many words is one that two repositories hardly share."""


class Folder(Struct):
    """What is known of a folder."""

    id: int
    hash: str
    root: str | None
    """Its path; None if logs name only its hash."""
    recorded: dict[str, int] = field(default_factory=dict)
    """The remotes that logs record -> when that was last so (ms)."""
    shown: dict[str, int] = field(default_factory=dict)
    """The remotes that git and forges printed -> how often."""
    commits: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Paths of touched files, relative to the folder, with `/`."""


class Repository(Struct, frozen=True):
    """Folders that belong together."""

    name: str
    remote: str | None
    made: str
    folders: tuple[int, ...]
    """The ids of its folders, in the order of their hashes."""
    names: tuple[str, ...]
    """All its names, in lower case: with and without its owner, those of its folders, and former ones."""


class _Known(Struct):
    """A folder with what follows from it."""

    folder: Folder
    way: tuple[str, ...] = ()
    """The names on its path, in lower case, its own the last."""
    plain: tuple[str, ...] = ()
    """The same without what people leave out (`_plain`)."""
    remote: str | None = None
    commits: frozenset[str] = frozenset()
    """Those that another folder has too, as far as the beginnings of their hashes tell."""
    files: frozenset[str] = frozenset()
    """Files that another folder has too, and that hardly another repository has."""
    scratch: bool = False
    outer: tuple[str, ...] = ()
    """The `way` of the folder in which it is a worktree."""
    seen: set[str] = field(default_factory=set)
    """What `places` returned."""

    @property
    def name(self) -> str:
        return self.way[-1] if self.way else ""

    def places(self) -> Set[str]:
        """Return the folders of its files, and those above them."""
        if not self.seen:
            for place in {path.rpartition("/")[0] for path in self.folder.files}:
                while place and place not in self.seen:
                    self.seen.add(place)
                    place = place.rpartition("/")[0]
        return self.seen


class _Group(Struct):
    """Folders joined so far."""

    members: list[_Known]
    recorded: list[frozenset[str]] = field(default_factory=list)
    """The recorded remotes of its members that have any."""
    made: str = FOLDER

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
    given = sorted(folders, key=lambda folder: folder.hash)
    files = _in_several(folder.files for folder in given)
    commits = _in_several([commit[:_SHORTEST_HASH] for commit in folder.commits] for folder in given)
    known = [_known(folder, files, commits) for folder in given]
    groups = {one.folder.id: _Group([one], [frozenset(one.folder.recorded)] if one.folder.recorded else [])
              for one in known}  # fmt: skip
    at: dict[str, _Known] = {}
    for one in known:
        if place := place_of(one.folder.root or ""):
            _join(groups, at.setdefault(place, one), one, FOLDER)
    _join_remotes(known, groups)
    ties = _ties([one for one in known if not one.scratch])
    for made in (SHARED, NAME):
        _join_ties(made, ties, groups)
    found = {id(group): group for group in groups.values()}
    return [_repository(group) for group in found.values()]


def _in_several(collections: Iterable[Collection[str]]) -> frozenset[str]:
    """Return what several collections contain."""
    counts = Counter(chain.from_iterable(map(frozenset, collections)))
    return frozenset(text for text, count in counts.items() if count > 1)


def place_of(path: str) -> str:
    """Return what all names of a folder have in common, without a slash at its end; Windows ignores case."""
    place = portable(path).rstrip("/")
    return place.casefold() if place[1:2] == ":" or place[:2] == "//" else place


def _known(folder: Folder, shared: frozenset[str], commits: frozenset[str]) -> _Known:
    path = portable(folder.root or "")
    scratch = bool(path) and is_scratch(path)
    way = tuple(part.lower() for part in path.split("/") if part and not part.endswith(":"))
    files = frozenset(path for path in shared.intersection(folder.files) if not scratch and _is_telling(path))
    remote = _remote_of(folder, way, scratch=scratch)
    same = frozenset(commit for commit in folder.commits if commit[:_SHORTEST_HASH] in commits)
    nested = _WORKTREE.match("/".join(way))
    outer = tuple(nested[1].split("/")) if nested else ()
    return _Known(folder, way, tuple(map(_plain, way)), remote, same, files, scratch, outer)


def _remote_of(folder: Folder, way: tuple[str, ...], *, scratch: bool) -> str | None:
    """Return the remote of a folder: the newest that a log records, else the one that outputs agree on."""
    if folder.recorded:
        return max(folder.recorded, key=lambda remote: (folder.recorded[remote], remote))
    if scratch or not folder.shown:
        return None
    called = {remote for remote in folder.shown if way and _plain(way[-1]) == _plain(name_of(remote))}
    votes = sorted(folder.shown.items(), key=lambda vote: (-vote[1], vote[0] not in called, vote[0]))
    best, count = votes[0]
    rivals = {remote for remote, others in votes[1:] if others == count}
    if rivals and (best not in called or rivals & called):
        return None
    return best if count >= _ENOUGH or best in called else None


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
    ties_of: dict[int, list[tuple[_Known, _Tie]]] = defaultdict(list)
    for one, other, tie in wanted:
        ties_of[one.folder.id].append((other, tie))
        ties_of[other.folder.id].append((one, tie))
    for one, other, tie in wanted:
        if not _is_torn(one, other, tie, ties_of, groups) and not _is_torn(other, one, tie, ties_of, groups):
            _join(groups, one, other, made)


def _is_torn(
    one: _Known, other: _Known, tie: _Tie, ties_of: Mapping[int, list[tuple[_Known, _Tie]]], groups: dict[int, _Group]
) -> bool:
    """Whether a folder without a remote is nearly as much tied to a repository of another remote."""
    here, there = groups[one.folder.id], groups[other.folder.id].remotes
    if here is groups[other.folder.id] or here.remotes or not there:
        return False
    rivals = (rival for member in here.members for rival in ties_of.get(member.folder.id, ()))
    return any(
        2 * weight > tie.weight and (remotes := groups[its.folder.id].remotes) and there.isdisjoint(remotes)
        for its, (_, weight) in rivals
    )


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
    for one, other in _candidates(known, common):
        if one.remote is None or one.remote != other.remote:
            pairs[one.folder.id, other.folder.id] = (one, other)
    result = {}
    for ids, (one, other) in pairs.items():
        if tie := _tie(one, other, common):
            result[ids] = (one, other, tie)
    return result


def _candidates(known: list[_Known], common: frozenset[str]) -> Iterator[tuple[_Known, _Known]]:
    """Yield pairs of folders with something in common: a commit, a file, a name; of a crowd, those next to each other.

    A worktree is always compared with the folder that it lies in.
    """
    marks: dict[tuple[str, str], list[_Known]] = defaultdict(list)
    for one in known:
        own = {("commit", commit[:_SHORTEST_HASH]) for commit in one.commits}
        own |= {("file", path) for path in one.files - common}
        own |= {("name", name) for name in (*one.plain, *([_plain(name_of(one.remote))] if one.remote else ()))}
        for mark in own:
            marks[mark].append(one)
    for alike in marks.values():
        yield from combinations(alike, 2) if len(alike) <= _CROWD else pairwise(alike)
    at = {one.way: one for one in known}
    for one in known:
        if one.outer and (outer := at.get(one.outer)):
            yield (one, outer) if one.folder.hash < outer.folder.hash else (outer, one)


def _common_paths(known: list[_Known]) -> frozenset[str]:
    """Return the paths that folders of many names have."""
    by_name: dict[str, set[str]] = defaultdict(set)
    for one in known:
        by_name[one.name] |= one.files
    counts = Counter(chain.from_iterable(by_name.values()))
    return frozenset(path for path, count in counts.items() if count >= _COMMON)


def _tie(one: _Known, other: _Known, common: frozenset[str]) -> _Tie | None:
    """Return what ties two folders together; None if it isn't enough."""
    commits = _shared_commits(one.commits, other.commits)
    files = (one.files & other.files) - common
    placed = {path for path in files if any(map(_is_own, path.split("/")[:-1]))}
    spread = {path.rpartition("/")[0] for path in placed}
    deep = any(place.count("/") >= _DEEP - 1 for place in spread)
    enough_files = len(placed) >= _ENOUGH and (len(spread) >= _ENOUGH or deep) and not _is_copied(one, other, spread)
    if commits >= _ENOUGH or enough_files:
        return _Tie(SHARED, 10 * commits + len(files))
    is_worktree = one.outer == other.way if one.outer else bool(other.outer) and other.outer == one.way
    points = 2 * is_worktree + max(_called_alike(one, other), _called_alike(other, one))
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
    tops = {place.partition("/")[0] for place in spread}
    return len(tops) == 1 and _plain(one.name) != _plain(other.name) and all(
        any(path.partition("/")[0] not in tops and _is_telling(path) for path in known.folder.files)
        for known in (one, other)
    )  # fmt: skip


def _called_alike(one: _Known, other: _Known) -> int:
    """Return the points for a folder, or one on its way, that is called like another or like its remote."""
    if one.remote:
        return 0
    name = _plain(name_of(other.remote)) if other.remote else (other.plain or ("",))[-1]
    if not name or name not in one.plain:
        return 0
    same, above = one.plain[-1] == name, one.way[: one.plain.index(name)]
    if other.remote and owner_of(other.remote) in above:
        return 2
    if other.remote and _is_like(owner_of(other.remote), above) and (same or _shared_places(one, other)):
        return 2
    if one.name in _GENERIC or not (same or one.files & other.files):
        return 0
    places = _shared_places(one, other)
    if len(re.findall(r"[a-z0-9]+", one.name)) < _LONG_NAME:  # many a folder of sources is called like its repository
        places = {place for place in places if _plain(place) != name}
    return 1 + bool(places)


def _shared_places(one: _Known, other: _Known) -> set[str]:
    """Return the folders of files that both have, and that hardly another repository has."""
    return {place.lower() for place in one.places() & other.places() if _is_telling(f"{place}/") and
            _is_own(place.rpartition("/")[2])}  # fmt: skip


def _is_like(owner: str, above: Iterable[str]) -> bool:
    """Whether a folder on the way is called nearly like an owner: one name is the beginning of the other."""
    return any(len(part) >= 6 and len(owner) >= 6 and (owner.startswith(part) or part.startswith(owner))
               for part in above)  # fmt: skip


# -- paths and names -------------------------------------------------------------------------------


@lru_cache(maxsize=65_536)
def _is_telling(path: str) -> bool:
    """Whether hardly another repository has a file with this path: it lies in a folder, and not only common names."""
    *folders, file = path.split("/")
    if not folders or folders[0].startswith(_OUTSIDE) or not _ELSEWHERE.isdisjoint(path.lower().split("/")[:-1]):
        return False
    return "components/ui" not in path and any(map(_is_own, (*folders, file.lstrip(".").partition(".")[0])))


@lru_cache(maxsize=65_536)
def _is_own(name: str) -> bool:
    """Whether a name has a word that isn't generic; `DemoApplication` is two words."""
    words = (word.lower() for word in _WORD.findall(name))
    return any(len(word) > 1 and not word.isdigit() and _GENERIC.isdisjoint((word, word.removesuffix("s")))
               for word in words)  # fmt: skip


@lru_cache(maxsize=16_384)
def _plain(name: str) -> str:
    """Return a name without what people leave out: `git-sync` is `gitsync`."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name.lower()


# -- the result ------------------------------------------------------------------------------------


def _repository(group: _Group) -> Repository:
    members = sorted(group.members, key=lambda known: known.folder.hash)
    remote = _chosen(members)
    made = max(group.made, REMOTE if remote else FOLDER, key=_SURENESS.__getitem__)
    called = Counter(known.name for known in members if known.name and not known.outer)
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


def _as_written(name: str, members: list[_Known]) -> str:
    """Return a name as a folder spells it, with capital letters."""
    spelled = {part for known in members for part in re.split(r"[/\\]", known.folder.root or "")}
    return min((part for part in spelled if part.lower() == name), default=name)
