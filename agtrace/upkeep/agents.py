"""How our MCP server is added to each coding agent, and where the agent keeps that setting, for `agtrace setup`.

Nothing here runs a command, writes a file or reads the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.providers import registry
from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME, Setup

from agtrace.upkeep import client_settings
from agtrace.upkeep.client_settings import Refused
from agtrace.upkeep.clients import CLIENTS, Client, Machine

AGENTS = registry.SETUPS
"""The agents that `agtrace setup` knows, by the name that the user types: each loads how our server is added to it."""


def add_command(agent: Setup, executable: str, variables: Mapping[str, str]) -> list[str]:
    """Return the command line that adds our server to all of the user's projects, with these environment variables.

    `executable` is what the agent runs to start us: a name on its PATH or, better, an absolute path.
    """
    written = [f"{name}={value}" for name, value in variables.items()]
    return [agent.executable, *agent.add_arguments(written), executable, *SERVER_ARGUMENTS]


def remove_command(agent: Setup) -> list[str] | None:
    """Return the command line to run before `add_command` if there is an entry already; None if none is needed."""
    return None if agent.replaces else take_out_command(agent)


def take_out_command(agent: Setup) -> list[str]:
    """Return the command line that takes our server out of the agent's settings."""
    return [agent.executable, "mcp", "remove", *agent.scope, SERVER_NAME]


def put_back_command(agent: Setup, entry: Mapping[str, Any]) -> list[str]:
    """Return the command line that restores an entry that `remove_command` removed."""
    return [agent.executable, "mcp", "add-json", *agent.scope, SERVER_NAME, json.dumps(entry, ensure_ascii=False)]


def entry_in(agent: Setup, settings: str) -> dict[str, Any] | None:
    """Return our entry in the text of the agent's settings file; None if there is none.

    Raises `ValueError` if the text can't be parsed but contains our name.
    """
    try:
        entry = agent.read_servers(settings)[SERVER_NAME]
        return dict(entry)
    except LookupError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        if SERVER_NAME not in settings:
            return None
        raise ValueError(f"the file can't be parsed ({error})") from error


def config_path(agent: Setup, home: Path, environment: Mapping[str, str]) -> Path:
    """Return the file in which the agent keeps the servers for all projects; it may not exist.

    `home` is the user's home directory. An empty variable counts as unset, as it does for the agents.
    """
    moved_to = environment.get(agent.home_variable)
    return Path(moved_to) / agent.moved_config_file if moved_to else home / agent.config_file


def has_plugin(machine: Machine) -> bool:
    """Whether Claude Code has our plugin turned on, which brings the server."""
    folder = machine.environment.get("CLAUDE_CONFIG_DIR") or machine.home / ".claude"
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):  # whatever is written there
        plugins = json.loads(Path(folder, "settings.json").read_text("utf-8"))["enabledPlugins"]
        return any(on is True and name.partition("@")[0] == SERVER_NAME for name, on in plugins.items())
    return False


# -- programs -----------------------------------------------------------------------------------------

NAMES = (*AGENTS, *(name for name in CLIENTS if name not in AGENTS))
"""What `agtrace setup` can be given: agents that add servers themselves, and programs whose settings we edit."""


def agent_by_name(text: str) -> str | None:
    """Return which of `NAMES` is meant by one of them, or by any of an agent's names (`registry.named`)."""
    agent = registry.AGENTS.get(registry.agent_by_name(text) or "")
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


def is_installed(client: Client, machine: Machine) -> bool:
    """Whether a client, its settings or a folder of its are on the machine."""
    places = (*client.files(machine), *(client.folder(machine) / name for name in client.traces))
    return any(_on_path(name, machine) for name in client.programs) or any(place.exists() for place in places)


def _on_path(program: str, machine: Machine) -> bool:
    return shutil.which(program, path=machine.environment.get("PATH")) is not None


def _has_logs(name: str, machine: Machine) -> bool:
    agent = registry.AGENTS.get(registry.agent_by_name(name) or "")
    homes = (agent.home, *agent.elsewhere) if agent else ()
    return any(root.exists() for home in homes for root in home.roots(machine.environment, machine.home))


def _edited(client: Client, machine: Machine) -> Program:
    here, logs = is_installed(client, machine), _has_logs(client.name, machine)
    try:
        file, added = client_settings.where(client, machine)
    except Refused as error:
        return Program(client.name, client.title, here, logs, None, client.files(machine)[0], str(error))
    return Program(client.name, client.title, here, logs, added, file)


def _agent(name: str, agent: Setup, machine: Machine) -> Program:
    file = config_path(agent, machine.home, machine.environment)
    here, logs = _on_path(agent.executable, machine) or file.exists(), _has_logs(name, machine)
    try:
        entry = file.exists() and entry_in(agent, file.read_text(encoding="utf-8")) is not None
        added = entry or (name == "claude" and has_plugin(machine))
    except (OSError, ValueError) as error:
        return Program(name, agent.title, here, logs, None, file, f"{file}: {error}")
    return Program(name, agent.title, here, logs, added, file)
