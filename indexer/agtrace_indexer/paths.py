"""Which files a tool call names in its arguments: what it reads and what it writes.

Only arguments that are paths by their name count, and the file headers of patches: what a shell
command touches can't be told from its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agtrace_schema.events import ToolCall

_PATH_ARGUMENTS = ("file_path", "notebook_path", "absolute_path", "path", "filePath")
_MOST_PATHS = 200
_LONGEST_PATH = 1000
_WRITERS = re.compile(r"write|edit|patch|replace|create|update|delete|remove|move|rename|insert|save", re.I)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.M)


def touched(call: ToolCall) -> dict[str, str]:
    """The paths that a call names -> `read` or `write`."""
    found = dict(_patched(call)) if _holds_patch(call) else {}
    if not found and isinstance(call.arguments, dict):
        access = "write" if _WRITERS.search(call.name) else "read"
        found = dict.fromkeys(_named(call.arguments), access)
    return dict(list(found.items())[:_MOST_PATHS])


def _named(arguments: dict[str, Any]) -> Iterator[str]:
    for name in _PATH_ARGUMENTS:
        path = arguments.get(name)
        if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and "\n" not in path:
            yield path


def _holds_patch(call: ToolCall) -> bool:
    return "patch" in call.name or call.name in ("shell", "shell_command", "exec_command", "local_shell", "exec")


def _patched(call: ToolCall) -> Iterator[tuple[str, str]]:
    """The files of a patch in Codex's format; of a `changes` object its keys."""
    arguments = call.arguments
    if isinstance(arguments, dict) and "patch" in call.name:
        arguments = arguments.get("changes", arguments)
        if isinstance(arguments, dict) and "input" not in arguments and "patch" not in arguments:
            yield from ((path, "write") for path in arguments if "/" in path or "." in path)
            return
    for text in _texts(arguments):
        if "*** " in text:
            for match in _PATCHED.finditer(text):
                yield (match[1] or match[2])[:_LONGEST_PATH], "write"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (str, list)):
                yield from _texts(inner)
