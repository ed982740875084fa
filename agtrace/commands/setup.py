"""`agtrace setup`: add the MCP server to an agent."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from agtrace_indexer.providers.setup import Setup

from agtrace.commands.errors import UNREADABLE, fail
from agtrace.settings import load
from agtrace.upkeep.agents import (
    AGENTS,
    add_command,
    config_path,
    entry_in,
    put_back_command,
    remove_command,
    snippet,
)

_DATA_DIR = "AGTRACE_DATA_DIR"
_WRITTEN = frozenset({"type", "command", "args", "env"})
"""What the agents write into an entry."""


@click.command()
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option("--apply", is_flag=True, help="Run the command that adds the server, instead of showing it.")
def setup(agent: str, apply: bool) -> None:
    """Add the MCP server to an agent: shows the command, --apply runs it."""
    chosen = AGENTS[agent]
    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])  # the agent starts it in other folders
    environment = load().environment
    place = config_path(chosen, Path.home(), environment)
    variables = {_DATA_DIR: os.path.abspath(environment[_DATA_DIR])} if environment.get(_DATA_DIR) else {}
    if apply:
        _apply(chosen, executable, variables, place)
    else:
        _show(agent, shlex.join(add_command(chosen, executable, variables)))
        sys.stdout.write(f"Or write into {place}:\n\n{snippet(chosen, executable, variables)}")


def _show(name: str, command: str) -> None:
    sys.stdout.write(f"To add agtrace to {AGENTS[name].title}, run:\n\n  {command}\n\n")
    sys.stdout.write(f"(`agtrace setup {name} --apply` runs it, and keeps the environment of an entry that is there.) ")


def _apply(agent: Setup, executable: str, variables: dict[str, str], place: Path) -> None:
    """Add the server; an entry that is there is replaced, but for its environment, and stays where that fails."""
    if shutil.which(agent.executable) is None:
        fail(
            f"{agent.title} isn't on the PATH (no {agent.executable!r}): install it, or run setup without --apply",
            UNREADABLE,
        )
    from agtrace_indexer.redact import redact

    from agtrace.serving import interruption

    before = _entry(agent, place)
    kept = {name: str(value) for name, value in ((before or {}).get("env") or {}).items()}
    command = add_command(agent, executable, kept | variables)
    sys.stdout.write(f"{redact(shlex.join(command))}\n")
    sys.stdout.flush()
    with interruption.together:
        code = _replaced(agent, before, command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}; its settings are as they were", UNREADABLE)
    for name in kept.keys() - variables.keys():
        sys.stdout.write(f"{name} is set as it was before\n")
    for name in sorted((before or {}).keys() - _WRITTEN):
        sys.stdout.write(f"{name} was set in {place} and isn't any more: write it there again\n")


def _entry(agent: Setup, place: Path) -> dict[str, Any] | None:
    try:
        return entry_in(agent, place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        fail(f"{place}: {error}; nothing was changed: run setup without --apply", UNREADABLE)


def _replaced(agent: Setup, before: dict[str, Any] | None, command: list[str]) -> int:
    """Put the new entry in the place of the one before; give the exit code of what failed, after all is put back."""
    removal = remove_command(agent) if before is not None else None
    if removal and (code := _run(removal, quietly=True)):
        return code
    code = _run(command)
    if code and removal and before is not None and _run(put_back_command(agent, before), quietly=True):
        from agtrace_indexer.redact import redact

        fail(f"{agent.executable} can't write: the entry {redact(str(before))} is gone from its settings", UNREADABLE)
    return code


def _run(command: Sequence[str], *, quietly: bool = False) -> int:
    """The exit code of an agent's command; Ctrl-C doesn't reach it."""
    try:
        return subprocess.run(command, check=False, capture_output=quietly, start_new_session=True).returncode
    except OSError as error:
        fail(f"{command[0]} can't be run: {error.strerror or error}", UNREADABLE)
