"""Calls that show the contents of a file, the part they show, and commands that may have written it."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable
from functools import lru_cache

import orjson
from agtrace_indexer.events.shell import LONGEST_COMMAND, Part, parts
from agtrace_indexer.providers.registry import TOOLS

from agtrace.health.facts.actions import command_of, deed
from agtrace.health.history import Call
from agtrace.text.shell_programs import reads

_READER = re.compile(r"read|view|open|cat\b", re.I)
_SHOWING = frozenset({"bat", "batcat", "cat", "get-content", "head", "less", "more", "nl", "sed", "tail", "type"})
_ASIDE = frozenset({"", "cd", "echo", "printf", "true"})
_CHANGING = frozenset(
    {
        *("chmod", "cp", "dd", "git", "install", "ln", "mv", "patch", "perl", "rm", "rsync", "sed", "tee"),
        *("touch", "truncate", "unzip"),
    }
)
_MAY_SHOW = re.compile(rf"\b(?:{'|'.join(sorted(_SHOWING))})\b", re.I)
_WORDS = re.compile(r"[\s'\"=<>;|&()]+")
_FILE = re.compile(r"(?=.*[A-Za-z])[\w.@+~/\\:-]*[\w~]")
_ELSEWHERE = ("workdir", "cwd", "dir_path", "directory")
"""Arguments that name the folder in which a command runs."""


def files_read(call: Call) -> tuple[str, ...]:
    """Return the files whose contents a call shows; none if it searches, lists or fails."""
    if call.failed or call.result_event is None:
        return ()
    if call.reads:
        return call.reads if call.tool in TOOLS.showing or _READER.search(call.tool) else ()
    command = command_of(call)
    return _shown(command) if command is not None and _MAY_SHOW.search(command) else ()


def part_read(call: Call) -> Hashable:
    """Return a key for what a call shows: equal for the same part of the same file, whatever its description."""
    command = command_of(call)
    if command is None:
        return deed(call)
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return command, orjson.dumps([arguments.get(name) for name in _ELSEWHERE])


def file_name(path: str) -> str:
    """Return the last part of a path, which is the same however the path to a file is written."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def same_file(one: str, other: str) -> bool:
    """Whether two paths may be the same file: one of them may be relative."""
    first, second = _plain(one), _plain(other)
    return first == second or first.endswith(f"/{second}") or second.endswith(f"/{first}")


def changed_by_command(call: Call, names: Collection[str]) -> set[str]:
    """Return those of these files, given by the last part of their paths, that a command names and may write."""
    command = command_of(call)
    if command is None or not names:
        return set()
    named = {name for name in map(file_name, _WORDS.split(command[:LONGEST_COMMAND])) if name in names}
    return named if named and _may_change(command) else set()


@lru_cache(maxsize=2_048)
def _shown(command: str) -> tuple[str, ...]:
    """Return the files that a command shows, if it does nothing else."""
    found = parts(command)
    showing = [part for part in found if not part.after.startswith("|") and part.program not in _ASIDE]
    if not all(map(reads, found)) or any(part.program not in _SHOWING for part in showing):
        return ()
    return tuple(word for part in showing for word in _operands(part))


@lru_cache(maxsize=2_048)
def _may_change(command: str) -> bool:
    """Whether a command may change files that it names; True for one too long to parse."""
    found = parts(command)
    return not found or any((part.writes or part.program in _CHANGING) and not reads(part) for part in found)


def _operands(part: Part) -> list[str]:
    """Return the files that a program shows: its words that aren't options, numbers or a script of sed."""
    given = [word for word in part.words[1:] if not word.startswith("-")]
    if part.program == "sed":
        given = given[1:]
    return [word for word in given if _FILE.fullmatch(word)]


def _plain(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")
