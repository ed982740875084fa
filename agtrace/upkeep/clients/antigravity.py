"""Antigravity, the editor and its command-line agent, which share `~/.gemini/config/mcp_config.json`.

Sources: https://antigravity.google/docs/mcp (`mcpServers`; `command`, `args`, `env`) and
`docs/rules/antigravity-mcp-valid.md` of stbenjam/skillsaw, which measured `agy` 1.1.26: a file that it can't parse
keeps it from starting. Earlier versions read `~/.gemini/antigravity/mcp_config.json`, which is edited if only that
exists.
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below, plain_entry

ANTIGRAVITY = Client(
    name="antigravity",
    title="Antigravity",
    programs=("agy", "antigravity"),
    files=lambda machine: [
        machine.home / ".gemini" / folder / "mcp_config.json" for folder in ("config", "antigravity")
    ],
    folders=lambda machine: [machine.home / ".gemini" / name for name in ("config", "antigravity", "antigravity-cli")],
    language=Language.JSONC,
    path=below("mcpServers"),
    entry=plain_entry,
    documented="https://antigravity.google/docs/mcp",
)
"""Antigravity as a client of our server."""
