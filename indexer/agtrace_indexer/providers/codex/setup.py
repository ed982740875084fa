"""Adding our MCP server to the Codex CLI, whose settings are TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME, TOKEN_VARIABLE, Setup, options


def _add(variables: Sequence[str]) -> list[str]:
    return ["mcp", "add", SERVER_NAME, *options("--env", variables), "--"]


def _snippet(executable: str, variables: Mapping[str, str]) -> str:
    arguments = ", ".join(_toml_string(argument) for argument in SERVER_ARGUMENTS)
    text = f"[mcp_servers.{SERVER_NAME}]\ncommand = {_toml_string(executable)}\nargs = [{arguments}]\n"
    if variables:
        text += f"\n[mcp_servers.{SERVER_NAME}.env]\n"
    return text + "".join(f"{name} = {_toml_string(value)}\n" for name, value in variables.items())


def _toml_string(value: object) -> str:
    # A JSON string is a TOML basic string, except for DEL, which must be escaped in TOML.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _servers(text: str) -> Any:
    return tomllib.loads(text)["mcp_servers"]


def _over_http(url: str, token: str | None) -> str:
    """Write the command; Codex takes the token only from the environment, with which it must be started."""
    exported = f'export {TOKEN_VARIABLE}="{token}"; ' if token else ""
    variable = f" --bearer-token-env-var {TOKEN_VARIABLE}" if token else ""
    return f"{exported}codex mcp add {SERVER_NAME} --url {url}{variable}"


SETUP = Setup(
    title="Codex CLI",
    executable="codex",
    add_arguments=_add,
    remove_arguments=(),
    put_back_arguments=(),
    home_variable="CODEX_HOME",
    config_file=".codex/config.toml",
    moved_config_file="config.toml",
    write_snippet=_snippet,
    read_servers=_servers,
    over_http=_over_http,
    take_out_arguments=("mcp", "remove", SERVER_NAME),
)
"""The Codex CLI as a client of our server."""
