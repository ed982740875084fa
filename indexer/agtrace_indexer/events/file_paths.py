"""The files that a tool call names in its arguments, and whether it reads or writes them.

Only arguments whose names say that they are paths count, and the file headers of patches: the text of a shell command
doesn't show which files it touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson
from agtrace_schema.events import ToolCall
from agtrace_schema.patterns import later

from agtrace_indexer.events.commands import SCRIPTING
from agtrace_indexer.events.strings import masked
from agtrace_indexer.events.tools import Tools

_MOST_PATHS = 200
_LONGEST_PATH = 1000
_WRITERS = later(r"write|edit|patch|replace|create|update|delete|remove|move|rename|insert|save", re.I)
_OF_PATCHES = frozenset({"input", "patch", "patchText"})
"""Arguments that contain a patch; without one of these, the names of arguments may be the changed files."""

_PATCHED = later(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.M)
_PATCHED_IN_SCRIPT = later(
    r"(?:^|([\"'`])|(?<!\\)\\n)\*\*\* (?:(?:Add|Update|Delete) File|Move to): ((?:(?!\1)[^\\\n]|\\[^n])+)", re.M
)
"""The same in a script of Codex's code mode, in which a patch is a string with escapes, or one string a line."""


def touched(call: ToolCall, tools: Tools) -> dict[str, str]:
    """Return the paths that a call names, each with `read` or `write`."""
    found = dict(_patched(call)) if "patch" in call.name or call.name in tools.patching else {}
    if not found and isinstance(call.arguments, dict):
        named = _named(call.arguments, tools.paths)
        found = dict.fromkeys(named, _access(call.name, tools.editing)) if named else {}
    return found if len(found) <= _MOST_PATHS else dict(islice(found.items(), _MOST_PATHS))


def _named(arguments: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    given = [arguments[name] for name in names if name in arguments]
    return [path for path in given if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and "\n" not in path]


@lru_cache(maxsize=256)
def _access(tool: str, editing: frozenset[str]) -> str:
    """Return whether a tool reads or writes the files that its calls name."""
    return "write" if tool in editing or _WRITERS.search(tool) else "read"


def _patched(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Return the files of a patch in Codex's format; for a `changes` object, its keys."""
    arguments = call.arguments
    if isinstance(arguments, dict) and "patch" in call.name:
        arguments = arguments.get("changes", arguments)
        if isinstance(arguments, dict) and _OF_PATCHES.isdisjoint(arguments):
            yield from ((path, "write") for path in arguments if "/" in path or "." in path)
            return
    for text in _texts(arguments):
        if "*** " in text:
            in_patch = (match[1] or match[2] for match in _PATCHED.finditer(text))
            for path in _in_script(text) if call.name == SCRIPTING else in_patch:
                yield masked(path)[:_LONGEST_PATH], "write"


def _in_script(text: str) -> Iterator[str]:
    for match in _PATCHED_IN_SCRIPT.finditer(text):
        if "${" in match[2]:
            continue
        try:
            yield str(orjson.loads(f'"{match[2].strip()}"'))
        except orjson.JSONDecodeError:
            yield match[2].strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (str, list)):
                yield from _texts(inner)
