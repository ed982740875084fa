"""The `.meta.json` next to a sub-agent's log: its role, and the task it was started for.

It is read when the log is read from its beginning; a description that is added or changed later isn't noticed
until the log is read again. Whatever is wrong with the file, the log is read without it.
"""

from __future__ import annotations

import os
import stat
from pathlib import PurePath
from typing import Any

import orjson

from agtrace_indexer.events.json_values import fields

_LARGEST = 64 * 1024
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def description_beside(path: PurePath) -> dict[str, Any]:
    """Return the object in the file next to a log; an empty one if there is no such file or it can't be read."""
    try:
        return fields(orjson.loads(_content(path.with_name(f"{path.name.partition('.')[0]}.meta.json"))))
    except (OSError, ValueError):
        return {}


def _content(path: PurePath) -> bytes:
    """Return the content of a small regular file, and nothing for a pipe or a link."""
    descriptor = os.open(path, _HOW)
    try:
        found = os.fstat(descriptor)
        small = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
        return os.read(descriptor, _LARGEST) if small else b""
    finally:
        os.close(descriptor)
