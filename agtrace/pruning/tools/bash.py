"""The tool `bash`: a command of the agent's in a shell, which ends with all that it started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from agtrace_indexer.redact.names import Strength, strength

from agtrace.pruning import processes
from agtrace.pruning.arguments import BashArguments
from agtrace.pruning.tools.output import Capture, Output, ToolFailed, Workbench, joined, working_folder

_NO_SECRETS = frozenset({"PWD", "DESKTOP_SESSION", "GDMSESSION", "KDE_FULL_SESSION"})
"""Usual variables whose names read like those of secrets."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that are named like secrets."""
    return {
        name: value for name, value in environment.items() if name in _NO_SECRETS or strength(name) is Strength.NONE
    }


async def run(arguments: BashArguments, bench: Workbench) -> Output:
    """Run a command in bash, or in sh where there is no bash.

    Its environment is that of the bench without what is named like a secret, and with the variables of the request.
    Raises `ToolFailed` if it can't be started, takes too long, or fails, unless that is allowed.
    """
    folder, environment = working_folder(arguments.cwd, bench), bench.environment
    shell = shutil.which("bash", path=environment.get("PATH", os.defpath)) or "/bin/sh"
    variables = {**without_secrets(environment), "PWD": str(folder), **arguments.env}
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
