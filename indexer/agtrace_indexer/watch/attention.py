"""Whether the index is still up to date, by what the system reports about logs: no answer needs a look at all files.

Nothing may be missed by that. So an index counts as undisturbed only while all of this holds: the last run wrote
nothing, no event has come since before it began, the roots are the same files and folders, and no other process has
changed the index, the sessions to be forgotten or the rules for secrets. What the system doesn't tell (`listening`), a
run finds that looks at everything once in a while.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.run.versions import Circumstances, circumstances_of
from agtrace_indexer.watch.listening import Listener

LOOK = 60.0
"""Seconds after which a run looks at everything again, and after which listening is tried again if that failed."""


class Attention:
    """Attends to the logs of an index between its runs. Safe to use from several threads."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._catalog: Catalog | None = None
        self._changed: frozenset[str] | None = None
        """The files that changed since the last run began, as far as they were heard of; None if any may have."""
        self._before: Circumstances | None = None
        """The circumstances when the last run began."""
        self._noted: Circumstances | None = None
        """The circumstances since the last run ended, if it found nothing to do."""
        self._given: frozenset[str] | None = None
        """What the last run was given to look at."""
        self._runs = 0
        self._looked = self._failed = float("-inf")
        """When a run looked at everything, and when listening wasn't possible."""

    def is_undisturbed(self) -> bool:
        """Whether the index has everything that was in the logs when this was called; False if that isn't known."""
        with self._lock, suppress(OSError, sqlite3.Error):
            self._hear()
            return self._changed == frozenset() and self._noted is not None and self._circumstances() == self._noted
        return False

    @property
    def look_is_due(self) -> bool:
        """Whether it is time to look at everything, whatever was heard."""
        return time.monotonic() - self._looked > LOOK

    def begin(self) -> frozenset[str] | None:
        """Return which files may have changed since the last run began, for one that begins now; None if any may."""
        with self._lock:
            self._noted, self._runs = None, self._runs + 1
            try:
                self._attend()
            except (OSError, sqlite3.Error, ValueError, LookupError):  # also of what /proc says
                self._turn_away()
                self._failed = time.monotonic()
            self._given = None if self.look_is_due else self._changed
            self._changed = None if self._listener is None else frozenset()
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

    def _attend(self) -> None:
        """Hear what changed, and listen from now on; but not for a first run, which may be the only one."""
        self._hear()
        if self._listener is None and self._runs > 1 and time.monotonic() - self._failed > LOOK:
            self._catalog = Catalog(self._database)
            self._listener = Listener(self._catalog.roots(), self._catalog.own_files)
        self._before = self._circumstances()

    def _hear(self) -> None:
        """Gather what has changed; if that isn't known, stop listening."""
        if self._listener is None or self._catalog is None:
            return
        heard = None
        if self._catalog.is_in_place and self._listener.covers(self._catalog.roots()):
            heard = self._listener.heard()
        if heard is None:
            self._turn_away()
        elif self._changed is not None:
            self._changed |= heard

    def _circumstances(self) -> Circumstances | None:
        return None if self._catalog is None else circumstances_of(self._catalog)

    def _turn_away(self) -> None:
        """Release everything; nothing is known of the logs from now on."""
        if self._listener is not None:
            self._listener.close()
        if self._catalog is not None:
            self._catalog.close()
        self._listener = self._catalog = self._before = self._changed = None
