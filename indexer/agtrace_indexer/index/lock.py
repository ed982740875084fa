"""One writer at a time: a lock file next to the index, released by the system when its holder dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE = 0.02


class Busy(Exception):
    """Another process is writing the index."""

    def __init__(self, lock: Path) -> None:
        super().__init__(f"another agtrace is indexing (it holds {lock}): wait for it, or search what is indexed")


@contextmanager
def write_lock(database: Path, patience: float = 0) -> Iterator[None]:
    """Hold the lock of an index. Raise `Busy` if another process still holds it after `patience` seconds."""
    path = database.with_suffix(".lock")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    end = time.monotonic() + patience
    try:
        while True:
            try:
                _lock(descriptor)
                break
            except OSError:
                if time.monotonic() >= end:
                    raise Busy(path) from None
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


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
