"""The tools of the server: what clients see of each, its arguments, and what it does; `bash` runs a command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from agtrace.pruning import grep, processes, read
from agtrace.pruning.arguments import Arguments, BashArguments, GrepArguments, ReadArguments
from agtrace.pruning.output import Capture, Output, ToolContext, ToolFailed, joined, working_folder


async def bash(arguments: BashArguments, context: ToolContext) -> Output:
    """Run a command in bash, or in sh where there is no bash.

    Its environment is that of the context, with the variables of the request.
    Raises `ToolFailed` if it can't be started, takes too long, or fails, unless that is allowed.
    """
    folder, environment = working_folder(arguments.cwd, context), context.environment
    shell = shutil.which("bash", path=environment.get("PATH", os.defpath)) or "/bin/sh"
    variables = {**environment, "PWD": str(folder), **arguments.env}
    output, errors = Capture(), Capture()
    command = [shell, "-c", "--", arguments.command]
    try:
        ended = await processes.run(command, folder, variables, arguments.timeout_ms / 1000, output.add, errors.add)
    except OSError as error:
        raise ToolFailed("spawn_failed", f"The command can't be started: {error.strerror}.") from None
    text, truncated = joined(output, errors)
    code = ended.code if ended.why == "itself" else None
    result = Output(text, output.total, errors.total, code, ended.duration_ms, truncated=truncated)
    if ended.why == "timeout":
        message = f"The command was ended after {arguments.timeout_ms:,} ms (timeout_ms)."
        raise ToolFailed("timeout", message, timeout_ms=arguments.timeout_ms, output=result)
    if ended.code and not arguments.allow_nonzero_exit:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit code {ended.code}"
        raise ToolFailed("nonzero_exit", f"The command {how}.", exit_code=ended.code, output=result)
    return result


class Tool(NamedTuple):
    """A tool as clients see it, and what it does."""

    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Any, ToolContext], Awaitable[Output]]
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
        bash,
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
