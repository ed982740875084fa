"""Containers: databases and folders in which some agents keep many logs, with the files that make them up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable

from msgspec import Struct

from agtrace_indexer.logs.discovery import Found

_UNSTAMPED = "-shm"
"""The ending of a file name that even readers of an SQLite database modify."""

_LOG_OF_A_DATABASE = "-wal"


class Container(Struct, frozen=True):
    """A database or a folder that contains several logs."""

    path: str
    files: tuple[Found, ...]
    """The files that make it up, as listed in their directories."""

    @property
    def stamp(self) -> str:
        """A stamp: if it is equal, none of the files has changed."""
        stamps = [file.stamp for file in self.files if not file.path.endswith(_UNSTAMPED)]
        if len(self.files) == 1 and self.files[0].path == self.path:  # a root of its own: nothing next to it was listed
            stamps.append(_stamp_beside(self.path + _LOG_OF_A_DATABASE))
        return hashlib.sha256("\n".join(stamps).encode()).hexdigest()

    @property
    def below(self) -> int:
        """The number of characters of its path that name its root (`Found.below`)."""
        return self.files[0].below


def grouped(found: Iterable[Found], container_of: Callable[[str], str | None]) -> tuple[list[Found], list[Container]]:
    """Return the files that belong to no container, and the containers that the others form.

    `container_of` returns the path of the container that the file at a path belongs to.
    """
    alone: list[Found] = []
    held: dict[str, list[Found]] = {}
    for file in found:
        path = None if file.oddity else container_of(file.path)
        if path is None:
            alone.append(file)
        else:
            held.setdefault(path, []).append(file)
    return alone, [Container(path, tuple(files)) for path, files in held.items()]


def _stamp_beside(path: str) -> str:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return ""
    return f"{status.st_size}/{status.st_mtime_ns}"
