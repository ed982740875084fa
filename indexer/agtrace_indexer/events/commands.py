"""The command that a call has a shell run, as one text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import orjson
from agtrace_schema.events import Json
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.events.tools import Tools

SCRIPTING = "exec"
"""Codex's tool that takes scripts (code mode), and in older versions a command."""

_CALLED = later(r"\btools\.(\w+)\s*\(\s*(?:\{\s*\"?cmd\"?\s*:\s*(\"(?:[^\"\\\n]|\\.)*+\"))?")
_LONGEST_SCRIPT = 100_000


class Command(Struct, frozen=True):
    """What a shell is to run."""

    text: str
    in_script: bool = False
    """Whether a script runs it (Codex's code mode): how it ended is known only if the script prints it."""


def shell_command(tool: str, arguments: Json, tools: Tools) -> Command | None:
    """Return the command that a call has a shell run; None for other tools, or if the shell is given none."""
    if tool not in tools.shells:
        return None
    return command_in(arguments, tools.commands, may_be_script=tool == SCRIPTING)


def command_in(arguments: Json, names: Iterable[str], *, may_be_script: bool = False) -> Command | None:
    """Return the command among a shell's arguments: the first one with these names, or all of them.

    `may_be_script`: whether the tool takes scripts in Codex's code mode. Such a script is a command a line, and None
    if it does anything else.
    """
    if isinstance(arguments, dict):
        arguments = next((arguments[name] for name in names if arguments.get(name)), None)
    if isinstance(arguments, str):
        return _of_script(arguments) if may_be_script and "tools." in arguments else Command(arguments)
    if not isinstance(arguments, list):
        return None
    words = [word for word in arguments if isinstance(word, str)]
    if len(words) == 3 and words[1].startswith("-"):
        return Command(words[2])
    return Command(shlex.join(words)) if words else None


def _of_script(script: str) -> Command | None:
    commands = []
    for tool, command in _CALLED.findall(script[:_LONGEST_SCRIPT]):
        if tool != "exec_command" or not command:
            return None
        try:
            commands.append(str(orjson.loads(command)))
        except orjson.JSONDecodeError:
            return None
    return Command("\n".join(commands), in_script=True) if commands else None
