"""Whether the index is sound, looked at in a thread of its own, so that nobody who asks for health waits for it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.index.opening import is_damage

from agtrace.index.trouble import damage_in, misread, unusable
from agtrace.problems import IndexUnavailable

_SOUND_SECONDS = 3600
_DAMAGED_SECONDS = 60


class _Look(NamedTuple):
    """What was found, when (monotonic), and in which file."""

    found: IndexUnavailable | None
    at: float
    file: os.stat_result | None


class Soundness:
    """What is damaged in the index that lies at a path. Safe to use from several threads."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._looking: threading.Thread | None = None
        self._last: _Look | None = None

    def damage(self, *, seconds: float | None, good_for: float = _SOUND_SECONDS) -> IndexUnavailable | None:
        """What the last look found; None where that was nothing, or there was no look at this file yet.

        All of it is looked at (2 s a gigabyte of logs) where it was found sound `good_for` seconds ago, or damaged a
        minute ago or in a file that was changed since. What is not known yet is waited for, for so many seconds; with
        None the newest look is, however long it takes.
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
        """Why the index can't be used, by an error: it is damaged only if a look at all of it finds so, too.

        That is waited for as in `damage`.
        """
        if not is_damage(error):
            return unusable(error)
        return self.damage(seconds=seconds, good_for=0) or misread(error)

    def _known(self) -> _Look | None:
        """The last look at the file that lies there now."""
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
