"""Calls that show the contents of files."""

from __future__ import annotations

import re
from functools import lru_cache

from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of
from agtrace.health.history import Call
from agtrace.text.shell_programs import reads

_READER = later(r"read|view|open|cat\b", re.I)
_SHOWING = frozenset({"bat", "batcat", "cat", "get-content", "head", "less", "more", "nl", "sed", "tail", "type"})
_ASIDE = frozenset({"", "cd", "echo", "printf", "true"})
_MAY_SHOW = later(rf"\b(?:{'|'.join(sorted(_SHOWING))})\b", re.I)
_FILE = later(r"(?=.*[A-Za-z])[\w.@+~/\\:-]*[\w~]")


def files_read(call: Call) -> tuple[str, ...]:
    """Return the files whose contents a call shows; none if it searches, lists or fails."""
    if call.failed or call.result_event is None:
        return ()
    if call.reads:
        return call.reads if call.tool in TOOLS.showing or _READER.search(call.tool) else ()
    command = command_of(call)
    return _shown(command) if command is not None and _MAY_SHOW.search(command) else ()


@lru_cache(maxsize=2_048)
def _shown(command: str) -> tuple[str, ...]:
    """Return the files that a command shows, if it does nothing else."""
    found = parts(command)
    showing = [part for part in found if not part.after.startswith("|") and part.program not in _ASIDE]
    if not all(map(reads, found)) or any(part.program not in _SHOWING for part in showing):
        return ()
    return tuple(word for part in showing for word in _operands(part))


def _operands(part: Part) -> list[str]:
    """Return the files that a program shows: its words that aren't options, numbers or a script of sed."""
    given = [word for word in part.words[1:] if not word.startswith("-")]
    if part.program == "sed":
        given = given[1:]
    return [word for word in given if _FILE.fullmatch(word)]
