"""Adding our MCP server to Claude Code. Its snippet also works in a project's `.mcp.json`."""

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
    return ["mcp", "add", "--scope", "user", SERVER_NAME, *options("--env", variables), "--"]


def _snippet(executable: str, variables: Mapping[str, str]) -> str:
    return json_snippet({"type": "stdio", **entry(executable, variables)})


def _over_http(url: str, token: str | None) -> str:
    return f"claude mcp add --scope user --transport http {SERVER_NAME} {url}{authorization(token)}"


SETUP = Setup(
    title="Claude Code",
    executable="claude",
    add_arguments=_add,
    remove_arguments=("mcp", "remove", "--scope", "user", SERVER_NAME),
    put_back_arguments=("mcp", "add-json", "--scope", "user", SERVER_NAME),
    home_variable="CLAUDE_CONFIG_DIR",
    config_file=".claude.json",
    moved_config_file=".claude.json",
    write_snippet=_snippet,
    read_servers=json_servers,
    over_http=_over_http,
)
"""Claude Code as a client of our server."""
