"""How our MCP server gets into the settings of a coding agent.

Nothing here runs a command, writes a file or reads the environment: the caller does, after asking.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

SERVER_NAME = "agtrace"
"""The name under which agents list our server."""

SERVER_ARGUMENTS = ("mcp",)
"""The arguments with which our executable serves MCP over stdio."""

TOKEN_VARIABLE = "AGTRACE_HTTP_TOKEN"
"""The environment variable with the token for our HTTP transport, for agents that take it from there."""


class Setup(Struct, frozen=True):
    """How to add an MCP server to a coding agent, whose program has commands `mcp add` and `mcp remove`."""

    title: str
    """The name people know the program by."""
    executable: str
    """The program to find on the PATH."""
    home_variable: str
    """The environment variable that moves the agent's settings."""
    config_file: str
    """The settings file, relative to the user's home directory."""
    moved_config_file: str
    """The settings file, relative to the folder that `home_variable` names."""
    scope: tuple[str, ...] = ("--scope", "user")
    """The arguments that choose the settings for all projects."""
    name_last: bool = False
    """Whether the server's name comes after its variables, and its command without `--`."""
    replaces: bool = True
    """Whether adding replaces an earlier entry, which otherwise has to be removed before."""
    entry: Mapping[str, object] = {}
    """What an entry has besides our command."""
    toml: bool = False
    """Whether the settings are TOML instead of JSON, and have the name of a token's variable instead of the token."""

    def add_arguments(self, variables: Sequence[str]) -> list[str]:
        """Return the agent's own arguments, up to where our command starts, for variables of the form `NAME=value`."""
        options = [part for value in variables for part in ("--env", value)]
        named = [*options, SERVER_NAME] if self.name_last else [SERVER_NAME, *options, "--"]
        return ["mcp", "add", *self.scope, *named]

    def write_snippet(self, executable: str, variables: Mapping[str, str]) -> str:
        """Return the entry for our executable and its variables in the language of the settings file."""
        environment = {"env": dict(variables)} if variables else {}
        entry = {**self.entry, "command": executable, "args": list(SERVER_ARGUMENTS), **environment}
        if not self.toml:
            return json.dumps({"mcpServers": {SERVER_NAME: entry}}, indent=2, ensure_ascii=False) + "\n"
        arguments = ", ".join(map(_toml_string, SERVER_ARGUMENTS))
        text = f"[mcp_servers.{SERVER_NAME}]\ncommand = {_toml_string(executable)}\nargs = [{arguments}]\n"
        if variables:
            text += f"\n[mcp_servers.{SERVER_NAME}.env]\n"
        return text + "".join(f"{name} = {_toml_string(value)}\n" for name, value in variables.items())

    def read_servers(self, text: str) -> Any:
        """Return the servers in the text of the settings file. Raises `ValueError`, `LookupError` or `TypeError`."""
        return tomllib.loads(text)["mcp_servers"] if self.toml else json.loads(text)["mcpServers"]

    def over_http(self, url: str, token: str | None) -> str:
        """Return the shell command that adds our server at a URL; `token` is a shell expression within double quotes.

        None if no token is required. The agent reads it from its environment: it is in no argument and no settings.
        """
        if self.toml:
            server, reading = f"{SERVER_NAME} --url {url}", f"--bearer-token-env-var {TOKEN_VARIABLE}"
        else:
            server = f"{' '.join(self.scope)} --transport http {SERVER_NAME} {url}"
            reading = f"--header 'Authorization: Bearer ${{{TOKEN_VARIABLE}}}'"
        command = f"{self.executable} mcp add {server}"
        return f'export {TOKEN_VARIABLE}="{token}"; {command} {reading}' if token else command


def _toml_string(value: object) -> str:
    # A JSON string is a TOML basic string, except for DEL, which must be escaped in TOML.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
