"""The command that a call has a shell run, and what it is: its first program, a call to agtrace itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

import orjson
from agtrace_schema.events import Json, ToolCall
from agtrace_schema.own_tools import TOOLS
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace_indexer.events.shell import LONGEST_COMMAND, Part, parts, programs
from agtrace_indexer.events.strings import masked
from agtrace_indexer.events.tools import Tools

SCRIPTING = "exec"
"""Codex's tool that takes scripts (code mode), and in older versions a command."""

_CALLED = later(r"\btools\.(\w+)\s*\(\s*(?:\{\s*\"?cmd\"?\s*:\s*(\"(?:[^\"\\\n]|\\.)*+\"))?")
_LONGEST_SCRIPT = 100_000

_NAME = later(r"[\w.+@~-]{1,60}|\[{1,2}")
"""What can be the name of a program. Other texts in its place may be a piece of a secret, cut out of what tells it."""

_ON_THE_WAY = frozenset({"cd", "pushd", "set-location"})
"""Programs that only choose where the others run."""

_WORD = r"""(?:"[^"\n]*+"|'[^'\n]*+'|[^\s"';&|]++)"""

_ASKS_AGTRACE = later(
    rf"""
    \s*+
    (?:cd\s++{_WORD}[^\S\n]*+(?:&&|;|\n)\s*+)*+     # where it runs
    (?:(?:command|exec|time|env)\s++|[A-Za-z_]\w*+={_WORD}?+\s++)*+
    (?:(?:uvx|pipx\s++run|uv\s++run|uv\s++tool\s++run)\s++(?:--(?:from|with|spec)[\s=]++{_WORD}\s++|-\S++\s++)*+)?+
    (?:\S*?python[\d.]*+(?:\.exe)?\s++-m\s++)?+
    (?:[^\s"';&|]*[/\\])?agtrace(?:\.exe|@\S++)?(?=\s|$)
    """,
    re.VERBOSE,
)


class Command(Struct, frozen=True):
    """What a shell is to run."""

    text: str
    in_script: bool = False
    """Whether a script runs it (Codex's code mode): how it ended is known only if the script prints it."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its programs, parsed once."""
        return parts(self.text)

    @property
    def asks_agtrace(self) -> bool:
        """Whether it runs agtrace."""
        return "agtrace" in self.text and _ASKS_AGTRACE.match(self.text) is not None

    @property
    def first_program(self) -> str | None:
        """The first program that it runs, in lower case, by which calls are counted; None if it has no such name.

        What only prepares another program doesn't count: `cd`, a program whose output is a word of the other one, and
        PowerShell's `$name = value`.
        """
        word = name = ""
        for part in programs(self.text[:LONGEST_COMMAND]):
            prepares = part.substituted or part.program in _ON_THE_WAY or part.program.startswith("$")
            if part.program and not (name and prepares):
                word, name = part.words[0], part.program
            if part.program and not prepares:
                break
        return name if _NAME.fullmatch(name) and masked(word) == word else None


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


def is_own(call: ToolCall, command: Command | None, tools: Tools) -> bool:
    """Whether a call goes to agtrace itself, by the tool's name or its command: search leaves it and its result out,
    or it would find itself.
    """
    return call.name in _own_tools(tools.servers) or (command is not None and command.asks_agtrace)


@lru_cache(maxsize=8)
def _own_tools(servers: tuple[str, ...]) -> frozenset[str]:
    """Return every spelling of our tools' names in logs."""
    return frozenset(map("".join, product(servers, TOOLS)))
