"""How the sentences of findings name what they are about: masked first, then cut."""

from __future__ import annotations

from agtrace.detecting.actions import command_of
from agtrace.detecting.history import Call
from agtrace.reading.quotes import seen
from agtrace.reading.steps import telling_argument
from agtrace.shaping.cutting import LABEL, one_line

_LONGEST = 80


def named(call: Call) -> str:
    """The tool with the argument that tells most: "Bash `npm test`"."""
    what = command_of(call) or telling_argument(call.arguments)
    tool = one_line(seen(call.tool), LABEL)
    return f"{tool} {quoted(what)}" if what else tool


def quoted(text: str) -> str:
    """The beginning of a text of the log, on one line."""
    return f"`{one_line(seen(text), _LONGEST)}`"


def quoted_path(path: str) -> str:
    """A path, of which the end tells most."""
    line = one_line(seen(path), len(path))
    return f"`{line if len(line) <= _LONGEST else '...' + line[3 - _LONGEST :]}`"
