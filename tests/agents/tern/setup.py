"""Adding our MCP server to Tern, whose settings are JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agtrace_indexer.providers.setup import SERVER_NAME, Setup, entry, json_servers, json_snippet, options


def _add(variables: Sequence[str]) -> list[str]:
    return ["feed", SERVER_NAME, *options("-e", variables), "--"]


def _snippet(executable: str, variables: Mapping[str, str]) -> str:
    return json_snippet(entry(executable, variables))


def _over_http(url: str, token: str | None) -> str:
    return f"tern feed {SERVER_NAME} {url}"


SETUP = Setup(
    title="Tern",
    executable="tern",
    add_arguments=_add,
    remove_arguments=(),
    put_back_arguments=(),
    home_variable="TERN_NEST",
    config_file=".tern/settings.json",
    moved_config_file="settings.json",
    write_snippet=_snippet,
    read_servers=json_servers,
    over_http=_over_http,
)
"""Tern as a client of our server."""
