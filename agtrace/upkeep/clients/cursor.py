"""Cursor, the editor and its command-line agent, which share `~/.cursor/mcp.json`.

Source: https://cursor.com/docs/mcp (`mcpServers`; `type`, `command`, `args`, `env`).
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below, typed_entry

CURSOR = Client(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    files=lambda machine: [machine.home / ".cursor" / "mcp.json"],
    folders=lambda machine: [machine.home / ".cursor"],
    language=Language.JSONC,
    path=below("mcpServers"),
    entry=typed_entry("stdio"),
    documented="https://cursor.com/docs/mcp",
)
"""Cursor as a client of our server."""
