"""Goose, whose extensions are in `config.yaml`.

Sources: https://block.github.io/goose/docs/guides/config-files (the folder by platform; `extensions`, the shape of a
`stdio` extension) and `crates/goose/src/config/paths.rs` of block/goose (`GOOSE_PATH_ROOT`; XDG on Linux and macOS).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME

from agtrace.upkeep.clients.client import Client, Language, Machine, below

_SECONDS = 300
"""How long Goose waits for an answer: its own default."""


def _folder(machine: Machine) -> Path:
    root = machine.environment.get("GOOSE_PATH_ROOT")
    if root:
        return Path(root) / "config"
    if machine.platform == "win32":
        return machine.roaming() / "Block" / "goose" / "config"
    return machine.xdg_config() / "goose"


def _entry(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": SERVER_NAME,
        "description": "Past sessions of coding agents",
        "cmd": executable,
        "args": list(SERVER_ARGUMENTS),
        "envs": dict(variables),
        "env_keys": [],
        "timeout": _SECONDS,
    }


GOOSE = Client(
    name="goose",
    title="Goose",
    programs=("goose",),
    files=lambda machine: [_folder(machine) / "config.yaml"],
    folders=lambda machine: [_folder(machine)],
    language=Language.YAML,
    path=below("extensions"),
    entry=_entry,
    documented="https://block.github.io/goose/docs/guides/config-files",
)
"""Goose as a client of our server."""
