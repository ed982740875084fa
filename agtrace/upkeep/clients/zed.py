"""Zed, whose servers are in `settings.json`, JSON with comments and trailing commas, below `context_servers`.

Sources: https://zed.dev/docs/ai/mcp (`command`, `args`, `env`), https://zed.dev/docs/configuring-zed (comments) and
`crates/paths/src/paths.rs` of zed-industries/zed (the folder: of macOS, too, `~/.config/zed`).
"""

from __future__ import annotations

from pathlib import Path

from agtrace.upkeep.clients.client import Client, Language, Machine, below, plain_entry


def _folder(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.roaming() / "Zed"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    outside = machine.environment.get("FLATPAK_XDG_CONFIG_HOME")  # what Flatpak calls the user's own folder
    return (Path(outside) if outside else machine.xdg_config()) / "zed"


ZED = Client(
    name="zed",
    title="Zed",
    programs=("zed", "zeditor"),
    files=lambda machine: [_folder(machine) / "settings.json"],
    folders=lambda machine: [_folder(machine)],
    language=Language.JSONC,
    path=below("context_servers"),
    entry=plain_entry,
    documented="https://zed.dev/docs/ai/mcp",
)
"""Zed as a client of our server."""
