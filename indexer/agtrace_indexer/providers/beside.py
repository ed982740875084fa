"""Reading a small file that an agent keeps next to a log: whatever is wrong with it, the log is read without it."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path, PurePath
from typing import Any

import orjson
from agtrace_schema.patterns import later

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


# -- settings --------------------------------------------------------------------------------------
# The settings files that say how long an agent keeps its logs; nothing is written.

_MOST_BYTES = 1_000_000
_COMMENTS = later(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMAND = later(r"\bagtrace\b")


def settings_in(path: Path) -> dict[str, Any]:
    """Return the settings in a JSON file, which may have comments; nothing for one that can't be read."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return {}
        text = path.read_text("utf-8")
        found = json.loads(_COMMENTS.sub(lambda part: part[1] or "", text))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def runs_agtrace(settings: dict[str, Any]) -> bool:
    """Whether a hook in these settings runs agtrace, which indexes what is new before it answers."""
    return any(map(_COMMAND.search, _commands(settings.get("hooks"), 6)))


def _commands(value: Any, levels: int) -> list[str]:
    """Return the commands in the lists and objects that hooks are made of."""
    if isinstance(value, dict):
        own = value.get("command")
        inner = [command for part in value.values() for command in _commands(part, levels - 1)] if levels else []
        return [own, *inner] if isinstance(own, str) else inner
    return [command for part in value for command in _commands(part, levels - 1)] if isinstance(value, list) else []
