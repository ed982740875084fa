"""The tools that the server offers: what clients see of each, its arguments, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from agtrace.pruning.arguments import Arguments, BashArguments, GrepArguments, ReadArguments
from agtrace.pruning.tools import bash, grep, read
from agtrace.pruning.tools.output import Output, Workbench


class Tool(NamedTuple):
    """A tool as clients see it, and what it does."""

    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Any, Workbench], Awaitable[Output]]
    """Raises `ToolFailed`."""
    only_reads: bool = True


TOOLS: Mapping[str, Tool] = {
    "read": Tool(
        "Read a file",
        "Read a text file or a range of its lines; with the `ref` of an answer as file_path, what that left out.",
        ReadArguments,
        read.run,
    ),
    "bash": Tool(
        "Run a command",
        "Run a command in bash. Its stdin is empty, and what it leaves running in the background ends with it.",
        BashArguments,
        bash.run,
        only_reads=False,
    ),
    "grep": Tool(
        "Search files",
        "Search files for regular expressions, also hidden and ignored files. Hits are path:line:text, lines around "
        "them path-line-text; (?i) before a pattern ignores case.",
        GrepArguments,
        grep.run,
    ),
}
