"""How our MCP server gets into the settings of a coding agent: what an agent's package says of it.

Nothing here runs a command, writes a file or looks at the environment: the caller does, and asks first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SERVER_NAME = "agtrace"
"""The name under which agents list our server."""

SERVER_ARGUMENTS = ("mcp",)
"""The arguments that make our executable serve MCP over stdio."""

TOKEN_VARIABLE = "AGTRACE_HTTP_TOKEN"
"""Where an agent finds the token that our HTTP transport asks for, if it takes it from the environment."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One coding agent, as far as adding an MCP server to it goes."""

    title: str
    """The name people know the program by."""
    executable: str
    """What to look for on the PATH."""
    add_arguments: Callable[[Sequence[str]], list[str]]
    """Writes the agent's own arguments, up to where our command starts, for variables of the form `NAME=value`."""
    remove_arguments: tuple[str, ...]
    """The agent's own arguments that remove an earlier entry; empty where adding replaces it in one step."""
    put_back_arguments: tuple[str, ...]
    """Those that write an entry as it was, which follows as JSON; empty where none is ever removed."""
    home_variable: str
    """The environment variable that moves the agent's settings."""
    config_file: str
    """The settings file, relative to the user's home directory."""
    moved_config_file: str
    """The settings file, relative to the folder that `home_variable` names."""
    write_snippet: Callable[[str, Mapping[str, str]], str]
    """Writes the entry for our executable and its variables in the settings file's language."""
    read_servers: Callable[[str], Any]
    """Reads the servers from the text of the settings file. Raises `ValueError`, `LookupError` or `TypeError`."""
    over_http: Callable[[str, str | None], str]
    """Writes the line for a shell that tells the agent of our server at a URL; the other text is what the shell puts
    the token for, inside of double quotes, or None where none is asked for."""


def options(name: str, values: Sequence[str]) -> list[str]:
    """The same option before each of these values."""
    return [part for value in values for part in (name, value)]


def entry(executable: str, variables: Mapping[str, str]) -> dict[str, object]:
    """Our server as most agents write one down."""
    environment = {"env": dict(variables)} if variables else {}
    return {"command": executable, "args": list(SERVER_ARGUMENTS), **environment}


def json_snippet(server: dict[str, object]) -> str:
    """An entry in a settings file of JSON with `mcpServers`."""
    return json.dumps({"mcpServers": {SERVER_NAME: server}}, indent=2, ensure_ascii=False) + "\n"


def json_servers(text: str) -> Any:
    """The servers of such a settings file."""
    return json.loads(text)["mcpServers"]


def authorization(token: str | None) -> str:
    """The option that sends a token with each request; nothing without one."""
    return f' --header "Authorization: Bearer {token}"' if token else ""
