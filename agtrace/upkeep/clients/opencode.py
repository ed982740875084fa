"""OpenCode, whose global settings are `opencode.json` or `opencode.jsonc` below `~/.config/opencode`.

Sources: https://opencode.ai/docs/mcp-servers (version 1: names below `mcp`; `type` local, `command` a list,
`environment`), https://opencode.ai/v2/docs/mcp-servers/ (version 2: names below `mcp.servers`) and
https://opencode.ai/docs/migrate-v1.md (version 2 reads both). `enabled` isn't written: it is true by default in
version 1, and unknown to version 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agtrace_indexer.providers.setup import SERVER_ARGUMENTS

from agtrace.upkeep.clients.client import Client, Language, Machine

_OF_A_SERVER = {"type", "command", "url", "enabled"}


def local_entry(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Write an entry of OpenCode and of programs that came from it."""
    environment = {"environment": dict(variables)} if variables else {}
    return {"type": "local", "command": [executable, *SERVER_ARGUMENTS], **environment}


def _path(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the servers are: below `mcp.servers`, if that is a map of servers and not a server of that name."""
    mcp = settings.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    of_version_2 = isinstance(servers, Mapping) and not (
        _OF_A_SERVER & {name for name, value in servers.items() if not isinstance(value, Mapping)}
    )
    return ("mcp", "servers") if of_version_2 else ("mcp",)


def _folder(machine: Machine) -> Any:
    return machine.xdg_config() / "opencode"


OPENCODE = Client(
    name="opencode",
    title="OpenCode",
    programs=("opencode", "opencode2"),
    files=lambda machine: [_folder(machine) / "opencode.json", _folder(machine) / "opencode.jsonc"],
    folders=lambda machine: [_folder(machine), machine.folder("XDG_DATA_HOME", ".local/share") / "opencode"],
    language=Language.JSONC,
    path=_path,
    entry=local_entry,
    documented="https://opencode.ai/docs/mcp-servers",
)
"""OpenCode as a client of our server."""
