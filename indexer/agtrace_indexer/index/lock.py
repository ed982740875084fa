"""One writer at a time: a lock file next to the index, released by the system when its holder dies."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

_PAUSE = 0.02


class Busy(Exception):
    """Another process is writing the index."""

    def __init__(self, lock: Path) -> None:
        super().__init__(f"another agtrace is indexing (it holds {lock}): wait for it, or search what is indexed")


class WriteLock:
    """A context that holds the lock. Raises `Busy` if another process still holds it after `patience` seconds."""

    def __init__(self, database: Path, patience: float = 0) -> None:
        self._path = database.with_suffix(".lock")
        self._patience = patience
        self._descriptor = -1

    def __enter__(self) -> WriteLock:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        end = time.monotonic() + self._patience
        while True:
            try:
                _lock(self._descriptor)
            except OSError:
                if time.monotonic() >= end:
                    os.close(self._descriptor)
                    raise Busy(self._path) from None
                time.sleep(_PAUSE)
            else:
                return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def reach_disk(folder: Path) -> None:
    """Make a new name in a folder survive a power cut; does nothing on Windows, which has no such call for folders."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
