"""Keeping the index fresh: a run soon after logs change, triggered by notifications or by looking."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from queue import Empty, SimpleQueue

from msgspec import Struct

from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.lock import Busy
from agtrace_indexer.run import Summary, index
from agtrace_indexer.watch.notifications import Notifications, places

# All in seconds.

_QUIET = 0.3
"""Changes in such quick succession lead to a single run: an agent writes several lines at once."""

_LATEST = 2.0
"""The longest time from a first change to its run, even if changes go on: logs grow for hours without a pause."""

_ROOTS = 2.0
"""Time between two checks for a root that appeared or vanished, for which there is no notification: a stat each."""

_LOOK = 60.0
"""Time between two runs without a notification: network file systems send none, and others may lose some."""

_LOOK_ALONE = 3.0
"""The same without any notifications."""

_REST = 10
"""The pause after a run is at least this many times the duration of the quickest run, so that looking at very
many files takes at most a tenth of one processor."""

_PATIENCE = 1.0
"""How long another process may write before waiting for it is reported: a question takes less."""

_LONG_PATIENCE = 60.0
"""How long to wait from then on before the logs are compared again."""

_RETRY = 5.0
"""Time until a failed run is tried again, unless a log changes before that."""


class Change(Struct, frozen=True):
    """A run that changed something, with the differences in the index since the previous one; negative means fewer."""

    summary: Summary
    files: int
    sessions: int
    events: int


def watch(
    database: Path, roots: Iterable[str], before: Summary, tell: Callable[[str], None], keep_days: int | None = None
) -> Generator[Change]:
    """Keep the index fresh while the iterator is consumed, and yield each run that changed something.

    `before` is the summary of the run that made the index; `roots` are for an index that has lost its own.
    If another process is writing, wait for it; if a run fails, try again. `tell` gets a sentence about
    either, and another if there are no notifications; each is reported once. `keep_days` is as in
    `run.index`.
    """
    watching = _Watching(database, list(roots), tell, keep_days)
    try:
        while True:
            summary = watching.run()
            if summary is not None:
                change = _change(before, summary)
                before = summary
                if change is not None:
                    yield change
            watching.rest()
    finally:
        watching.end()


def _change(before: Summary, after: Summary) -> Change | None:
    files = after.files_seen - before.files_seen
    if not (files or after.files_changed):
        return None
    return Change(after, files, after.sessions - before.sessions, after.events - before.events)


class _Watching:
    """The state kept between two runs."""

    def __init__(
        self, database: Path, roots: list[str], tell: Callable[[str], None], keep_days: int | None = None
    ) -> None:
        self._database, self._keep_days = database, keep_days
        self._roots = self._otherwise = roots
        self._tell = tell
        self._changes: SimpleQueue[None] = SimpleQueue()
        self._notifications: Notifications | None = None
        self._looking = False
        """Whether there are no notifications, so that changes have to be looked for."""
        self._quickest = 0.0
        """Duration in seconds of the quickest run, which only had to look; 0 before the first one."""
        self._pause = _LOOK
        self._trouble: str | None = None

    def run(self) -> Summary | None:
        """Bring the index up to date; return None if that isn't possible now."""
        patience = _LONG_PATIENCE if self._trouble else _PATIENCE
        try:
            self._renew_notifications()
            summary = index(self._database, (), otherwise=self._otherwise, patience=patience, keep_days=self._keep_days)
        except Busy:
            self._put_off("another agtrace is indexing: waiting for it", 0)
            return None
        except (OSError, sqlite3.Error) as error:
            self._put_off(f"the logs can't be indexed: {error}; trying again", _RETRY)
            return None
        self._trouble = None
        self._quickest = min(self._quickest or summary.seconds, summary.seconds)
        self._pause = max(_LOOK_ALONE if self._looking else _LOOK, _REST * self._quickest)
        return summary

    def rest(self) -> None:
        """Return when changes have calmed down, a root has appeared or vanished, or it is time to look again."""
        start = time.monotonic()
        if not self._is_told(start + self._pause):
            self.end()  # a moved folder may no longer be watched: the next run starts new notifications
        time.sleep(max(start + min(_REST * self._quickest, self._pause) - time.monotonic(), 0))
        while not self._changes.empty():  # the run that follows sees these as well
            self._changes.get()

    def end(self) -> None:
        """Release the notifications."""
        if self._notifications is not None:
            self._notifications.close()
            self._notifications = None

    def _is_told(self, end: float) -> bool:
        """Wait for a change until `end`, then until changes calm down; return whether there was one."""
        while (left := end - time.monotonic()) > 0 and not self._is_outdated():
            try:
                self._changes.get(timeout=min(left, _ROOTS))
            except Empty:
                continue
            self._await_quiet(time.monotonic() + _LATEST)
            return True
        return False

    def _await_quiet(self, latest: float) -> None:
        while (left := min(_QUIET, latest - time.monotonic())) > 0:
            try:
                self._changes.get(timeout=left)
            except Empty:
                return

    def _is_outdated(self) -> bool:
        return self._notifications is not None and not self._notifications.covers(places(self._roots))

    def _renew_notifications(self) -> None:
        """Make sure that every existing root is watched: before the run, so that nothing is missed."""
        if self._looking:
            return
        if self._database.exists():
            with closing(Catalog(self._database)) as catalog:
                self._roots = catalog.roots()
        try:
            if self._notifications is None or self._is_outdated():
                self.end()
                folders = places(self._roots)
                self._notifications = Notifications(folders, lambda: self._changes.put(None), self._database.parent)
            else:
                self._notifications.check()
        except OSError as error:
            self.end()
            self._looking = True
            self._tell(f"no change notifications ({error.strerror}): looking for changes every {_LOOK_ALONE:.0f} s")

    def _put_off(self, trouble: str, seconds: float) -> None:
        if trouble != self._trouble:
            self._tell(trouble)
        self._trouble = trouble
        self._pause = seconds
