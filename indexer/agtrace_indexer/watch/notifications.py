"""Notifications of changed files from the system, through the watchdog library."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from agtrace_indexer.logs.discovery import NEVER_ENTERED

_DELETED: list[type[FileSystemEvent]] = [DirDeletedEvent, FileDeletedEvent]
_CHANGED: list[type[FileSystemEvent]] = [
    *_DELETED, DirCreatedEvent, DirMovedEvent, FileCreatedEvent, FileModifiedEvent, FileMovedEvent,
]  # fmt: skip
"""Events that may change a log. Opening and closing files isn't among them, as the runs that follow open some."""

# Its warnings would go to stderr; a run finds what got lost, and failed notifications are set up again.
logging.getLogger("watchdog").addHandler(logging.NullHandler())
warnings.filterwarnings("ignore", module=r"watchdog\.")


class Place(NamedTuple):
    """A folder to be watched."""

    path: str
    whole: bool
    """Whether everything below it counts, or only its own files."""
    identity: tuple[int, int]
    """Device and inode: a different folder may later have the same path."""


def places(roots: Iterable[str]) -> frozenset[Place]:
    """Return the folders of the existing roots: the root itself, or the folder that contains it if it is a file."""
    found = set()
    for root in roots:
        path = os.path.realpath(root)
        whole = os.path.isdir(path)
        with suppress(OSError):
            os.stat(path)
            folder = path if whole else os.path.dirname(path)
            status = os.stat(folder)
            found.add(Place(folder, whole, (status.st_dev, status.st_ino)))
    return frozenset(found)


class Notifications:
    """Calls `changed`, in a separate thread, whenever a file changes in one of the places.

    Changes in `ignored`, or in folders that discovery doesn't enter, are not reported. Raises `OSError` if the system
    has no watches left.
    """

    def __init__(self, places: frozenset[Place], changed: Callable[[], object], ignored: Path) -> None:
        earlier = set(threading.enumerate())
        self._places = places
        self._observer = Observer()
        self._observer.start()
        try:
            for place in sorted(places):
                with suppress(FileNotFoundError):  # from now on it is missing from the places
                    handler = _Handler(place.path, changed, os.path.realpath(ignored))
                    self._observer.schedule(handler, place.path, recursive=place.whole, event_filter=_CHANGED)
            self.check()
        except OSError:
            self.close()
            raise
        self._threads = set(threading.enumerate()) - earlier

    def covers(self, places: frozenset[Place]) -> bool:
        """Whether these are the places, and all threads are still working: moves of some folders end watchdog's."""
        return places == self._places and all(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """Raise `OSError` if the system has no watch left for one more folder.

        If the limit is reached below a root, watchdog silently leaves the folder out: a spare watch, on a folder that
        no root contains, reveals that. It also means that the last watch is never taken from other programs.
        """
        if sys.platform == "linux":
            spare = self._observer.schedule(FileSystemEventHandler(), os.sep, event_filter=_DELETED)
            self._observer.unschedule(spare)

    def close(self) -> None:
        """Give the watches back to the system."""
        self._observer.stop()
        self._observer.join()


class _Handler(FileSystemEventHandler):
    """Reports that something changed below a folder, whatever it was: a run finds out."""

    def __init__(self, folder: str, changed: Callable[[], object], ignored: str) -> None:
        self._folder = folder
        self._changed = changed
        self._ignored = os.path.join(ignored, "")

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event; called by watchdog."""
        if any(self._counts(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path):
            self._changed()

    def _counts(self, path: str) -> bool:
        below = path[len(self._folder) :].split(os.sep)
        return NEVER_ENTERED.isdisjoint(below) and not path.startswith(self._ignored)
