"""`agtrace setup` adds the MCP server to an agent or editor; `agtrace service` keeps the index fresh."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from agtrace_indexer.providers.setup import Setup

from agtrace.commands.errors import UNREADABLE, fail, tell, use_rules_at_hand
from agtrace.commands.printing import print_lines
from agtrace.serving.interruption import together
from agtrace.settings import load
from agtrace.upkeep import client_settings as change
from agtrace.upkeep import service as upkeep
from agtrace.upkeep.agents import (
    AGENTS,
    NAMES,
    add_command,
    agent_by_name,
    config_path,
    entry_in,
    has_plugin,
    is_installed,
    programs,
    put_back_command,
    remove_command,
    take_out_command,
)
from agtrace.upkeep.clients import CLIENTS, Machine

if TYPE_CHECKING:
    from agtrace.upkeep.client_settings import Change
    from agtrace.upkeep.clients import Client


class Server(NamedTuple):
    """Our server as a client is to start it: the executable and its environment, on this machine."""

    machine: Machine
    executable: str
    variables: Mapping[str, str]


_DATA_DIR = "AGTRACE_DATA_DIR"


class _ClientName(click.Choice[str]):
    """The name of a client, or of an agent in any of its spellings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that the list has."""
        return super().convert(agent_by_name(value) or value, param, ctx)


@click.command(epilog=f"Clients: {', '.join(NAMES)}.")
@click.argument("client", type=_ClientName(NAMES), required=False, metavar="[CLIENT]")
@click.option("--apply", is_flag=True, help="Make the change, instead of only showing it.")
@click.option("--remove", is_flag=True, help="Take the server out again, instead of adding it.")
def setup(client: str | None, apply: bool, remove: bool) -> None:
    """Add the MCP server to an agent or editor: shows what would change; --apply changes it. Without CLIENT: list them.

    Nothing else in their settings changes. The list says which clients are on this machine, and which have the server.
    """
    environment = load().environment
    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])  # clients start it from other folders
    variables = {_DATA_DIR: os.path.abspath(environment[_DATA_DIR])} if environment.get(_DATA_DIR) else {}
    server = Server(Machine(Path.home(), environment, sys.platform), executable, variables)
    if client is None:
        if apply or remove:
            raise click.UsageError("--apply and --remove need a CLIENT; `agtrace setup` lists them")
        from agtrace.render.doctor import print_programs

        print_programs(list(programs(server.machine)))
    elif client in CLIENTS:
        (_apply if apply else _show)(client, server, remove=remove)
    elif not apply:
        _show_command(client, server, remove=remove)
    else:
        (_remove if remove else _add)(client, server)


# -- editors and other clients ---------------------------------------------------------------------


def _show(name: str, server: Server, *, remove: bool) -> None:
    client = CLIENTS[name]
    planned = _planned(client, server, remove=remove)
    option = " --remove" if remove else ""
    if planned.nothing:
        _print(_nothing_to_do(client, planned, remove=remove))
        return
    what = f"take agtrace out of {client.title}" if remove else f"add agtrace to {client.title}"
    _print(f"To {what}, change {planned.path} like this:", "", *planned.lines(), "")
    _print(f"`agtrace setup {name}{option} --apply` makes this change, and no other.", *_doubts(client, server))


def _apply(name: str, server: Server, *, remove: bool) -> None:
    """Change a client's settings, if they aren't as they are to be already."""
    client = CLIENTS[name]
    planned = _planned(client, server, remove=remove)
    if planned.nothing:
        _print(_nothing_to_do(client, planned, remove=remove))
        return
    with together:
        planned.make()
    done = f"agtrace was taken out of {client.title}" if remove else f"agtrace was added to {client.title}"
    _print(f"{done}: {planned.path}", f"Restart {client.title} if it is running.", *_doubts(client, server))


def _planned(client: Client, server: Server, *, remove: bool) -> Change:
    if remove:
        return change.removing(client, server.machine)
    return change.adding(client, server.machine, server.executable, server.variables)


def _nothing_to_do(client: Client, planned: Change, *, remove: bool) -> str:
    if remove:
        return f"agtrace isn't in the settings of {client.title}, {planned.path}: nothing to do"
    return f"agtrace is in the settings of {client.title} already, {planned.path}: nothing to do"


def _doubts(client: Client, server: Server) -> Iterator[str]:
    if not is_installed(client, server.machine):
        yield f"({client.title} wasn't found on this machine.)"


def _print(*lines: str) -> None:
    """Print lines, which may quote a user's settings: secrets in them are masked."""
    use_rules_at_hand()
    _say("\n".join(lines))


# -- agents that have a command for it -------------------------------------------------------------

_WRITTEN = frozenset({"type", "command", "args", "env"})
"""The keys of an entry that the agents' own commands write."""


def _show_command(name: str, server: Server, *, remove: bool) -> None:
    """Print an agent's own command, and for adding also what to write into its settings instead."""
    agent = AGENTS[name]()
    place = config_path(agent, server.machine.home, server.machine.environment)
    if remove:
        _say(f"To take agtrace out of {agent.title}, run:\n\n  {shlex.join(take_out_command(agent))}\n")
        _say(f"(`agtrace setup {name} --remove --apply` runs it.)")
        return
    command = shlex.join(add_command(agent, server.executable, server.variables))
    _say(f"To add agtrace to {agent.title}, run:\n\n  {command}\n")
    undoes = f"`agtrace setup {name} --remove --apply` undoes it"
    hint = f"`agtrace setup {name} --apply` runs it, and keeps the environment of an existing entry; {undoes}"
    if shutil.which(agent.executable) is None:
        hint = f"{agent.executable} isn't on the PATH of this machine"
    snippet = agent.write_snippet(server.executable, server.variables).rstrip()
    _say(f"({hint}.) Or put this into {place}:\n\n{snippet}")


def _remove(name: str, server: Server) -> None:
    """Let the agent take our server out of its settings, if they have it."""
    agent = AGENTS[name]()
    place = config_path(agent, server.machine.home, server.machine.environment)
    if _entry(agent, place) is None:
        _say(f"agtrace isn't in the settings of {agent.title}, {place}: nothing to do")
        return
    command = take_out_command(agent)
    _require(agent)
    _say(shlex.join(command))
    with together:
        code = _run(command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}", UNREADABLE)


def _add(name: str, server: Server) -> None:
    """Let the agent add the server. An existing entry is replaced, but for its environment; if that fails, it stays."""
    from agtrace_indexer.redact import redact

    agent = AGENTS[name]()
    place = config_path(agent, server.machine.home, server.machine.environment)
    if name == "claude" and has_plugin(server.machine):
        _say(f"{agent.title} has agtrace as a plugin already: nothing to do")
        return
    _require(agent)
    before = _entry(agent, place)
    kept = {name: str(value) for name, value in ((before or {}).get("env") or {}).items()}
    command = add_command(agent, server.executable, kept | dict(server.variables))
    use_rules_at_hand()
    if any(redact(one) != one for one in (*command, json.dumps(before))):
        fail(f"the entry in {place} holds a secret, which a command would show to everybody: edit it there", UNREADABLE)
    _say(shlex.join(command))
    with together:
        code = _replaced(agent, before, command)
    if code:
        fail(f"{agent.executable} ended with exit code {code}; its settings are as they were", UNREADABLE)
    for key in sorted((before or {}).keys() - _WRITTEN):
        _say(f"{key} was set in {place} and is now gone: add it there again")


def _say(text: str) -> None:
    from agtrace_indexer.redact import redact

    from agtrace.render.terminal import plain

    sys.stdout.write(plain(redact(text)) + "\n")
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
        fail(f"{agent.executable} failed, and its old entry is gone from its settings: {before}", UNREADABLE)
    return code


def _run(command: Sequence[str], *, quietly: bool = False) -> int:
    """Run an agent's command and return its exit code; Ctrl-C doesn't reach it."""
    import subprocess

    try:
        return subprocess.run(command, check=False, capture_output=quietly, start_new_session=True).returncode
    except OSError as error:
        fail(f"{command[0]} can't be run: {error.strerror or error}", UNREADABLE)


_PATHS = ("AGTRACE_DATA_DIR", "AGTRACE_CONFIG")


@click.command()
@click.option("--apply", is_flag=True, help="Write the file and start the service, now and at every login.")
@click.option("--remove", is_flag=True, help="Stop the service and delete its file.")
def service(apply: bool, remove: bool) -> None:
    """Keep the index fresh in the background: show the service that does; --apply installs it.

    Agents delete their logs after some time; with the service, the index has read them by then. It runs
    `agtrace index --watch` as a user service of systemd or launchd, with the folders that are set now.
    """
    if apply and remove:
        raise click.UsageError("--apply can't be combined with --remove")

    def tell_step(line: str) -> None:
        print_lines([line])

    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])
    user = os.getuid() if hasattr(os, "getuid") else 0
    found = upkeep.service(sys.platform, executable, _absolute(load().environment), Path.home(), user)
    if apply:
        upkeep.install(found, tell_step)
        print_lines(["the index is kept fresh from now on", found.hint])
    elif remove and not found.path.is_file():
        print_lines(["the service is not installed"])
    elif remove:
        failed = upkeep.remove(found, tell_step)
        if failed is not None:
            tell(failed)
    else:
        state = "not installed"
        if found.path.is_file():
            state = "installed and running" if upkeep.is_running(found) else "installed, but not running"
        print_lines(
            [
                f"The service is {state}. `agtrace service --apply` writes this to {found.path}:",
                "",
                *(f"  {line}".rstrip() for line in found.content.decode().splitlines()),
                "",
                "and runs:",
                "",
                *(f"  {shlex.join(command)}" for command in found.start),
                "",
                found.hint,
            ]
        )


def _absolute(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with absolute paths: a service runs in another folder."""
    return {name: os.path.abspath(value) if name in _PATHS and value else value for name, value in environment.items()}
