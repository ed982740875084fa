"""How our MCP server gets into the settings of a coding agent, as described by the agent's package.

Nothing here runs a command, writes a file or reads the environment: the caller does, after asking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

SERVER_NAME = "agtrace"
"""The name under which agents list our server."""

SERVER_ARGUMENTS = ("mcp",)
"""The arguments with which our executable serves MCP over stdio."""

TOKEN_VARIABLE = "AGTRACE_HTTP_TOKEN"
"""The environment variable with the token for our HTTP transport, for agents that take it from there."""


class Setup(Struct, frozen=True):
    """How to add an MCP server to a coding agent."""

    title: str
    """The name people know the program by."""
    executable: str
    """The program to find on the PATH."""
    add_arguments: Callable[[Sequence[str]], list[str]]
    """Writes the agent's own arguments, up to where our command starts, for variables of the form `NAME=value`."""
    remove_arguments: tuple[str, ...]
    """The agent's own arguments that remove an earlier entry; empty if adding replaces it in one step."""
    put_back_arguments: tuple[str, ...]
    """Those that restore an entry, which follows as JSON; empty if none is ever removed."""
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
    """Writes the shell command that adds our server at a URL; the second argument is a shell expression for the token,
    to be used inside double quotes, or None if no token is required."""
    take_out_arguments: tuple[str, ...] = ()
    """The agent's own arguments that take our entry out for good; `remove_arguments` if empty."""


def options(name: str, values: Sequence[str]) -> list[str]:
    """Return the values, each preceded by the same option."""
    return [part for value in values for part in (name, value)]


def entry(executable: str, variables: Mapping[str, str]) -> dict[str, object]:
    """Return our server's entry in the form that most agents use."""
    environment = {"env": dict(variables)} if variables else {}
    return {"command": executable, "args": list(SERVER_ARGUMENTS), **environment}


def json_snippet(server: dict[str, object]) -> str:
    """Return an entry for a JSON settings file with `mcpServers`."""
    return json.dumps({"mcpServers": {SERVER_NAME: server}}, indent=2, ensure_ascii=False) + "\n"


def json_servers(text: str) -> Any:
    """Return the servers in such a settings file."""
    return json.loads(text)["mcpServers"]


def authorization(token: str | None) -> str:
    """Return the option that sends a token with each request; an empty string without a token."""
    return f' --header "Authorization: Bearer {token}"' if token else ""
