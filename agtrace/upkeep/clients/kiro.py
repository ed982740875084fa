"""Kiro, the editor and its command-line agent, which share `~/.kiro/settings/mcp.json`.

Source: https://kiro.dev/docs/cli/mcp/configuration (`mcpServers`; `command`, `args`, `env`, `disabled`).
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below, plain_entry

KIRO = Client(
    name="kiro",
    title="Kiro",
    programs=("kiro-cli", "kiro"),
    files=lambda machine: [machine.home / ".kiro" / "settings" / "mcp.json"],
    folders=lambda machine: [machine.home / ".kiro"],
    language=Language.JSONC,
    path=below("mcpServers"),
    entry=plain_entry,
    documented="https://kiro.dev/docs/cli/mcp/configuration",
)
"""Kiro as a client of our server."""
