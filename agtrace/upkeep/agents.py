"""How our MCP server is added to each coding agent, and where the agent keeps that setting, for `agtrace setup`.

Nothing here runs a command, writes a file or reads the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.providers import registry
from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME, Setup

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
    return [agent.executable, *agent.remove_arguments]


def put_back_command(agent: Setup, entry: Mapping[str, Any]) -> list[str]:
    """Return the command line that restores an entry that `remove_command` removed."""
    return [agent.executable, *agent.put_back_arguments, json.dumps(entry, ensure_ascii=False)]


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
