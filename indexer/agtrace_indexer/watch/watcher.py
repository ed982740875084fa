"""Which files change below the roots, as the system reports it through the watchdog library.

Reports come from a thread: mostly within a millisecond of a change, under load some ten, and up to half a second while
a file is moved out of the roots. None come of what another machine writes, or a program through a mapping of a file or
another hard link: whoever watches looks at everything once in a while.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from pathlib import Path

from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from agtrace_indexer.index.catalog import Catalog, identity, own_files
from agtrace_indexer.index.opening import Busy
from agtrace_indexer.logs.discovery import NEVER_ENTERED, linked_folders
from agtrace_indexer.run import Summary, index

_EVENTS: list[type[events.FileSystemEvent]] = [
    events.DirAttribEvent, events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent,
    events.FileAttribEvent, events.FileCreatedEvent, events.FileDeletedEvent, events.FileModifiedEvent,
    events.FileMovedEvent,
]  # fmt: skip
"""Opening and closing files isn't among them, as the runs that follow open some."""

_LOCAL = frozenset(
    {
        "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "ntfs3", "overlay", "ramfs",
        "reiserfs", "tmpfs", "vfat", "xfs", "zfs",
    }
)  # fmt: skip
"""File systems that only this machine writes."""

_MOUNTS = Path("/proc/self/mountinfo")

# In seconds.

_ROOTS = 2.0
"""Time between two checks for a root that appeared or vanished, which nothing reports: a stat each."""

LOOK_ALONE = 3.0
"""The longest wait where nothing is reported."""

_AGAIN = 60.0
"""Time until watching is tried again where it wasn't possible."""


class _Losses(logging.Handler):
    """Counts the warnings of watchdog, which says only there that events were lost. None goes to stderr.

    Safe to use from several threads: a handler emits under its lock.
    """

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


_losses = _Losses(logging.WARNING)
logging.getLogger("watchdog").addHandler(_losses)
logging.getLogger("watchdog").propagate = False
warnings.filterwarnings("ignore", module=r"watchdog\.")


class Watcher:
    """Watches everything below the roots of an index, and below `otherwise` if it has none or isn't there yet.

    `problem` says why that isn't possible: on a network file system (as far as that is known, on Linux), or without
    watches left. Changes of the index's own files, and in folders that discovery doesn't enter, don't count.
    """

    def __init__(self, database: Path, otherwise: Iterable[str] = ()) -> None:
        self.problem: str | None = None
        self._database, self._otherwise = database, list(otherwise)
        own = own_files(database)
        self._ignored = (*own, *map(os.path.realpath, own))
        self._lock = threading.Lock()
        self._files: set[str] = set()
        self._folders = False
        """Whether a folder changed, with everything in it."""
        self._roots: list[tuple[str, tuple[int, int] | None]] = []
        """The roots and their identities."""
        self._observer: BaseObserver | None = None
        self._threads: list[threading.Thread] = []
        self._lost, self._failed = 0, float("-inf")
        self._reported, self._ended = threading.Event(), False

    def renew(self) -> None:
        """Watch from now on: call it before looking at the logs, so that nothing in between is missed."""
        if not self._ended:
            self._reported.clear()
        roots = self._current_roots()
        self.changed(roots)
        if not self.covers(roots):
            self.close()
            if time.monotonic() - self._failed < _AGAIN:
                return
            try:
                self._start(roots)
                self.problem = None
            except OSError as error:
                self._failed, self.problem = time.monotonic(), error.strerror
        with self._lock:
            self._folders = True

    def covers(self, roots: Iterable[str]) -> bool:
        """Whether these are the roots, still the same files and folders, and every change of them is reported."""
        if self._observer is None or self._lost != _losses.count:
            return False
        known = self._roots == [(root, identity(root)) for root in roots]
        return known and all(thread.is_alive() for thread in self._threads)

    def changed(self, roots: Iterable[str]) -> frozenset[str] | None:
        """Return the paths of the files below the roots that changed since the last call; None if any may have.

        That is so at the first call, after lost events, if a folder came, went or moved, and unless it `covers` them.
        """
        with self._lock:
            files, folders = frozenset(self._files), self._folders
            self._files, self._folders = set(), False
        observer = self._observer
        if folders and observer is not None:
            try:
                _refuse_full(observer)
            except OSError:
                self._lost = -1
        return None if folders or not self.covers(roots) else files

    def wait(self, seconds: float) -> bool:
        """Return whether something has changed since `renew`, at once if so, at last after so many seconds."""
        watched = self._observer is not None
        end = time.monotonic() + (seconds if watched else min(seconds, LOOK_ALONE))
        while (left := end - time.monotonic()) > 0:
            if self._reported.wait(min(left, _ROOTS)):
                return True
            if watched and not self.covers([root for root, _ in self._roots]):
                break
        return False

    def wait_for_quiet(self, seconds: float, at_most: float) -> None:
        """Return when nothing has changed for some time."""
        end = time.monotonic() + at_most
        while (left := min(seconds, end - time.monotonic())) > 0 and not self._ended:
            self._reported.clear()
            if not self._reported.wait(left):
                return

    def end(self) -> None:
        """End the wait that goes on, and any later one at once; from any thread."""
        self._ended = True
        self._reported.set()

    def close(self) -> None:
        """Give the watches back to the system."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def note(self, path: str, *, is_folder: bool) -> None:
        """Note a change, unless it is one of the index itself."""
        if not path.startswith(self._ignored):
            with self._lock:
                self._files.add(path)
                self._folders |= is_folder
            self._reported.set()

    def _start(self, roots: list[str]) -> None:
        known, lost = [(root, identity(root)) for root in roots], _losses.count
        earlier = set(threading.enumerate())
        observer = Observer()
        observer.start()
        try:
            for root in (*roots, *linked_folders(roots)):
                real = os.path.realpath(root)
                _refuse_remote(real)
                folder = real if os.path.isdir(real) else os.path.dirname(real)
                with suppress(FileNotFoundError, NotADirectoryError):  # one that comes later has another identity
                    os.stat(real)
                    handler = _Handler(self, real, root)
                    observer.schedule(handler, folder, recursive=folder == real, event_filter=_EVENTS)
            _refuse_full(observer)
        except BaseException:
            observer.stop()
            observer.join()
            raise
        started = set(threading.enumerate()) - earlier
        self._threads = [thread for thread in started if type(thread).__module__.startswith("watchdog.")]
        with self._lock:
            self._roots, self._lost, self._folders, self._observer = known, lost, True, observer
        weakref.finalize(self, observer.stop).atexit = False  # a user of the system has 128 observers or so

    def _current_roots(self) -> list[str]:
        with suppress(sqlite3.Error, OSError):
            if self._database.exists():
                with closing(Catalog(self._database)) as catalog:
                    return catalog.roots() or self._otherwise
        return self._otherwise


class _Handler(events.FileSystemEventHandler):
    """Notes what changes at or below a root, by the paths that the index has: the root may be a link."""

    def __init__(self, watcher: Watcher, real: str, root: str) -> None:
        self._watcher, self._real, self._root = weakref.ref(watcher), real, root

    def dispatch(self, event: events.FileSystemEvent) -> None:
        watcher = self._watcher()
        for path in map(os.fsdecode, (event.src_path, event.dest_path)):
            below = path[len(self._real) :]
            if watcher and path.startswith(self._real) and NEVER_ENTERED.isdisjoint(below.split(os.sep)):
                watcher.note(self._root + below, is_folder=event.is_directory)


def _refuse_full(observer: BaseObserver) -> None:
    """Raise `OSError` if the system has no watch left for one more folder.

    If the limit is reached below a root, watchdog silently leaves the folder out: a spare watch, on a folder that no
    root contains, reveals that. It also means that the last watch is never taken from other programs.
    """
    if sys.platform == "linux":
        nobody = events.FileSystemEventHandler()
        observer.unschedule(observer.schedule(nobody, os.sep, event_filter=[events.DirDeletedEvent]))


def _refuse_remote(real: str) -> None:
    """Raise `OSError` if a path, or something mounted below it, isn't on a local file system."""
    if sys.platform != "linux":
        return
    mounts = dict(map(_mount, _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()))
    folder = os.path.join(real, "")
    here = max((point for point in mounts if folder.startswith(point)), key=len, default="")
    below = [point for point in mounts if point.startswith(folder)]
    if not _LOCAL.issuperset(mounts.get(point, "") for point in (here, *below)):
        raise OSError(errno.EREMOTE, os.strerror(errno.EREMOTE))


def _mount(line: str) -> tuple[str, str]:
    """Return mount point, with a slash at its end, and file system of a line of mountinfo (proc_pid_mountinfo(5))."""
    before, _, after = line.partition(" - ")
    point = before.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
    return os.path.join(point.encode("latin-1").decode("utf-8", "surrogateescape"), ""), after.split(" ")[0]


# -- runs ---------------------------------------------------------------------------------------------

# All in seconds.

_QUIET = 0.3
"""Changes in such quick succession lead to a single run: an agent writes several lines at once."""

_LATEST = 2.0
"""The longest time from a first change to its run, even if changes go on: logs grow for hours without a pause."""

_LOOK = 60.0
"""Time between two runs without a change, since some may not be reported."""

_REST = 10
"""The pause after a run is at least this many times the duration of the quickest run, so that looking at very
many files takes at most a tenth of one processor."""

_PATIENCE = 1.0
"""How long another process may write before waiting for it is reported: a question takes less."""

_RETRY = 5.0
"""Time until a run that failed or met another process is tried again, unless a log changes before that."""


def watch(
    database: Path,
    roots: Iterable[str],
    before: Summary,
    tell: Callable[[str], None],
    keep_days: int | None = None,
    *,
    archive: bool = True,
) -> Generator[tuple[Summary, Summary]]:
    """Keep the index fresh while the iterator is consumed; yield each run that changed something, after the one before.

    `before` is the summary of the run that made the index; `roots` are for an index that has lost its own.
    If another process is writing, wait for it; if a run fails, try again. `tell` gets a sentence about
    either, and another if changes aren't reported; each is told once. `keep_days` and `archive` are as in `run.index`.
    """
    roots = list(roots)
    trouble, looking = None, False
    quickest = 0.0  # seconds of the quickest run, which only had to look; 0 before the first one
    with closing(Watcher(database, roots)) as watcher:
        while True:
            watcher.renew()
            if watcher.problem is not None and not looking:
                looking = True
                tell(f"no change notifications ({watcher.problem}): looking for changes every {LOOK_ALONE:.0f} s")
            problem = None
            try:
                summary = index(database, (), otherwise=roots, patience=_PATIENCE, keep_days=keep_days, archive=archive)
            except Busy:
                problem = "another agtrace is indexing: waiting for it"
            except (OSError, sqlite3.Error) as error:
                problem = f"the logs can't be indexed: {error}; trying again"
            else:
                quickest = min(quickest or summary.seconds, summary.seconds)
                if summary.files_changed or summary.files_seen != before.files_seen:
                    yield before, summary
                before = summary
            if problem is not None and problem != trouble:
                tell(problem)
            trouble = problem
            _rest(watcher, _RETRY if trouble else _LOOK, _REST * quickest)


def _rest(watcher: Watcher, seconds: float, at_least: float) -> None:
    """Return when changes have calmed down, a root has appeared or vanished, or it is time to look again."""
    start = time.monotonic()
    if watcher.wait(seconds):
        watcher.wait_for_quiet(_QUIET, _LATEST)
    else:
        watcher.close()  # a moved folder may no longer be watched: the next run watches anew
    time.sleep(max(start + at_least - time.monotonic(), 0))
