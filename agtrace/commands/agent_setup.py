"""`agtrace setup` for agents that add and remove MCP servers themselves: shows their command, or runs it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.setup import Setup

from agtrace.commands.client_setup import Server
from agtrace.commands.errors import UNREADABLE, fail, use_rules_at_hand
from agtrace.render.terminal import plain
from agtrace.serving import interruption
from agtrace.upkeep.agents import (
    AGENTS,
    add_command,
    config_path,
    entry_in,
    put_back_command,
    remove_command,
    snippet,
    take_out_command,
)

_WRITTEN = frozenset({"type", "command", "args", "env"})
"""The keys of an entry that the agents' own commands write."""


def show(name: str, server: Server, *, remove: bool) -> None:
    """Print the agent's command, and for adding also what to write into its settings instead."""
    agent = AGENTS[name]
    place = config_path(agent, server.machine.home, server.machine.environment)
    if remove:
        _print(f"To take agtrace out of {agent.title}, run:\n\n  {shlex.join(_take_out(agent, place))}\n")
        _print(f"(`agtrace setup {name} --remove --apply` runs it.)")
        return
    command = shlex.join(add_command(agent, server.executable, server.variables))
    _print(f"To add agtrace to {agent.title}, run:\n\n  {command}\n")
    if shutil.which(agent.executable) is None:
        _print(f"({agent.executable} isn't on the PATH of this machine.) ", end="")
    else:
        _print(
            f"(`agtrace setup {name} --apply` runs it, and keeps the environment of an existing entry; "
            f"`agtrace setup {name} --remove --apply` undoes it.) ",
            end="",
        )
    _print(f"Or put this into {place}:\n\n{snippet(agent, server.executable, server.variables).rstrip()}")


def remove(name: str, server: Server) -> None:
    """Let the agent take our server out of its settings, if they have it."""
    agent = AGENTS[name]
    place = config_path(agent, server.machine.home, server.machine.environment)
    if _entry(agent, place) is None:
        _print(f"agtrace isn't in the settings of {agent.title}, {place}: nothing to do")
        return
    command = _take_out(agent, place)
    _require(agent)
    _print(shlex.join(command))
    with interruption.together:
        code = _run(command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}", UNREADABLE)


def _take_out(agent: Setup, place: Path) -> list[str]:
    command = take_out_command(agent)
    return command or fail(f"{agent.title} has no command for that: remove agtrace from {place}", UNREADABLE)


def apply(name: str, server: Server) -> None:
    """Let the agent add the server. An existing entry is replaced, but for its environment; if that fails, it stays."""
    from agtrace_indexer.redact import redact

    agent = AGENTS[name]
    place = config_path(agent, server.machine.home, server.machine.environment)
    _require(agent)
    before = _entry(agent, place)
    kept = {name: str(value) for name, value in ((before or {}).get("env") or {}).items()}
    command = add_command(agent, server.executable, kept | dict(server.variables))
    use_rules_at_hand()
    _print(redact(shlex.join(command)))
    with interruption.together:
        code = _replaced(agent, before, command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}; its settings are as they were", UNREADABLE)
    for name in kept.keys() - server.variables.keys():
        _print(f"{name} was kept from the entry before")
    for name in sorted((before or {}).keys() - _WRITTEN):
        _print(f"{name} was set in {place} and is now gone: add it there again")


def _print(text: str, end: str = "\n") -> None:
    sys.stdout.write(plain(text) + end)
    sys.stdout.flush()


def _require(agent: Setup) -> None:
    if shutil.which(agent.executable) is None:
        fail(
            f"{agent.executable!r} isn't on the PATH: install {agent.title}, or run setup without --apply",
            UNREADABLE,
        )


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
