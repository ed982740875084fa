"""`agtrace setup`: add the MCP server to an agent."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from agtrace.agents import AGENTS, add_command, config_path, snippet
from agtrace.commands import UNREADABLE, fail, settings


def run(name: str, *, apply: bool) -> None:
    """Show the command that adds the server and the settings it writes, or run it."""
    agent = AGENTS[name]
    executable = shutil.which("agtrace") or os.path.abspath(sys.argv[0])
    command = add_command(agent, executable)
    if apply:
        _apply(agent.title, command)
        return
    sys.stdout.write(f"To add agtrace to {agent.title}, run:\n\n  {shlex.join(command)}\n\n")
    sys.stdout.write(f"(`agtrace setup {name} --apply` runs it.) Or write into ")
    environment = settings().environment
    sys.stdout.write(f"{config_path(agent, Path.home(), environment)}:\n\n{snippet(agent, executable)}")
    if environment.get("AGTRACE_DATA_DIR"):
        sys.stdout.write(
            "\nAGTRACE_DATA_DIR is set here: give the agent's server entry the same environment variable.\n"
        )


def _apply(title: str, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        fail(f"{title} isn't on the PATH (no {command[0]!r}): install it, or run setup without --apply", UNREADABLE)
    sys.stdout.write(f"{shlex.join(command)}\n")
    sys.stdout.flush()
    done = subprocess.run(command, check=False)
    if done.returncode:
        fail(f"{command[0]} ended with exit code {done.returncode}", UNREADABLE)
