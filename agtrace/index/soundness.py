"""Whether the index is sound, examined in a separate thread, so that no request for the status waits for it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

from agtrace_indexer.index.opening import is_damage
from msgspec import Struct

from agtrace.index.trouble import damage_in, misread, unusable
from agtrace.problems import IndexUnavailable

_SOUND_SECONDS = 3600
_DAMAGED_SECONDS = 60


class _Look(Struct, frozen=True):
    """The result of an examination, its time (monotonic) and the file."""

    found: IndexUnavailable | None
    at: float
    file: os.stat_result | None


class Soundness:
    """The damage to the index at a path. Safe to use from several threads."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._looking: threading.Thread | None = None
        self._last: _Look | None = None

    def damage(self, *, seconds: float | None, good_for: float = _SOUND_SECONDS) -> IndexUnavailable | None:
        """Return the damage that the last examination found; None if there was none, or none of this file yet.

        The whole index is examined again (2 s per gigabyte of logs) if it was found sound more than `good_for` seconds
        ago, or damaged more than a minute ago or before the file changed. A first result is awaited for this many
        seconds; with None the newest is, however long it takes.
        """
        with self._lock:
            if (self._looking is None or not self._looking.is_alive()) and self._is_due(good_for):
                self._looking = threading.Thread(target=self._look, daemon=True)
                self._looking.start()
            looking = self._looking
        if looking is not None and (seconds is None or self._known() is None):
            looking.join(seconds)
        known = self._known()
        return None if known is None else known.found

    def unusable(self, error: sqlite3.Error | OSError, *, seconds: float | None = None) -> IndexUnavailable:
        """Return why the index can't be used, given an error: it is damaged only if an examination finds that too.

        The examination is awaited as in `damage`.
        """
        if not is_damage(error):
            return unusable(error)
        return self.damage(seconds=seconds, good_for=0) or misread(error)

    def _known(self) -> _Look | None:
        """Return the last examination of the current file."""
        last = self._last
        return last if last is not None and _same(last.file, _status(self._database)) else None

    def _is_due(self, good_for: float) -> bool:
        known = self._known()
        if known is None:
            return True
        age = time.monotonic() - known.at
        if known.found is None:
            return age > good_for
        return age > _DAMAGED_SECONDS or not _same(known.file, _status(self._database), unchanged=True)

    def _look(self) -> None:
        file = _status(self._database)
        if file is not None:
            self._last = _Look(damage_in(self._database), time.monotonic(), file)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _same(one: os.stat_result | None, other: os.stat_result | None, *, unchanged: bool = False) -> bool:
    if one is None or other is None or (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino):
        return False
    return not unchanged or (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
