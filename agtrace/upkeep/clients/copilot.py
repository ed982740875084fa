"""GitHub Copilot CLI, whose servers are in `~/.copilot/mcp-config.json`; `COPILOT_HOME` moves the folder.

Sources: https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers (`type` local, `tools`
with `*` for all of them) and https://code.visualstudio.com/docs/agents/reference/mcp-configuration.md (`COPILOT_HOME`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace.upkeep.clients.client import Client, Language, Machine, below, plain_entry


def _folder(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", ".copilot")


def _entry(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "local", **plain_entry(executable, variables), "tools": ["*"]}


COPILOT = Client(
    name="copilot",
    title="GitHub Copilot CLI",
    programs=("copilot",),
    files=lambda machine: [_folder(machine) / "mcp-config.json"],
    folders=lambda machine: [_folder(machine)],
    language=Language.JSONC,
    path=below("mcpServers"),
    entry=_entry,
    documented="https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
)
"""GitHub Copilot CLI as a client of our server."""
