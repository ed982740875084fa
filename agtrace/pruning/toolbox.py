"""The tools that the server offers: what clients see of each, its arguments, and what it does."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anyio import to_thread

from agtrace.pruning.arguments import Arguments, BashArguments, GrepArguments, ReadArguments
from agtrace.pruning.tools import bash, grep, read
from agtrace.pruning.tools.output import Output, ToolFailed
from agtrace.text.kept_texts import REFERENCE, KeptTexts


class Workbench(NamedTuple):
    """What a tool works with."""

    cwd: Path
    environment: Mapping[str, str]
    kept: KeptTexts


class Tool(NamedTuple):
    """A tool as clients see it, and what it does."""

    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Any, Workbench], Awaitable[Output]]
    """Raises `ToolFailed`."""
    only_reads: bool = True


async def _read(wanted: ReadArguments, bench: Workbench) -> Output:
    if wanted.file_path.startswith(REFERENCE):
        return await to_thread.run_sync(_read_kept, wanted, bench.kept)
    return await read.run(wanted, bench.cwd, bench.environment)


def _read_kept(wanted: ReadArguments, kept: KeptTexts) -> Output:
    began = time.monotonic()
    found = kept.read(wanted.file_path.removeprefix(REFERENCE))
    if found is None:
        raise ToolFailed("ENOENT", "There is no output under this reference any more: outputs are kept for a day.")
    lines = found.text.removesuffix("\n").split("\n")
    begin, end = found.first_line, found.first_line + len(lines) - 1
    first, last = wanted.lines or (begin, end)
    first, last = max(first, begin), end if last is None else min(last, end)
    if first > last:
        raise ToolFailed("out_of_range", f"The output has the lines {begin:,} to {end:,}.")
    chosen = "\n".join(lines[first - begin : last - begin + 1])
    chosen += "\n" if last == end and found.text.endswith("\n") else ""
    return Output(chosen, len(chosen.encode()), 0, None, 1000 * (time.monotonic() - began), first)


async def _bash(wanted: BashArguments, bench: Workbench) -> Output:
    return await bash.run(wanted, bench.cwd, bench.environment)


async def _grep(wanted: GrepArguments, bench: Workbench) -> Output:
    return await grep.run(wanted, bench.cwd, bench.environment)


TOOLS: Mapping[str, Tool] = {
    "read": Tool(
        "Read a file",
        "Read a text file or a range of its lines; with the `ref` of an answer as file_path, what that left out.",
        ReadArguments,
        _read,
    ),
    "bash": Tool(
        "Run a command",
        "Run a command in bash. Its stdin is empty, and what it leaves running in the background ends with it.",
        BashArguments,
        _bash,
        only_reads=False,
    ),
    "grep": Tool(
        "Search files",
        "Search files for regular expressions, also hidden and ignored files. Hits are path:line:text, lines around "
        "them path-line-text; (?i) before a pattern ignores case.",
        GrepArguments,
        _grep,
    ),
}
