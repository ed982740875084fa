"""What tools do, according to their names and the names of their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple


class Tools(NamedTuple):
    """The tools of an agent by purpose, under the names in its logs, and the names of their arguments.

    A tool may have several of these purposes, or none.
    """

    shells: frozenset[str] = frozenset()
    """Run commands."""
    patching: frozenset[str] = frozenset()
    """Apply patches given in their commands, in addition to all tools with `patch` in their names."""
    editing: frozenset[str] = frozenset()
    """Write the files that their calls name, though their names don't say so (as `edit`, `write` do)."""
    showing: frozenset[str] = frozenset()
    """Show the contents of the files that their calls name, though their names don't say so (as `read`, `view` do)."""
    reading: frozenset[str] = frozenset()
    """Change nothing, though their names don't say so (as `read`, `search` do)."""
    waiting: frozenset[str] = frozenset()
    """Wait for something else on purpose, or ask about its progress."""
    asking: frozenset[str] = frozenset()
    """Wait for a human: the time until their result is the human's, not theirs."""
    questioning: frozenset[str] = frozenset()
    """Put questions to the human, in an argument `questions`."""
    starting: frozenset[str] = frozenset()
    """Start sub-agents."""
    unanswered: frozenset[str] = frozenset()
    """Have no result in a log, because they run elsewhere."""
    answering: frozenset[str] = frozenset()
    """Give the answer of a session that no human follows, and so end it."""
    servers: tuple[str, ...] = ()
    """Prefixes of our own tools' names if our MCP server is called agtrace: `mcp__agtrace__`."""
    commands: tuple[str, ...] = ()
    """Arguments that contain a command, in order of precedence, as in the fields below."""
    paths: tuple[str, ...] = ()
    """Arguments that name a file."""
    removed: tuple[str, ...] = ()
    """Arguments that contain the text an edit removes."""
    added: tuple[str, ...] = ()
    """Arguments that contain the text an edit inserts."""
    contents: tuple[str, ...] = ()
    """Arguments that contain the entire new content of a file or of a notebook cell."""


OF_MCP_SERVERS = Tools(
    paths=("path", "filePath"),
    removed=("old_string", "old_str", "oldText", "oldString"),
    added=("new_string", "new_str", "newText", "newString"),
    contents=("content", "contents", "file_text"),
)
"""Names that many MCP servers use, whichever agent calls them."""


def together(found: Iterable[Tools]) -> Tools:
    """Combine the tools of several agents: a name means the same in all logs, as agents call each other over MCP."""
    names = (dict.fromkeys(chain.from_iterable(same)) for same in zip(*found, strict=True))
    kinds: list[Any] = [type(none) for none in Tools()]
    return Tools(*(kind(words) for kind, words in zip(kinds, names, strict=True)))
