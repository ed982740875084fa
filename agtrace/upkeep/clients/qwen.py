"""Qwen Code, whose servers are in `~/.qwen/settings.json`; `QWEN_HOME` names another folder instead of `~/.qwen`.

Sources: https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/ (`mcpServers`) and `getGlobalQwenDir` of
QwenLM/qwen-code (the variable). `qwen mcp add --scope user` would write the same; the file is edited because the
program needn't be there, and what is going to change can be shown before. Version 0.24.4 takes comments in the file,
and refuses to start for a trailing comma.
"""

from __future__ import annotations

from pathlib import Path

from agtrace.upkeep.clients.client import Client, Language, Machine, below, plain_entry


def _folder(machine: Machine) -> Path:
    return machine.folder("QWEN_HOME", ".qwen")


QWEN = Client(
    name="qwen",
    title="Qwen Code",
    programs=("qwen",),
    files=lambda machine: [_folder(machine) / "settings.json"],
    folders=lambda machine: [_folder(machine)],
    language=Language.COMMENTED,
    path=below("mcpServers"),
    entry=plain_entry,
    documented="https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
)
"""Qwen Code as a client of our server."""
