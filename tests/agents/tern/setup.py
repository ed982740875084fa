"""Adding our MCP server to Tern, whose settings are JSON."""

from agtrace_indexer.providers.setup import Setup

SETUP = Setup(
    title="Tern",
    executable="tern",
    home_variable="TERN_NEST",
    config_file=".tern/settings.json",
    moved_config_file="settings.json",
    scope=(),
)
"""Tern as a client of our server."""
