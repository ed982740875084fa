"""VS Code, whose servers for all workspaces are in `mcp.json` of the user's default profile, as JSON with comments.

Sources: https://code.visualstudio.com/docs/copilot/reference/mcp-configuration (`servers`, `type` is required) and
https://code.visualstudio.com/docs/configure/settings (the folder `Code/User` by platform). `code --add-mcp` adds an
entry as well, but needs the program, shows nothing before, and has no counterpart that takes the entry out.
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below, typed_entry

VSCODE = Client(
    name="vscode",
    title="VS Code",
    programs=("code",),
    files=lambda machine: [machine.app_data() / "Code" / "User" / "mcp.json"],
    folders=lambda machine: [machine.app_data() / "Code"],
    language=Language.JSONC,
    path=below("servers"),
    entry=typed_entry("stdio"),
    documented="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
)
"""VS Code as a client of our server."""
