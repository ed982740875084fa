"""Adding our MCP server to Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agtrace_indexer.providers.setup import (
    SERVER_NAME,
    Setup,
    authorization,
    entry,
    json_servers,
    json_snippet,
    options,
)


def _add(variables: Sequence[str]) -> list[str]:
    return ["mcp", "add", "--scope", "user", *options("--env", variables), SERVER_NAME]


def _snippet(executable: str, variables: Mapping[str, str]) -> str:
    return json_snippet(entry(executable, variables))


def _over_http(url: str, token: str | None) -> str:
    return f"gemini mcp add --scope user --transport http {SERVER_NAME} {url}{authorization(token)}"


SETUP = Setup(
    title="Gemini CLI",
    executable="gemini",
    add_arguments=_add,
    remove_arguments=(),
    put_back_arguments=(),
    home_variable="GEMINI_CLI_HOME",
    config_file=".gemini/settings.json",
    moved_config_file=".gemini/settings.json",
    write_snippet=_snippet,
    read_servers=json_servers,
    over_http=_over_http,
    take_out_arguments=("mcp", "remove", "--scope", "user", SERVER_NAME),
)
"""Gemini CLI as a client of our server."""
