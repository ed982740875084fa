"""The first program of a command, by which calls are counted."""

from __future__ import annotations

from agtrace_schema.events import ToolCall
from agtrace_schema.patterns import later

from agtrace_indexer.events.commands import shell_command
from agtrace_indexer.events.shell import LONGEST_COMMAND, Part, programs
from agtrace_indexer.events.strings import masked
from agtrace_indexer.events.tools import Tools

_NAME = later(r"[\w.+@~-]{1,60}|\[{1,2}")
"""What can be the name of a program. Other texts in its place may be a piece of a secret, cut out of what tells it."""

_ON_THE_WAY = frozenset({"cd", "pushd", "set-location"})
"""Programs that only choose where the others run."""


def first_program(call: ToolCall, tools: Tools) -> str | None:
    """Return the first program that a call runs, in lower case; None if it runs no command,
    or something that has no such name.

    What only prepares another program doesn't count: `cd`, a program whose output is a word of the other one, and
    PowerShell's `$name = value`.
    """
    command = shell_command(call.name, call.arguments, tools)
    if command is None and call.name not in tools.shells:
        return None
    name = _first(command.text[:LONGEST_COMMAND]) if command else ""
    return masked(name) if _NAME.fullmatch(name) else None


def _first(command: str) -> str:
    second_best = ""
    for part in programs(command):
        if part.program and not _is_incidental(part):
            return part.program
        second_best = second_best or part.program
    return second_best


def _is_incidental(part: Part) -> bool:
    return part.substituted or part.program in _ON_THE_WAY or part.program.startswith("$")
