"""Whether the index is still up to date, without a look at all files before every answer.

What is promised: an answer has every append to the logs that were last worked on, and every new file in their folders,
if the write returned before the request came, because each answer compares these with a `stat` (`_MOST`). Anything else
is known as soon as the system has reported it (`watcher`), some milliseconds later. Once a minute, after lost events,
and where the system reports nothing, a run looks at everything.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agtrace_indexer import redact
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.tombstones import stamp

if TYPE_CHECKING:
    from agtrace_indexer.watch.watcher import Watcher

LOOK = 60.0
"""Seconds after which a run looks at everything again."""

_MOST = 32
"""The number of logs and containers, the last ones that changed, whose state is compared before every answer."""

_PARTS = 4
"""The parts of a log's stamp (`logs.discovery.Found`), of which the second is when the log was last written to."""

_TICK = 20_000_000
"""Nanoseconds within which two changes may leave the same time behind: file systems count in steps of up to 10 ms."""

_Stamp: TypeAlias = tuple[int, ...]
"""Size, times of the last change of content and of anything, and inode; empty for a file that isn't there."""

_Circumstances: TypeAlias = tuple[int, str, str]
"""The state of the index, the stamp of the tombstones and the digest of the rules for secrets: if neither these nor the
logs have changed since a run that found nothing to do, neither does the next one."""


class ChangeTracker:
    """Knows which logs of an index have changed between its runs. Safe to use from several threads.

    An index counts as current only while all of this holds: the last run found nothing to do, nothing has changed since
    before it began, the roots are the same files and folders, and no other process has changed the index, the sessions
    to be forgotten or the rules for secrets.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None
        self._starting: threading.Thread | None = None
        self._catalog: Catalog | None = None
        self._changed: frozenset[str] | None = None
        """The files that changed since the last run began, as far as that is known; None if any may have."""
        self._recent: dict[str, _Stamp | None] = {}
        """The logs that were last worked on and their folders, with what shows whether they have changed."""
        self._before: _Circumstances | None = None
        """The circumstances when the last run began."""
        self._noted: _Circumstances | None = None
        """The circumstances since the last run ended, if it found nothing to do."""
        self._given: frozenset[str] | None = None
        """What the last run was given to look at."""
        self._runs = 0
        self._looked = float("-inf")
        """When a run looked at everything."""

    def is_current(self) -> bool:
        """Whether the index has what was in the logs when this was called, as promised; False if that isn't known."""
        with self._lock, suppress(OSError, sqlite3.Error):
            self._gather()
            return self._changed == frozenset() and self._noted is not None and self._circumstances() == self._noted
        return False

    @property
    def look_is_due(self) -> bool:
        """Whether it is time to look at everything, whatever was reported."""
        return time.monotonic() - self._looked > LOOK

    def begin(self) -> frozenset[str] | None:
        """Return which files may have changed since the last run began, for one that begins now; None if any may."""
        with self._lock:
            last, self._given, self._noted, self._runs = self._given, None, None, self._runs + 1
            try:
                self._gather()
                self._start()
                self._before = self._circumstances()
                self._given = None if self.look_is_due else self._changed
                self._remember(anew=last is None or self._given is None)
            except (OSError, sqlite3.Error):
                self._given = self._before = None
                self._close()
            self._changed = frozenset()
            return self._given

    def end(self, *, well: bool) -> None:
        """Note that the run has ended; if not well, what it was to find still has to be found."""
        with self._lock:
            if not well:
                given, since = self._given, self._changed
                self._changed = None if given is None or since is None else given | since
                return
            if self._given is None:
                self._looked = time.monotonic()
            with suppress(OSError, sqlite3.Error):
                after = self._circumstances()
                self._noted = after if after == self._before else None

    def _start(self) -> None:
        """Watch from now on, in a thread, if nothing does; but not for a first run, which may be the only one.

        Where it isn't known which file systems are remote, every run looks at everything.
        """
        if self._runs == 1 or sys.platform != "linux":
            return
        if self._catalog is None or not self._catalog.is_in_place:
            self._close()
            self._catalog = Catalog(self._database)
        covered = self._watcher is not None and self._watcher.covers(self._catalog.roots())
        if not covered and not (self._starting and self._starting.is_alive()):
            self._starting = threading.Thread(target=self._watch, daemon=True)
            self._starting.start()

    def _watch(self) -> None:
        from agtrace_indexer.watch.watcher import Watcher

        watcher = self._watcher or Watcher(self._database)
        watcher.renew()
        self._watcher = watcher

    def _gather(self) -> None:
        """Note what has changed since this was last called, as far as that is known."""
        reported = None
        if self._watcher is not None and self._catalog is not None and self._catalog.is_in_place:
            reported = self._watcher.changed(self._catalog.roots())
        now = {path: _stamp(path) for path in self._recent}
        different = {path for path, stamp in now.items() if stamp is None or stamp != self._recent[path]}
        self._recent = now
        if reported is None or self._changed is None or any(map(os.path.isdir, different)):
            self._changed = None
        else:
            self._changed |= reported | different

    def _remember(self, *, anew: bool) -> None:
        """Determine which logs were last worked on: anew by the index, or those that changed in addition.

        What is known of a log already stays, as it is from before the run.
        """
        if self._catalog is None:
            return
        files = _last_changed(self._catalog) if anew else self._given or ()
        within = tuple(os.path.join(root, "") for root in self._catalog.roots())
        folders = [os.path.dirname(path) for path in files if path.startswith(within)]
        new = {path: self._recent[path] if path in self._recent else _stamp(path) for path in (*files, *folders)}
        self._recent = new if anew else self._recent | new

    def _close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _circumstances(self) -> _Circumstances | None:
        catalog = self._catalog
        return None if catalog is None else (catalog.state, stamp(catalog.path), redact.digest())


def _last_changed(catalog: Catalog) -> list[str]:
    """Return the files of the logs and containers that changed last, as far as the index knows."""
    times: dict[tuple[str, ...], int] = {}
    for path, known in catalog.known().items():
        if known.status == "container":
            files = path, f"{path}-wal"
            times[files] = max(map(_changed_at, files))
        elif not known.gone and len(stamp := known.stamp.rsplit("/", 3)) == _PARTS and stamp[1].isdigit():
            times[path,] = int(stamp[1])
    return [file for files in nlargest(_MOST, times, key=times.__getitem__) for file in files]


def _changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def _stamp(path: str) -> _Stamp | None:
    """Return what differs after each change of a file or folder; None so soon after one that it might not."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    if abs(time.time_ns() - status.st_ctime_ns) < _TICK:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
