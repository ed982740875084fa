"""Claude Desktop, which reads `claude_desktop_config.json` with a parser of plain JSON when it starts.

Source: https://modelcontextprotocol.io/docs/develop/connect-local-servers (macOS and Windows; on Linux the folder is
the one that every Electron program uses).
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below, plain_entry

CLAUDE_DESKTOP = Client(
    name="claude-desktop",
    title="Claude Desktop",
    programs=("claude-desktop",),
    files=lambda machine: [machine.app_data() / "Claude" / "claude_desktop_config.json"],
    folders=lambda machine: [machine.app_data() / "Claude"],
    language=Language.JSON,
    path=below("mcpServers"),
    entry=plain_entry,
    documented="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
)
"""Claude Desktop as a client of our server."""
