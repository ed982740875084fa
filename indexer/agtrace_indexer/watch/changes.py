"""Waiting for changes of logs, for somebody who looks at the index again after each."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.watch.notifications import Notifications, places

# All in seconds.

_ROOTS = 2.0
"""Time between two checks for a root that appeared or vanished, for which there is no notification: a stat each."""

_LOOK_ALONE = 3.0
"""The longest wait where the system sends no notifications."""

_AGAIN = 60.0
"""Time after which notifications are tried again if they weren't possible."""


class Changes:
    """Waits until something changes below the roots of an index. For one thread, but for `end`.

    `otherwise` are the roots of an index that has none, or that isn't there yet.
    """

    def __init__(self, database: Path, otherwise: Iterable[str]) -> None:
        self._database, self._otherwise = database, list(otherwise)
        self._roots = self._otherwise
        self._told = threading.Event()
        self._notifications: Notifications | None = None
        self._failed = float("-inf")
        self._ended = False

    def attend(self) -> None:
        """Be told of changes from now on: call it before looking at the logs, so that nothing in between is missed."""
        if not self._ended:
            self._told.clear()
        self._roots = self._current_roots()
        if self._notifications is not None and not self._is_outdated():
            return
        self.close()
        if time.monotonic() - self._failed < _AGAIN:
            return
        try:
            self._notifications = Notifications(places(self._roots), self._told.set, self._database.parent)
        except OSError:  # no watches left
            self._failed = time.monotonic()

    def wait(self, seconds: float) -> None:
        """Return at the next change since `attend`, when a root appears or vanishes, or after so many seconds."""
        end = time.monotonic() + (seconds if self._notifications is not None else min(seconds, _LOOK_ALONE))
        while (left := end - time.monotonic()) > 0:
            if self._told.wait(min(left, _ROOTS)) or self._is_outdated():
                return

    def end(self) -> None:
        """End the wait that goes on, and any later one at once; from any thread."""
        self._ended = True
        self._told.set()

    def close(self) -> None:
        """Give the watches back to the system."""
        if self._notifications is not None:
            self._notifications.close()
            self._notifications = None

    def _is_outdated(self) -> bool:
        return self._notifications is not None and not self._notifications.covers(places(self._roots))

    def _current_roots(self) -> list[str]:
        with suppress(sqlite3.Error, OSError):
            if self._database.exists():
                with closing(Catalog(self._database)) as catalog:
                    return catalog.roots() or self._otherwise
        return self._otherwise
