"""What `agtrace setup` does for each coding agent: how our MCP server is added to it, and where that is written.

Nothing here runs a command, writes a file or looks at the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.providers import registry
from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME, Setup

AGENTS: dict[str, Setup] = {name: load() for name, load in registry.SETUPS.items()}
"""The agents that `agtrace setup` can be asked for, by the name the user types."""


def add_command(agent: Setup, executable: str, variables: Mapping[str, str]) -> list[str]:
    """The command line that adds our server for all of the user's projects, with these environment variables.

    `executable` is how the agent shall start us: a name on its PATH or, better, an absolute path.
    """
    written = [f"{name}={value}" for name, value in variables.items()]
    return [agent.executable, *agent.add_arguments(written), executable, *SERVER_ARGUMENTS]


def remove_command(agent: Setup) -> list[str] | None:
    """The command line that must run before `add_command` where an earlier entry stands in its way."""
    return [agent.executable, *agent.remove_arguments] if agent.remove_arguments else None


def put_back_command(agent: Setup, entry: Mapping[str, Any]) -> list[str]:
    """The command line that writes an entry again which `remove_command` took away."""
    return [agent.executable, *agent.put_back_arguments, json.dumps(entry, ensure_ascii=False)]


def snippet(agent: Setup, executable: str, variables: Mapping[str, str]) -> str:
    """The text that a person who edits settings by hand adds to `config_path`; it ends with a newline.

    Claude Code's is also what a project's `.mcp.json` holds.
    """
    return agent.write_snippet(executable, variables)


def entry_in(agent: Setup, settings: str) -> dict[str, Any] | None:
    """Our entry in the text of the agent's settings file; None where there is none.

    Raises `ValueError` where the text can't be read and yet names us.
    """
    try:
        entry = agent.read_servers(settings)[SERVER_NAME]
        return dict(entry)
    except LookupError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        if SERVER_NAME not in settings:
            return None
        raise ValueError(f"can't be read ({error})") from error


def config_path(agent: Setup, home: Path, environment: Mapping[str, str]) -> Path:
    """The file in which the agent keeps the servers of all projects; it need not exist.

    `home` is the user's home directory. An empty variable counts as unset, as it does for the agents.
    """
    moved_to = environment.get(agent.home_variable)
    return Path(moved_to) / agent.moved_config_file if moved_to else home / agent.config_file


def commands_over_http(url: str, token: str | None) -> list[str]:
    """The lines for a shell that tell the agents of our server at `url`.

    `token` is what the shell puts the token for, inside of double quotes; None where none is asked for.
    """
    return [agent.over_http(url, token) for agent in AGENTS.values()]
