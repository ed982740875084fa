"""The `.meta.json` beside a sub-agent's log: its role, and what it was started for.

It is read when the log is read from its beginning; a description that comes or changes later isn't seen
before the log is read again. Whatever is wrong with the file, the log is read without it.
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
    """What the file beside a log says; an empty object where there is none, or none that can be read."""
    try:
        return fields(orjson.loads(_content(path.with_name(f"{path.name.partition('.')[0]}.meta.json"))))
    except (OSError, ValueError):
        return {}


def _content(path: PurePath) -> bytes:
    """The content of a regular, small file; of a pipe or a link, nothing."""
    descriptor = os.open(path, _HOW)
    try:
        found = os.fstat(descriptor)
        small = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
        return os.read(descriptor, _LARGEST) if small else b""
    finally:
        os.close(descriptor)
