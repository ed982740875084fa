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

from agtrace.commands.errors import UNREADABLE, fail, use_rules_at_hand
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
"""The keys of an entry that the agents' own commands write."""


@click.command()
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option("--apply", is_flag=True, help="Run the command that adds the server, instead of only showing it.")
def setup(agent: str, apply: bool) -> None:
    """Add the MCP server to an agent: shows the command; --apply runs it."""
    chosen = AGENTS[agent]
    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])  # the agent starts it from other folders
    environment = load().environment
    place = config_path(chosen, Path.home(), environment)
    variables = {_DATA_DIR: os.path.abspath(environment[_DATA_DIR])} if environment.get(_DATA_DIR) else {}
    if apply:
        _apply(chosen, executable, variables, place)
    else:
        _show(agent, shlex.join(add_command(chosen, executable, variables)))
        sys.stdout.write(f"Or put this into {place}:\n\n{snippet(chosen, executable, variables)}")


def _show(name: str, command: str) -> None:
    sys.stdout.write(f"To add agtrace to {AGENTS[name].title}, run:\n\n  {command}\n\n")
    sys.stdout.write(f"(`agtrace setup {name} --apply` runs it, and keeps the environment of an existing entry.) ")


def _apply(agent: Setup, executable: str, variables: dict[str, str], place: Path) -> None:
    """Add the server. An existing entry is replaced, except for its environment; if that fails, it stays."""
    if shutil.which(agent.executable) is None:
        fail(
            f"{agent.executable!r} isn't on the PATH: install {agent.title}, or run setup without --apply",
            UNREADABLE,
        )
    from agtrace_indexer.redact import redact

    from agtrace.serving import interruption

    before = _entry(agent, place)
    kept = {name: str(value) for name, value in ((before or {}).get("env") or {}).items()}
    command = add_command(agent, executable, kept | variables)
    use_rules_at_hand()
    sys.stdout.write(f"{redact(shlex.join(command))}\n")
    sys.stdout.flush()
    with interruption.together:
        code = _replaced(agent, before, command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}; its settings are as they were", UNREADABLE)
    for name in kept.keys() - variables.keys():
        sys.stdout.write(f"{name} was kept from the entry before\n")
    for name in sorted((before or {}).keys() - _WRITTEN):
        sys.stdout.write(f"{name} was set in {place} and is now gone: add it there again\n")


def _entry(agent: Setup, place: Path) -> dict[str, Any] | None:
    try:
        return entry_in(agent, place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        fail(f"{place}: {error}; nothing was changed: run setup without --apply", UNREADABLE)


def _replaced(agent: Setup, before: dict[str, Any] | None, command: list[str]) -> int:
    """Replace the entry, and return 0; if a command fails, put the old entry back and return its exit code."""
    removal = remove_command(agent) if before is not None else None
    if removal and (code := _run(removal, quietly=True)):
        return code
    code = _run(command)
    if code and removal and before is not None and _run(put_back_command(agent, before), quietly=True):
        from agtrace_indexer.redact import redact

        fail(
            f"{agent.executable} failed, and its old entry is gone from its settings: {redact(str(before))}", UNREADABLE
        )
    return code


def _run(command: Sequence[str], *, quietly: bool = False) -> int:
    """Run an agent's command and return its exit code; Ctrl-C doesn't reach it."""
    try:
        return subprocess.run(command, check=False, capture_output=quietly, start_new_session=True).returncode
    except OSError as error:
        fail(f"{command[0]} can't be run: {error.strerror or error}", UNREADABLE)
