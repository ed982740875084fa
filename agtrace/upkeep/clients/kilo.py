"""Kilo Code, the extension and its command-line agent, which share `kilo.jsonc` or `kilo.json` in `~/.config/kilo`.

Source: https://kilo.ai/docs/automate/mcp/using-in-kilo-code (`mcp`, with the entries of OpenCode, from which it came).
Earlier versions of the extension kept `mcp_settings.json` in a folder of VS Code, which isn't edited.
"""

from __future__ import annotations

from agtrace.upkeep.clients.client import Client, Language, below
from agtrace.upkeep.clients.opencode import local_entry

KILO = Client(
    name="kilo",
    title="Kilo Code",
    programs=("kilo",),
    files=lambda machine: [machine.xdg_config() / "kilo" / name for name in ("kilo.json", "kilo.jsonc")],
    folders=lambda machine: [machine.xdg_config() / "kilo"],
    language=Language.JSONC,
    path=below("mcp"),
    entry=local_entry,
    documented="https://kilo.ai/docs/automate/mcp/using-in-kilo-code",
)
"""Kilo Code as a client of our server."""
