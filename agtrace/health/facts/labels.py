"""Names and quotes in the sentences of findings: secrets are masked first, then texts are shortened."""

from __future__ import annotations

from agtrace.health.facts.actions import command_of
from agtrace.health.history import Call
from agtrace.sessions.quotes import seen
from agtrace.sessions.steps import telling_argument
from agtrace.text.lines import end_of_path, one_line
from agtrace.text.lines import named as in_words

_LONGEST = 80
_LONGEST_TOOL = 40
_NO_QUOTE = "\u02cb"


def named(call: Call) -> str:
    """Return the tool with its most telling argument: "Bash `npm test`"."""
    what = command_of(call) or telling_argument(call.arguments)
    tool = tool_named(call.tool)
    return f"{tool} {quoted(what)}" if what else tool


def tool_named(tool: str) -> str:
    """Return a tool's name, in quotes if it isn't a single word."""
    return in_words(tool, _LONGEST_TOOL)


def quoted(text: str, most: int = _LONGEST) -> str:
    """Quote the beginning of a text from the log on one line; nothing in it can end the quote."""
    return f"`{one_line(seen(text), most).replace('`', _NO_QUOTE)}`"


def quoted_path(path: str) -> str:
    """Quote a path; if it is too long, its end."""
    line = one_line(seen(path), len(path)).replace("`", _NO_QUOTE)
    return f"`{end_of_path(line, _LONGEST)}`"
