"""The programs that our server can be added to: which are on this machine, and which have it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.providers import registry
from agtrace_indexer.providers.setup import Setup

from agtrace.upkeep.agents import AGENTS, config_path, entry_in
from agtrace.upkeep.clients import CLIENTS, Client, Machine, change
from agtrace.upkeep.clients.change import Refused

NAMES = (*AGENTS, *(name for name in CLIENTS if name not in AGENTS))
"""What `agtrace setup` can be given: agents that add servers themselves, and programs whose settings we edit."""


def named(text: str) -> str | None:
    """Return which of `NAMES` is meant by one of them, or by any of an agent's names (`registry.named`)."""
    agent = registry.AGENTS.get(registry.named(text) or "")
    names = (text, agent.command, agent.name) if agent else (text,)
    return next((name for name in names if name in NAMES), None)


class Program(NamedTuple):
    """A program, and what is known of it on this machine."""

    name: str
    title: str
    found: bool
    """Whether the program, its settings or its folder are here."""
    logs: bool
    """Whether the folder of its logs is here."""
    added: bool | None
    """Whether it has our server; None if its settings can't be read."""
    file: Path
    trouble: str | None = None
    """Why its settings can't be read."""


def programs(machine: Machine) -> Iterator[Program]:
    """Yield every program, in the order of `NAMES`."""
    for name in NAMES:
        yield _edited(CLIENTS[name], machine) if name in CLIENTS else _agent(name, AGENTS[name](), machine)


def found(client: Client, machine: Machine) -> bool:
    """Whether a client, its settings or a folder of its are on the machine."""
    places = (*client.files(machine), *(client.folder(machine) / name for name in client.traces))
    return any(_on_path(name, machine) for name in client.programs) or any(place.exists() for place in places)


def _on_path(program: str, machine: Machine) -> bool:
    return shutil.which(program, path=machine.environment.get("PATH")) is not None


def _has_logs(name: str, machine: Machine) -> bool:
    agent = registry.AGENTS.get(registry.named(name) or "")
    homes = (agent.home, *agent.elsewhere) if agent else ()
    return any(root.exists() for home in homes for root in home.roots(machine.environment, machine.home))


def _edited(client: Client, machine: Machine) -> Program:
    here, logs = found(client, machine), _has_logs(client.name, machine)
    try:
        file, added = change.where(client, machine)
    except Refused as error:
        return Program(client.name, client.title, here, logs, None, client.files(machine)[0], str(error))
    return Program(client.name, client.title, here, logs, added, file)


def _agent(name: str, agent: Setup, machine: Machine) -> Program:
    file = config_path(agent, machine.home, machine.environment)
    here, logs = _on_path(agent.executable, machine) or file.exists(), _has_logs(name, machine)
    try:
        added = file.exists() and entry_in(agent, file.read_text(encoding="utf-8")) is not None
    except (OSError, ValueError) as error:
        return Program(name, agent.title, here, logs, None, file, f"{file}: {error}")
    return Program(name, agent.title, here, logs, added, file)
