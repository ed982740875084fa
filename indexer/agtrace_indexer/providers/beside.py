"""Reading a small file that an agent keeps next to a log: whatever is wrong with it, the log is read without it."""

from __future__ import annotations

import os
import stat
from pathlib import PurePath
from typing import Any

import orjson

from agtrace_indexer.events.json_values import fields

_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def object_beside(log: PurePath, ending: str, most: int = 64 * 1024) -> dict[str, Any]:
    """Return the JSON object in the regular file of at most so many bytes with a log's name and another ending.

    An empty one if there is none.
    """
    try:
        return fields(orjson.loads(small_file(log.with_name(log.name.partition(".")[0] + ending), most)))
    except (OSError, ValueError):
        return {}


def small_file(path: PurePath, most: int, *, cut: bool = False) -> bytes:
    """Return the content of a small regular file, or with `cut` the beginning of any; nothing for a pipe or a link.

    Raises `OSError`, `ValueError`.
    """
    descriptor = os.open(path, _HOW)
    try:
        found = os.fstat(descriptor)
        wanted = stat.S_ISREG(found.st_mode) and (cut or found.st_size <= most)
        return os.read(descriptor, most) if wanted else b""
    finally:
        os.close(descriptor)
