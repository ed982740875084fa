"""`agtrace setup`: add the MCP server to an agent or editor, take it out, or list those that are here."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from agtrace.commands.client_setup import Server
from agtrace.settings import load
from agtrace.upkeep.clients import CLIENTS, Machine
from agtrace.upkeep.programs import NAMES, named

_DATA_DIR = "AGTRACE_DATA_DIR"


class _ClientName(click.Choice[str]):
    """The name of a client, or of an agent in any of its spellings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that the list has."""
        return super().convert(named(value) or value, param, ctx)


@click.command(epilog=f"Clients: {', '.join(NAMES)}.")
@click.argument("client", type=_ClientName(NAMES), required=False, metavar="[CLIENT]")
@click.option("--apply", is_flag=True, help="Make the change, instead of only showing it.")
@click.option("--remove", is_flag=True, help="Take the server out again, instead of adding it.")
def setup(client: str | None, apply: bool, remove: bool) -> None:
    """Add the MCP server to an agent or editor: shows what would change; --apply changes it. Without CLIENT: list them.

    Nothing else in their settings changes. The list says which clients are on this machine, and which have the server.
    """
    server = _server()
    if client is None:
        if apply or remove:
            raise click.UsageError("--apply and --remove need a CLIENT; `agtrace setup` lists them")
        from agtrace.render.programs import listed
        from agtrace.upkeep.programs import programs

        listed(list(programs(server.machine)))
    elif client in CLIENTS:
        _edit(client, server, apply=apply, remove=remove)
    else:
        _let_the_agent(client, server, apply=apply, remove=remove)


def _server() -> Server:
    environment = load().environment
    executable = os.path.abspath(shutil.which("agtrace") or sys.argv[0])  # clients start it from other folders
    variables = {_DATA_DIR: os.path.abspath(environment[_DATA_DIR])} if environment.get(_DATA_DIR) else {}
    return Server(Machine(Path.home(), environment, sys.platform), executable, variables)


def _edit(client: str, server: Server, *, apply: bool, remove: bool) -> None:
    from agtrace.commands import client_setup

    if apply:
        client_setup.apply(client, server, remove=remove)
    else:
        client_setup.show(client, server, remove=remove)


def _let_the_agent(agent: str, server: Server, *, apply: bool, remove: bool) -> None:
    from agtrace.commands import agent_setup

    if not apply:
        agent_setup.show(agent, server, remove=remove)
    elif remove:
        agent_setup.remove(agent, server)
    else:
        agent_setup.apply(agent, server)
