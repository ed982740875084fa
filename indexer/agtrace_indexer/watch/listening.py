"""What changed below the roots, known without looking: the kernel of Linux tells it (inotify(7)).

It queues an event before the call that changed a file returns. So a change whose event isn't in the queue hasn't
happened, and a process that asks the queue knows as much as one that looks at every file.

That holds for local file systems only: a network file system doesn't tell what other machines write. Nor is it told
what a program writes through a mapping of the file or through another hard link, so whoever listens looks now and then.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agtrace_indexer.logs.discovery import NEVER_ENTERED

_LOCAL = frozenset(
    {
        "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "ntfs3", "overlay", "ramfs",
        "reiserfs", "tmpfs", "vfat", "xfs", "zfs",
    }
)  # fmt: skip
"""File systems that only this machine writes."""

_MOUNTS = Path("/proc/self/mountinfo")
_MOST_WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")
_SHARE = 4
"""At most one in this many of a user's watches is taken: other programs need some."""

_UNKNOWN = (-1, -1)


class Listener:
    """Hears what changes below some roots, from its making on. For one thread at a time.

    Raises `OSError` if it can't: on another system than Linux, on a file system that isn't local, without watches left.
    """

    def __init__(self, roots: Iterable[str], ignored: tuple[str, ...] = ()) -> None:
        """Begin to listen; changes of files whose paths begin with one of `ignored` don't count."""
        if sys.platform != "linux":
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        from inotify_simple import INotify, flags  # type: ignore[import-untyped]

        self._roots, self._ignored = tuple(roots), ignored
        self._file = flags.MODIFY | flags.ATTRIB | flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO
        self._folder = self._file | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
        self._watched: dict[int, tuple[str, tuple[str, ...]]] = {}
        """A folder and the beginnings of the paths that count in it, by watch descriptor."""
        self._left = _watches() // _SHARE
        self._inotify = INotify(nonblocking=True)
        try:
            self._known = self._identities()
            _refuse_remote(self._roots)
            for root in self._roots:
                self._listen_at(root)
        except BaseException:
            self.close()
            raise

    def covers(self, roots: Iterable[str]) -> bool:
        """Whether these are the roots, and still the same files and folders."""
        return tuple(roots) == self._roots and self._identities() == self._known

    def heard(self) -> frozenset[str] | None:
        """Return the paths of the files that changed since the last call; None if anything may have.

        After None, it may no longer hear everything: make a new one.
        """
        changed: set[str] = set()
        for event in self._inotify.read(timeout=0):
            folder, beginnings = self._watched.get(event.wd, ("", ()))
            if not folder or not event.name or event.mask & ~self._file:
                return None  # a folder came, went or moved; a file system was unmounted; events were lost
            path = os.path.join(folder, event.name)
            if path.startswith(beginnings) and not path.startswith(self._ignored):
                changed.add(path)
        return frozenset(changed)

    def close(self) -> None:
        """Give the watches back to the system."""
        self._inotify.close()

    def _identities(self) -> list[tuple[int, int]]:
        return [_identity(root) for root in self._roots]

    def _listen_at(self, root: str) -> None:
        if os.path.isfile(root):
            self._watch(os.path.dirname(root), root)
        folders = [root] if os.path.isdir(root) else []  # one that comes later has another identity
        while folders:
            folder = folders.pop()
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # then no run can list it either
                self._watch(folder, folder)
                with os.scandir(folder) as listing:
                    folders += [entry.path for entry in listing if _is_entered(entry)]

    def _watch(self, folder: str, beginning: str) -> None:
        """Watch a folder before it is listed, so that nothing that comes into it later is missed."""
        descriptor = self._inotify.add_watch(folder, self._folder)
        known, beginnings = self._watched.get(descriptor, (folder, ()))
        if known != folder:
            raise OSError(errno.ELOOP, "a folder has several paths")
        self._watched[descriptor] = (folder, (*beginnings, beginning))
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, "too many folders")


def _is_entered(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.name not in NEVER_ENTERED


def _identity(path: str) -> tuple[int, int]:
    """Return device and inode of what is at a path: another folder may later be there."""
    try:
        status = os.stat(path)
    except OSError:
        return _UNKNOWN
    return status.st_dev, status.st_ino


def _watches() -> int:
    return int(_MOST_WATCHES.read_text())


def _refuse_remote(roots: Iterable[str]) -> None:
    """Raise `OSError` if a root, or something mounted below it, isn't on a local file system."""
    mounts = dict(map(_mount, _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()))
    for root in roots:
        real = os.path.join(os.path.realpath(root), "")
        here = max((point for point in mounts if real.startswith(point)), key=len, default="")
        below = [point for point in mounts if point.startswith(real)]
        if not _LOCAL.issuperset(mounts.get(point, "") for point in (here, *below)):
            raise OSError(errno.EREMOTE, os.strerror(errno.EREMOTE))


def _mount(line: str) -> tuple[str, str]:
    """Return mount point, with a slash at its end, and file system of a line of mountinfo (proc_pid_mountinfo(5))."""
    before, _, after = line.partition(" - ")
    point = before.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
    return os.path.join(point.encode("latin-1").decode("utf-8", "surrogateescape"), ""), after.split(" ")[0]
