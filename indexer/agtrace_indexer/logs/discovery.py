"""Finding log files below the roots with directory listings and stat alone: nothing is opened here."""

from __future__ import annotations

import hashlib
import heapq
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, permutations
from operator import attrgetter, itemgetter
from typing import TypeAlias

from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

NEVER_ENTERED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".tox"})
"""Names of folders that contain no logs but may contain very many files."""

MOST_OTHERS = 20_000
"""Entries of one folder that are listed, at most, besides folders and what may be a log: each takes 0.5 ms to read."""

_NOT_A_FILE = {
    stat.S_IFIFO: "a named pipe, never opened",
    stat.S_IFSOCK: "a socket, never opened",
    stat.S_IFCHR: "a device, never opened",
    stat.S_IFBLK: "a device, never opened",
    stat.S_IFLNK: "a symbolic link, not followed: index its target by its own path",
}

REPEATS = "the same log as {}, which is read"
"""The oddity of a file that only repeats the log at another path."""

REPLACED = "{}#replaced-{}"
"""The path that a log has in the index when another one has taken its place: its path, and a number."""

ARCHIVE = "archive"
"""The folder with the logs as they were, next to the index."""


class LogFile(Struct, frozen=True, gc=False):
    """A file as listed in its directory."""

    path: str
    stamp: str
    """Size, mtime, ctime, inode: equal stamps mean an unchanged file. ctime reveals a rewrite that
    restored size and mtime."""
    size: int
    mtime_ns: int
    oddity: str | None = None
    """Why it isn't read as a log, as a phrase; None if it is read."""
    below: int = 0
    """The number of characters of `path` that name its root, or a folder in it, which may be a link. No later link is
    followed."""
    container: str = ""
    """The path of the database or folder that contains this log and others; empty for a log in a file of its own."""
    status: str = "skipped"
    """The status of its row if it has an oddity."""
    pieces: tuple[LogFile, ...] = ()
    """The files that it consists of, in order, if its agent goes on in further files."""
    archived: str = ""
    """The file in the archive that is read in its place; empty for a log that its agent still has."""

    @property
    def place(self) -> str:
        """The file that is read: what else is known of the log lies beside it."""
        return self.archived or self.path

    @property
    def cut_off(self) -> bool:
        """Whether its first piece was deleted."""
        return bool(self.pieces) and stem(self.pieces[0].path) != stem(self.path)


class Forms(Struct, frozen=True):
    """The files in which an agent temporarily keeps the same log: the first of them is read, the others repeat it."""

    hint: str
    """A part of the path of every such file: others are told by it at once."""
    patterns: tuple[re.Pattern[str], ...]
    """Match the whole path of a file, with the place and the name of its log, which all files of the log have in
    common, in their groups; those of the first pattern come first."""
    pieces: re.Pattern[str] | None = None
    """Matches the name of a log that may go on in further files, which have the same first group, a `_` after it, and
    the order of their names; None if there are none."""

    def of(self, path: str) -> tuple[tuple[str, str], int] | None:
        """Return the log that a file is a form of, and the rank of this form; None if there can't be others."""
        if self.hint in path:
            for rank, pattern in enumerate(self.patterns):
                if match := pattern.fullmatch(path):
                    return (match[1], match[2]), rank
        return None


def forms(hint: str, *patterns: str, pieces: re.Pattern[str] | None = None) -> Forms:
    """Return the forms with these patterns, in which `/` also stands for the separator of Windows."""
    everywhere = (pattern.replace("[^/", "[^\0").replace("/", r"[/\\]").replace("\0", r"/\\") for pattern in patterns)
    return Forms(hint, tuple(later(pattern, re.DOTALL) for pattern in everywhere), pieces)


IsLog: TypeAlias = Callable[[str], bool]
"""Whether the file at a path may be a log, judging by what is known of it and by its name."""


def walk(roots: Iterable[str], *, follow: bool = False, is_log: IsLog | None = None) -> Iterator[LogFile]:
    """List every file below the roots once, in a stable order.

    Links are listed but not followed, except with `follow` those to `linked_folders`. With `is_log`, of other files at
    most `MOST_OTHERS` in one folder are listed, the first by name; the folder is then listed, too, and says how many
    were left out.
    """
    roots = sorted(roots)
    linked = linked_folders(roots) if follow else []
    real = [os.path.join(os.path.realpath(root), "") for root in roots]
    if any(one.startswith(other) for one, other in permutations(real, 2)):
        yield from _walk_overlapping(roots, linked, is_log)
    else:
        for root in roots:
            yield from _walk_root(root, linked, is_log)
    for folder in linked:
        yield from _walk_folder(folder, linked, is_log)


def linked_folders(roots: Iterable[str]) -> list[str]:
    """Return the links in roots that lead to folders, each folder once; none that is in a root or contains one.

    Users link the folder of a project. No link in such a folder is followed.
    """
    taken = [os.path.join(os.path.realpath(root), "") for root in roots]
    links = []
    for root in sorted(roots):
        for entry in _links(root):
            target = os.path.join(os.path.realpath(entry.path), "")
            if _is_text(entry.path) and not any(target.startswith(one) or one.startswith(target) for one in taken):
                taken.append(target)
                links.append(entry.path)
    return links


def _links(root: str) -> list[os.DirEntry[str]]:
    """Return the links in a folder that lead to folders."""
    try:
        with os.scandir(root) as listing:
            return sorted((entry for entry in listing if entry.is_symlink() and entry.is_dir()), key=attrgetter("name"))
    except OSError:
        return []


def _walk_overlapping(roots: list[str], linked: Collection[str], is_log: IsLog | None) -> Iterator[LogFile]:
    seen: set[str] = set()
    for root in roots:
        real_root = os.path.realpath(root)
        for found in _walk_root(root, linked, is_log):
            real_path = real_root + found.path[len(root) :]
            if real_path not in seen:
                seen.add(real_path)
                yield found


def preferred(files: Collection[LogFile], forms: Sequence[Forms]) -> dict[str, str]:
    """Return the files that only repeat another one: path -> path of the log that is read instead.

    `forms` determine which files are one log, and which of them is preferred (indexer/README.md). An empty file is the
    last choice.
    """
    hints = {form.hint for form in forms}
    maybe = {file.path: file for hint in hints for file in files if hint in file.path}  # quicker than `any` for each
    listed = [form for file in maybe.values() if file.oddity is None for form in _as_form(file, forms)]
    chosen: dict[tuple[str, str], str] = {}
    instead: dict[str, str] = {}
    for log, _, path in sorted(listed, key=itemgetter(1, 2)):
        first = chosen.setdefault(log, path)
        if first != path:
            instead[path] = first
    return instead


def in_pieces(found: Iterable[LogFile], forms: Sequence[Forms], logs: Iterable[str]) -> list[LogFile]:
    """Return the logs that go on in further files, each with its pieces, in the order of their names.

    A log has the path of its first piece, even after that was deleted; `logs` are the paths of those in the index.
    """
    files = {file.path: file for file in found if file.oddity is None}
    further = {log for path in files if "_" in stem(path) and (log := _log_of_piece(path, forms))}
    if not further:
        return []
    pieces: dict[tuple[str, str], list[str]] = {log: [] for log in further}
    for path in sorted({*files, *logs}, key=stem):
        if (log := _log_of_piece(path, forms)) in pieces:
            pieces[log].append(path)
    return [_join_pieces(paths, [files[path] for path in paths if path in files]) for paths in pieces.values()]


def _join_pieces(paths: list[str], pieces: list[LogFile]) -> LogFile:
    """Return a log by the paths of its pieces, with those that there are."""
    first, last = pieces[0], pieces[-1]
    path = first.path if stem(first.path) == stem(paths[0]) else paths[0]
    stamp = "+".join(piece.stamp for piece in pieces)
    size, changed = sum(piece.size for piece in pieces), max(piece.mtime_ns for piece in pieces)
    archived = first.archived if all(piece.archived for piece in pieces) else ""
    return LogFile(path, stamp, size, changed, below=last.below, pieces=tuple(pieces), archived=archived)


def _log_of_piece(path: str, forms: Iterable[Forms]) -> tuple[str, str] | None:
    """Return the log that a file may be a piece of: its place and its id."""
    for form in forms:
        if form.pieces and (log := form.of(path)):
            match = form.pieces.fullmatch(log[0][1])
            return (log[0][0], match[1]) if match else None
    return None


def known_as(path: str, forms: Iterable[Forms]) -> set[tuple[str, str]]:
    """Return what the path of a log has in common with those of its other forms and pieces."""
    found = {log[0] for form in forms if (log := form.of(path))}
    piece = _log_of_piece(path, forms)
    return found if piece is None else found | {piece}


def stem(path: str) -> str:
    """Return the name of a file without its endings."""
    return os.path.basename(path).partition(".")[0]


def has_forms(path: str, forms: Iterable[Forms]) -> bool:
    """Whether other files may repeat the log at a path."""
    return any(form.of(path) for form in forms)


def _as_form(file: LogFile, forms: Iterable[Forms]) -> Iterator[tuple[tuple[str, str], tuple[bool, bool, int], str]]:
    """Yield the log that a file is a form of, the file's rank among its forms, and its path."""
    for form in forms:
        if found := form.of(file.path):
            empty = file.size == 0 and not file.container
            yield found[0], (bool(file.archived), empty, found[1]), file.path
            return


def _walk_root(root: str, linked: Collection[str], is_log: IsLog | None) -> Iterator[LogFile]:
    try:
        status = os.stat(root)
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _walk_folder(root, linked, is_log)
    else:
        yield _log_file(root, status, len(root))


def _walk_folder(root: str, linked: Collection[str], is_log: IsLog | None) -> Iterator[LogFile]:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries, left_out = _entries(folder, is_log)
        except OSError as error:
            yield LogFile(folder, "", 0, 0, f"a folder that can't be listed ({error.strerror})")
            continue
        if left_out:
            yield LogFile(folder, str(left_out), 0, 0, _CROWDED.format(left_out, MOST_OTHERS))
        deeper: list[str] = []
        yield from (file for file in _files_of(entries, deeper, len(root)) if file.path not in linked)
        folders += reversed(deeper)


_CROWDED = "a folder of which {:,} files are not read: more than {:,} in it have names that no agent gives to its logs"


def _entries(folder: str, is_log: IsLog | None) -> tuple[list[os.DirEntry[str]], int]:
    """Return the entries of a folder by name, and how many others there are (`walk`). Raise `OSError`."""
    by_name = attrgetter("name")
    with os.scandir(folder) as listing:
        first = list(islice(listing, MOST_OTHERS))
        if is_log is None or len(first) < MOST_OTHERS:
            return sorted(chain(first, listing), key=by_name), 0
        kept: list[os.DirEntry[str]] = []
        seen = 0

        def others() -> Iterator[os.DirEntry[str]]:
            nonlocal seen
            for entry in chain(first, listing):
                if entry.is_dir(follow_symlinks=False) or is_log(entry.path):
                    kept.append(entry)
                else:
                    seen += 1
                    yield entry

        listed = heapq.nsmallest(MOST_OTHERS, others(), key=by_name)
    return sorted([*kept, *listed], key=by_name), seen - len(listed)


def _files_of(entries: list[os.DirEntry[str]], deeper: list[str], below: int) -> Iterator[LogFile]:
    """Yield the files of a folder; add the folders in it that are to be entered to `deeper`."""
    for entry in entries:
        name = entry.name
        try:
            if not (name.isascii() or _is_text(name)):
                yield LogFile(_as_text(entry.path), "", 0, 0, "its name is not UTF-8: rename it to have it indexed")
            elif not entry.is_dir(follow_symlinks=False):
                yield _log_file(entry.path, entry.stat(follow_symlinks=False), below)
            elif name not in NEVER_ENTERED:
                deeper.append(entry.path)
        except OSError:
            continue  # vanished between listing and stat


def found_at(path: str, root: str) -> LogFile | None:
    """Return a regular file below a root, as `walk` lists it; None if there is none, or not exactly that."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return _log_file(path, status, _below(path, root)) if stat.S_ISREG(status.st_mode) and _is_text(path) else None


def _below(path: str, root: str) -> int:
    """Return the number of characters of a path that name its root, or the folder in it that is a link."""
    name, slash, _ = path[len(root) :].lstrip(os.sep).partition(os.sep)
    folder = os.path.join(root, name)
    return len(folder if slash and os.path.islink(folder) else root)


def _is_text(name: str) -> bool:
    """Whether a file name is valid text: undecodable bytes become lone surrogates."""
    return _as_text(name) == name


def _as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


def _log_file(path: str, status: os.stat_result, below: int) -> LogFile:
    size, changed = status.st_size, status.st_mtime_ns
    kind = stat.S_IFMT(status.st_mode)
    oddity = None if kind == stat.S_IFREG else _NOT_A_FILE.get(kind)
    return LogFile(path, f"{size}/{changed}/{status.st_ctime_ns}/{status.st_ino}", size, changed, oddity, below)


# -- files next to logs that describe their sessions, and change later -------------------------------

Endings: TypeAlias = Sequence[tuple[str, str]]
"""How the path of a log ends, and how that of its sidecar ends in place of it."""


def described(files: list[LogFile], endings: Endings) -> list[LogFile]:
    """Return the files; the stamp of a log begins with that of its sidecar, so a change of either is one of the log."""
    stamps: dict[str, str] = {}
    for log, itself in reversed(endings):  # of two sidecars of a log the first ending counts
        stamps |= {file.path.removesuffix(itself) + log: file.stamp for file in files if file.path.endswith(itself)}
    return [_with(file, stamps[file.path]) if file.path in stamps else file for file in files] if stamps else files


def described_at(path: str, root: str, endings: Endings) -> LogFile | None:
    """Return a regular file below a root, as `described` returns it; None if there is none, or not exactly that."""
    file = found_at(path, root)
    if file is None:
        return None
    others = (found_at(other, root) for other in beside(path, endings))
    return described([file, *filter(None, others)], endings)[0]


def is_sidecar(path: str, endings: Endings) -> bool:
    """Whether a file may describe a log, judging by its name."""
    return path.endswith(tuple(itself for _, itself in endings))


def _with(file: LogFile, sidecar: str) -> LogFile:
    return replace(file, stamp=f"{sidecar}+{file.stamp}")


def beside(path: str, endings: Endings) -> list[str]:
    """Return the paths of the files that may describe a log."""
    return [path.removesuffix(log) + itself for log, itself in endings if path.endswith(log)]


# -- containers ---------------------------------------------------------------------------------------

_UNSTAMPED = "-shm"
"""The ending of a file name that even readers of an SQLite database modify."""

_LOG_OF_A_DATABASE = "-wal"


class Container(Struct, frozen=True):
    """A database or a folder that contains several logs."""

    path: str
    files: tuple[LogFile, ...]
    """The files that make it up, as listed in their directories."""

    @property
    def stamp(self) -> str:
        """A stamp: if it is equal, none of the files has changed."""
        stamps = [file.stamp for file in self.files if not file.path.endswith(_UNSTAMPED)]
        if len(self.files) == 1 and self.files[0].path == self.path:  # a root of its own: nothing next to it was listed
            stamps.append(_stamp_beside(self.path + _LOG_OF_A_DATABASE))
        return hashlib.sha256("\n".join(stamps).encode()).hexdigest()

    @property
    def below(self) -> int:
        """The number of characters of its path that name its root (`Found.below`)."""
        return self.files[0].below


def grouped(
    found: Iterable[LogFile], container_of: Callable[[str], str | None]
) -> tuple[list[LogFile], list[Container]]:
    """Return the files that belong to no container, and the containers that the others form.

    `container_of` returns the path of the container that the file at a path belongs to.
    """
    alone: list[LogFile] = []
    held: dict[str, list[LogFile]] = {}
    for file in found:
        path = None if file.oddity else container_of(file.path)
        if path is None:
            alone.append(file)
        else:
            held.setdefault(path, []).append(file)
    return alone, [Container(path, tuple(files)) for path, files in held.items()]


def _stamp_beside(path: str) -> str:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return ""
    return f"{status.st_size}/{status.st_mtime_ns}"
