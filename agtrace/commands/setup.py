"""`agtrace setup`: add the MCP server to an agent."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from agtrace.agents import AGENTS, Agent, add_command, config_path, remove_command, snippet
from agtrace.commands import UNREADABLE, fail, settings


def run(name: str, *, apply: bool) -> None:
    """Show the command that adds the server and the settings it writes, or run it."""
    agent = AGENTS[name]
    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])  # the agent starts it in other folders
    command = add_command(agent, executable)
    if apply:
        _apply(agent, command)
        return
    sys.stdout.write(f"To add agtrace to {agent.title}, run:\n\n  {shlex.join(command)}\n\n")
    sys.stdout.write(f"(`agtrace setup {name} --apply` runs it.) Or write into ")
    environment = settings().environment
    sys.stdout.write(f"{config_path(agent, Path.home(), environment)}:\n\n{snippet(agent, executable)}")
    if environment.get("AGTRACE_DATA_DIR"):
        sys.stdout.write(
            "\nAGTRACE_DATA_DIR is set here: give the agent's server entry the same environment variable.\n"
        )


def _apply(agent: Agent, command: list[str]) -> None:
    if shutil.which(agent.executable) is None:
        fail(
            f"{agent.title} isn't on the PATH (no {agent.executable!r}): install it, or run setup without --apply",
            UNREADABLE,
        )
    sys.stdout.write(f"{shlex.join(command)}\n")
    sys.stdout.flush()
    if removal := remove_command(agent):
        subprocess.run(removal, check=False, capture_output=True)  # fails where there is no earlier entry
    done = subprocess.run(command, check=False)
    if done.returncode:
        fail(f"{agent.executable} ended with exit code {done.returncode}", UNREADABLE)
