"""What tools do, told by their names and the names of their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple


class Tools(NamedTuple):
    """The tools of an agent by what they are for, as its logs name them, and the names of their arguments.

    A tool may have several of these purposes, or none.
    """

    shells: frozenset[str] = frozenset()
    """Run commands."""
    patching: frozenset[str] = frozenset()
    """Apply patches that stand in their commands, besides all tools with `patch` in their names."""
    reading: frozenset[str] = frozenset()
    """Change nothing, though no word in their names says so (`read`, `search` and the like do)."""
    waiting: frozenset[str] = frozenset()
    """Wait for something else on purpose, or ask how far it is."""
    asking: frozenset[str] = frozenset()
    """Wait for a human: the time until their result is the human's, not theirs."""
    starting: frozenset[str] = frozenset()
    """Start sub-agents."""
    unanswered: frozenset[str] = frozenset()
    """Have no result in a log, because they run elsewhere."""
    servers: tuple[str, ...] = ()
    """What stands before the names of our own tools, where our MCP server is called agtrace: `mcp__agtrace__`."""
    commands: tuple[str, ...] = ()
    """Arguments that hold a command, those that count most first; likewise below."""
    paths: tuple[str, ...] = ()
    """Arguments that name a file."""
    removed: tuple[str, ...] = ()
    """Arguments that hold the text that an edit takes out."""
    added: tuple[str, ...] = ()
    """Arguments that hold the text that an edit puts in."""
    contents: tuple[str, ...] = ()
    """Arguments that hold all that a file, or a cell of a notebook, is to contain."""


OF_MCP_SERVERS = Tools(
    paths=("path", "filePath"),
    removed=("old_string", "old_str", "oldText", "oldString"),
    added=("new_string", "new_str", "newText", "newString"),
    contents=("content", "contents", "file_text"),
)
"""Names that many MCP servers use, whichever agent calls them."""


def together(found: Iterable[Tools]) -> Tools:
    """The tools of several agents: names mean the same in all logs, for agents call each other's tools over MCP."""
    names = (dict.fromkeys(chain.from_iterable(same)) for same in zip(*found, strict=True))
    kinds: list[Any] = [type(none) for none in Tools()]
    return Tools(*(kind(words) for kind, words in zip(kinds, names, strict=True)))
