"""Reading a small file that an agent keeps next to a log: whatever is wrong with it, the log is read without it."""

from __future__ import annotations

import os
import stat
from pathlib import PurePath
from typing import Any

import orjson

from agtrace_indexer.events.json_values import fields

_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def object_in(path: PurePath, most: int) -> dict[str, Any]:
    """Return the JSON object in a regular file of at most so many bytes; an empty one if there is none."""
    try:
        return fields(orjson.loads(_content(path, most)))
    except (OSError, ValueError):
        return {}


def _content(path: PurePath, most: int) -> bytes:
    """Return the content of a small regular file, and nothing for a pipe or a link."""
    descriptor = os.open(path, _HOW)
    try:
        found = os.fstat(descriptor)
        small = stat.S_ISREG(found.st_mode) and found.st_size <= most
        return os.read(descriptor, most) if small else b""
    finally:
        os.close(descriptor)
