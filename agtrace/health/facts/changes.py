"""The lines that an edit removed from a file and added to it, for the editing tools of all agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.health.facts.actions import command_of
from agtrace.health.facts.edits import edits
from agtrace.health.history import Call

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
            yield Change(edit.path, edit.cell, frozenset(), telling(edit.whole.splitlines()), whole=True)
        elif not edit.deletes:
            old = (line for part in edit.replacements for line in part.old.splitlines())
            new = (line for part in edit.replacements for line in part.new.splitlines())
            yield _of_lines(edit.path, old, new)


def changed_files(call: Call) -> set[str]:
    """Return the files that a call changes, or would if it succeeded, as the log names them."""
    return {*call.writes, *(change.path for change in changes(call))}


def writes_by_shell(call: Call) -> bool:
    """Whether a call is a command of a kind that writes files, whichever."""
    command = command_of(call)
    return command is not None and _WRITING.search(command) is not None


def _of_lines(path: str, old: Iterable[str], new: Iterable[str]) -> Change:
    before, after = Counter(map(str.strip, old)), Counter(map(str.strip, new))
    return Change(path, "", telling(before - after), telling(after - before), whole=False)


def telling(lines: Iterable[str]) -> frozenset[str]:
    """Return the significant lines without indentation: not those that are blank, only brackets, or a keyword."""
    return frozenset(line for line in map(str.strip, lines) if tells(line))


def tells(line: str) -> bool:
    """Whether a line is significant."""
    word = line.strip(" \t{}()[]<>;:,.")
    return any(map(str.isalnum, word)) and word.lower() not in _TELLING_NOTHING
