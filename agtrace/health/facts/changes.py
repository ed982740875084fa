"""The lines that an edit removed from a file and added to it, for the editing tools of all agents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.events import Json
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.health.facts.actions import SHELLS, command_of, own_name
from agtrace.health.history import Call

# -- edits -----------------------------------------------------------------------------------------
# The edits that a call makes to files, for the editing tools of all agents, as texts that replace others.

_PATCH = later(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PATCH_IN_SCRIPT = later(r'(?<!\\)"\*\*\* Begin Patch\\n(?:[^"\\]|\\.)*+"')
_FILE = later(r"\*\*\* (Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")
_OF_DIFF = ("+++ ", "--- ", "\\ No newline")
_EVERYWHERE = ("replace_all", "replaceAll", "allow_multiple", "AllowMultiple")
_TIMES = ("expected_replacements",)
_AFTER_LINE = ("insert_line", "insertLine")


class Replacement(Struct, frozen=True):
    """A text that replaces another one."""

    old: str
    new: str
    lines: bool = False
    """Whether these are whole lines, without the last one's end."""
    every: bool = False
    """Whether it is replaced wherever it occurs."""
    after: int | str | None = None
    """If `old` is empty: the number of the line after which `new` goes, or the text of that line."""


class Edit(Struct, frozen=True):
    """What one call does to one file, or to a cell of a notebook."""

    path: str
    """As the log names it."""
    cell: str = ""
    replacements: tuple[Replacement, ...] = ()
    whole: str | None = None
    """All that the file or cell has afterwards; None if that isn't known."""
    moved_from: str | None = None
    """Its path before, if the call renames it."""
    deletes: bool = False


def edits(tool: str, arguments: Json, *, writes: bool) -> Iterator[Edit]:
    """Yield what a call does to files; nothing if that isn't known.

    `writes` tells whether it writes the files that its arguments name; the files of a patch are always written.
    """
    patch = _patch_of(tool, arguments)
    if patch is not None:
        yield from _of_patch(patch)
        return
    if not isinstance(arguments, dict) or not writes:
        return
    of_files = arguments.get("changes")
    if isinstance(of_files, dict):
        yield from (_of_change(path, change) for path, change in of_files.items() if isinstance(change, dict))
        return
    path = _first(arguments, TOOLS.paths)
    if path is None:
        return
    several = arguments.get("edits")
    if isinstance(several, list):
        yield Edit(path, replacements=tuple(_replacement(edit) for edit in several if isinstance(edit, dict)))
    elif _first(arguments, TOOLS.removed) is not None or _first(arguments, TOOLS.added) is not None:
        yield Edit(path, replacements=(_replacement(arguments),))
    elif (whole := _first(arguments, TOOLS.contents)) is not None:
        yield Edit(path, str(arguments.get("cell_id") or ""), whole=whole)


def _replacement(edit: dict[str, Any]) -> Replacement:
    """Return the replacement that the arguments of an edit describe."""
    times = [edit[name] for name in _TIMES if isinstance(edit.get(name), int)]
    every = any(edit.get(name) is True for name in _EVERYWHERE) or any(number > 1 for number in times)
    after = next((edit[name] for name in _AFTER_LINE if isinstance(edit.get(name), int)), None)
    old, new = ((_first(edit, names) or "").replace("\r\n", "\n") for names in (TOOLS.removed, TOOLS.added))
    return Replacement(old, new, every=every, after=after)


def _of_change(path: str, change: dict[str, Any]) -> Edit:
    """Return the edit for an entry of `changes` in Codex's first logs: `{add: {content}}` or
    `{update: {unified_diff}}`.
    """
    inner = next((value for value in change.values() if isinstance(value, dict)), change)
    difference = inner.get("unified_diff")
    if isinstance(difference, str):
        lines = [line for line in difference.splitlines() if not line.startswith(_OF_DIFF)]
        return Edit(path, replacements=tuple(_hunks(lines)))
    return Edit(path, whole=str(inner.get("content") or ""))


def _of_patch(patch: str) -> Iterator[Edit]:
    """Yield the edits of a patch in Codex's format, one for each file."""
    path, kind, lines, moved_from = "", "", list[str](), None
    for line in [*patch.splitlines(), "*** End Patch"]:
        match = _FILE.match(line)
        if match and match[3]:
            path, moved_from = match[3].strip(), path
        elif match or line.startswith("*** End Patch"):
            if kind == "Update":
                yield Edit(path, replacements=tuple(_hunks(lines)), moved_from=moved_from)
            elif kind == "Add":
                yield Edit(path, whole="".join(f"{line[1:]}\n" for line in lines if line.startswith("+")))
            elif kind == "Delete":
                yield Edit(path, deletes=True)
            path, kind, lines = (match[2].strip(), match[1], []) if match else ("", "", [])
            moved_from = None
        else:
            lines.append(line)


def _hunks(lines: Iterable[str]) -> Iterator[Replacement]:
    """Yield a replacement for each part of a patch, which `@@` begins, perhaps followed by a line that is before it."""
    anchor: str | None = None
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old or new:
                after = anchor if not old else None
                yield Replacement("\n".join(old), "\n".join(new), lines=True, after=after)
            anchor, old, new = line[2:].strip() or None, [], []
        elif not line.startswith("*** End of File"):
            mark, text = (line[:1], line[1:]) if line else (" ", "")
            old += [text] if mark in " -" else []
            new += [text] if mark in " +" else []


def _patch_of(tool: str, given: Json) -> str | None:
    """Return the patch that a call applies: as its input, in an argument, in a command or in a script; None if none."""
    if "patch" not in tool and own_name(tool) not in SHELLS:
        return None
    texts = [
        word
        for value in (given.values() if isinstance(given, dict) else [given])
        for word in (value if isinstance(value, list) else [value])
    ]
    return next(filter(None, (patch_in(text) for text in texts if isinstance(text, str))), None)


def patch_in(text: str) -> str | None:
    """Return the patch in Codex's format that a text contains, also within a script; None if there is none."""
    if "*** Begin Patch" not in text:
        return None
    match = _PATCH.search(text)
    return match[0] if match else _in_script(text)


def _in_script(text: str) -> str | None:
    """Return the patch in a script, where it is a string with escapes; None if there is none."""
    match = _PATCH_IN_SCRIPT.search(text)
    try:
        return str(orjson.loads(match[0])) if match else None
    except orjson.JSONDecodeError:
        return None


def _first(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


# -- changes -----------------------------------------------------------------------------------------

_TELLING_NOTHING = frozenset(
    """
    begin break catch continue default do done else end endif esac except fi finally loop nil none null pass return
    then try
    """.split()  # noqa: SIM905
)

_WRITING = later(
    r"\b(?:sed|perl) -\w*i|\bgit apply\b|\bpatch -|\btee\b|\bpython3? (?:-c|- |<<)"
    r"|(?<![0-9&>=-])>{1,2} ?(?!/dev/|&)[\w./~$\"']"
)
"""Commands that write files."""


class Change(Struct, frozen=True):
    """The change that one call makes to a file, or to a cell of a notebook. Lines are without their indentation."""

    path: str
    cell: str
    removed: frozenset[str]
    """Empty if only the new content is known."""
    added: frozenset[str]
    whole: bool
    """Whether the file or cell has nothing but `added` afterwards."""


def changes(call: Call) -> tuple[Change, ...]:
    """Return the changes that a call makes to files; none if it changes no file, or in an unknown way."""
    if call.changed is None:
        call.changed = tuple(_changes(call))
    return call.changed


def _changes(call: Call) -> Iterator[Change]:
    for edit in edits(call.tool, call.arguments, writes=bool(call.writes)):
        if edit.whole is not None:
            yield Change(edit.path, edit.cell, frozenset(), significant_lines(edit.whole.splitlines()), whole=True)
        elif not edit.deletes:
            old = (line for part in edit.replacements for line in part.old.splitlines())
            new = (line for part in edit.replacements for line in part.new.splitlines())
            before, after = Counter(map(str.strip, old)), Counter(map(str.strip, new))
            yield Change(
                edit.path, "", significant_lines(before - after), significant_lines(after - before), whole=False
            )


def changed_files(call: Call) -> set[str]:
    """Return the files that a call changes, or would if it succeeded, as the log names them."""
    return {*call.writes, *(change.path for change in changes(call))}


def writes_by_shell(call: Call) -> bool:
    """Whether a call is a command of a kind that writes files, whichever."""
    command = command_of(call)
    return command is not None and _WRITING.search(command) is not None


def significant_lines(lines: Iterable[str]) -> frozenset[str]:
    """Return the significant lines without indentation: not those that are blank, only brackets, or a keyword."""
    return frozenset(line for line in map(str.strip, lines) if tells(line))


def tells(line: str) -> bool:
    """Whether a line is significant."""
    word = line.strip(" \t{}()[]<>;:,.")
    return any(map(str.isalnum, word)) and word.lower() not in _TELLING_NOTHING


# -- file reads ------------------------------------------------------------------------------------

_READER = later(r"read|view|open|cat\b", re.I)


def files_read(call: Call) -> tuple[str, ...]:
    """Return the files whose contents a call shows; none if it searches, lists or fails."""
    if call.failed or call.result_event is None:
        return ()
    shows = call.tool in TOOLS.showing or call.tool in TOOLS.shells or _READER.search(call.tool)
    return call.reads if shows else ()
