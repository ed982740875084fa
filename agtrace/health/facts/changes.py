"""The lines that an edit removed from a file and added to it, for the editing tools of all agents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.events import Json

from agtrace.health.facts.actions import is_shell
from agtrace.health.history import Call

_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PATCH_IN_SCRIPT = re.compile(r'(?<!\\)"\*\*\* Begin Patch\\n(?:[^"\\]|\\.)*+"')
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")
_TELLING_NOTHING = frozenset(
    """
    begin break catch continue default do done else end endif esac except fi finally loop nil none null pass return
    then try
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Change:
    """The change that one call makes to a file, or to a cell of a notebook. Lines are without their indentation."""

    path: str
    cell: str
    removed: frozenset[str]
    """Empty if only the new content is known."""
    added: frozenset[str]
    whole: bool
    """Whether the file or cell has nothing but `added` afterwards."""


def changes(call: Call) -> Iterator[Change]:
    """Yield the changes that a call makes to files; none if it changes no file, or in an unknown way."""
    patch = _patch_of(call)
    if patch is not None:
        yield from _of_patch(patch)
        return
    arguments = call.arguments
    if not isinstance(arguments, dict) or not call.writes:
        return
    of_files = arguments.get("changes")
    if isinstance(of_files, dict):
        yield from (_of_change(path, change) for path, change in of_files.items() if isinstance(change, dict))
        return
    path = _first(arguments, TOOLS.paths)
    edits = arguments.get("edits")
    if path is None:
        return
    if isinstance(edits, list):
        yield _of_edits(path, [edit for edit in edits if isinstance(edit, dict)])
    elif _first(arguments, TOOLS.removed) is not None or _first(arguments, TOOLS.added) is not None:
        yield _of_edits(path, [arguments])
    elif (whole := _first(arguments, TOOLS.contents)) is not None:
        cell = str(arguments.get("cell_id") or "")
        yield Change(path, cell, frozenset(), _telling(whole.splitlines()), whole=True)


def _of_edits(path: str, edits: list[dict[str, Any]]) -> Change:
    """Return the change made by replacements of texts, one after the other."""
    old = [line for edit in edits for line in (_first(edit, TOOLS.removed) or "").splitlines()]
    new = [line for edit in edits for line in (_first(edit, TOOLS.added) or "").splitlines()]
    return _of_lines(path, old, new)


def _of_change(path: str, change: dict[str, Any]) -> Change:
    """Return the change for an entry of `changes` in Codex's first logs: `{add: {content}}` or
    `{update: {unified_diff}}`.
    """
    inner = next((value for value in change.values() if isinstance(value, dict)), change)
    difference = inner.get("unified_diff")
    if isinstance(difference, str):
        lines = [line for line in difference.splitlines() if not line.startswith(("+++ ", "--- "))]
        return _of_lines(path, _marked(lines, "-"), _marked(lines, "+"))
    return Change(path, "", frozenset(), _telling(str(inner.get("content") or "").splitlines()), whole=True)


def _of_patch(patch: str) -> Iterator[Change]:
    """Yield the changes of a patch in Codex's format, one for each file."""
    path, kind, lines = "", "", list[str]()
    for line in [*patch.splitlines(), "*** End Patch"]:
        found = _FILE.match(line)
        if found and found[3]:
            path = found[3].strip()
        elif found or line.startswith("*** End Patch"):
            if kind == "Update":
                yield _of_lines(path, _marked(lines, "-"), _marked(lines, "+"))
            elif kind == "Add":
                yield Change(path, "", frozenset(), _telling(_marked(lines, "+")), whole=True)
            kind, path, lines = (found[1], found[2].strip(), []) if found else ("", "", [])
        else:
            lines.append(line)


def _patch_of(call: Call) -> str | None:
    """Return the patch that a call applies: as its input, in an argument, in a command or in a script; None if none."""
    if "patch" not in call.tool and not is_shell(call):
        return None
    given = call.arguments
    texts = [word for value in (given.values() if isinstance(given, dict) else [given]) for word in _listed(value)]
    return next(filter(None, (patch_in(text) for text in texts if isinstance(text, str))), None)


def patch_in(text: str) -> str | None:
    """Return the patch in Codex's format that a text contains, also within a script; None if there is none."""
    if "*** Begin Patch" not in text:
        return None
    found = _PATCH.search(text)
    return found[0] if found else _in_script(text)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _in_script(text: str) -> str | None:
    """Return the patch in a script, where it is a string with escapes; None if there is none."""
    found = _PATCH_IN_SCRIPT.search(text)
    try:
        return str(orjson.loads(found[0])) if found else None
    except orjson.JSONDecodeError:
        return None


def _of_lines(path: str, old: Iterable[str], new: Iterable[str]) -> Change:
    before, after = Counter(map(str.strip, old)), Counter(map(str.strip, new))
    return Change(path, "", _telling(before - after), _telling(after - before), whole=False)


def _marked(lines: Iterable[str], mark: str) -> list[str]:
    return [line[1:] for line in lines if line.startswith(mark)]


def _telling(lines: Iterable[str]) -> frozenset[str]:
    """Return the significant lines: not those that are blank, only brackets, or a single keyword."""
    return frozenset(line for line in map(str.strip, lines) if _tells(line))


def _tells(line: str) -> bool:
    word = line.strip(" \t{}()[]<>;:,.")
    return any(map(str.isalnum, word)) and word.lower() not in _TELLING_NOTHING


def _first(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)
