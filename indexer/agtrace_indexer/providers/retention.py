"""Reading the settings files that say how long an agent keeps its logs; nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agtrace_schema.patterns import later

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
