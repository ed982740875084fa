"""Recognizing tool calls to agtrace itself: search leaves them and their results out, or it would find itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from agtrace_schema.events import Json, ToolCall
from agtrace_schema.own_tools import TOOLS
from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools

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


def is_own(call: ToolCall, tools: Tools) -> bool:
    """Whether a call goes to agtrace: by the tool's name, or by the command that a shell is to run."""
    if call.name in _own_tools(tools.servers):
        return True
    return call.name in tools.shells and any(map(_asks_agtrace, _commands(call.arguments, tools.commands)))


@lru_cache(maxsize=8)
def _own_tools(servers: tuple[str, ...]) -> frozenset[str]:
    """Return every spelling of our tools' names in logs."""
    return frozenset(map("".join, product(servers, TOOLS)))


def _asks_agtrace(command: str) -> bool:
    return "agtrace" in command and _ASKS_AGTRACE.match(command) is not None


def _commands(arguments: Json, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the commands a shell is to run: a text, the last word of `bash -lc <text>`, or words."""
    if isinstance(arguments, dict):
        for name in names:
            yield from _texts(arguments.get(name))
    else:
        yield from _texts(arguments)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and value:
        words = [word for word in value if isinstance(word, str)]
        yield " ".join(words)
        yield from words[-1:] if len(words) == 3 and words[1].startswith("-") else ()
