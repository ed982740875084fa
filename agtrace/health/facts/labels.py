"""How the sentences of findings name what they are about: masked first, then cut."""

from __future__ import annotations

from agtrace.health.facts.actions import command_of
from agtrace.health.history import Call
from agtrace.sessions.quotes import seen
from agtrace.sessions.steps import telling_argument
from agtrace.text.lines import named as in_words
from agtrace.text.lines import one_line

_LONGEST = 80
_LONGEST_TOOL = 40
_NO_QUOTE = "\u02cb"


def named(call: Call) -> str:
    """The tool with the argument that tells most: "Bash `npm test`"."""
    what = command_of(call) or telling_argument(call.arguments)
    tool = tool_named(call.tool)
    return f"{tool} {quoted(what)}" if what else tool


def tool_named(tool: str) -> str:
    """A tool: in quotes where its name is more than a word."""
    return in_words(tool, _LONGEST_TOOL)


def quoted(text: str, most: int = _LONGEST) -> str:
    """The beginning of a text of the log, on one line, which nothing in it ends."""
    return f"`{one_line(seen(text), most).replace('`', _NO_QUOTE)}`"


def quoted_path(path: str) -> str:
    """A path, of which the end tells most."""
    line = one_line(seen(path), len(path)).replace("`", _NO_QUOTE)
    return f"`{line if len(line) <= _LONGEST else '...' + line[3 - _LONGEST :]}`"
