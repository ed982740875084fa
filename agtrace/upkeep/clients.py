"""The programs whose settings `agtrace setup` edits itself, whether or not their logs are read.

To add one, add it to the table at the end; `client_settings.py` edits the files. Claude Code, Codex and Gemini CLI have
commands that add a server: those are `providers/*/setup.py` of the indexer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.providers.setup import SERVER_ARGUMENTS, SERVER_NAME
from msgspec import Struct


class Language(Enum):
    """How settings are written."""

    JSON = "JSON"
    YAML = "YAML"


class Machine(NamedTuple):
    """Where programs keep their settings: the home directory, the environment and the platform (`sys.platform`)."""

    home: Path
    environment: Mapping[str, str]
    platform: str

    def folder(self, variable: str, usual: str) -> Path:
        """Return the folder that a variable names, by default this one below the home directory."""
        moved = self.environment.get(variable)
        return Path(moved) if moved else self.home / usual

    def xdg_config(self) -> Path:
        """Return the folder for settings of the XDG base directories, as some programs use it on every platform."""
        return self.folder("XDG_CONFIG_HOME", ".config")

    def app_data(self) -> Path:
        """Return the folder for settings of desktop programs (Electron's `appData`)."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.roaming() if self.platform == "win32" else self.xdg_config()

    def roaming(self) -> Path:
        """Return the folder of Windows for settings."""
        return self.folder("APPDATA", "AppData/Roaming")


Entry = Callable[[str, Mapping[str, str]], dict[str, Any]]
"""Writes the entry for our executable and its environment variables."""
Steps = Callable[[Mapping[str, Any]], tuple[str, ...]]
"""Returns the names that lead to the servers, given what the settings hold."""


class Client(Struct, frozen=True):
    """A program that starts MCP servers which its settings list."""

    name: str
    """What the user types."""
    title: str
    """The name people know the program by."""
    programs: tuple[str, ...]
    """The names of the program on the PATH."""
    folder: Callable[[Machine], Path]
    """The folder of its settings."""
    names: tuple[str, ...]
    """The files below it that may have the user's servers, in the order of preference; if none is there, the first is
    made."""
    path: Steps
    entry: Entry
    documented: str
    """The page from which all of this comes."""
    language: Language = Language.JSON
    traces: tuple[str, ...] = (".",)
    """What is below the folder where the program has been used."""

    def files(self, machine: Machine) -> Sequence[Path]:
        """Return the files that may have the user's servers."""
        return [self.folder(machine) / name for name in self.names]


def _below(name: str) -> Steps:
    return lambda _settings: (name,)


_OF_A_SERVER = {"type", "command", "url", "enabled"}


def _of_opencode(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `mcp.servers` (version 2), if that is a map of servers and not a server of that name; else `mcp`."""
    mcp = settings.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    of_version_2 = isinstance(servers, Mapping) and not (
        _OF_A_SERVER & {name for name, value in servers.items() if not isinstance(value, Mapping)}
    )
    return ("mcp", "servers") if of_version_2 else ("mcp",)


def _plain(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    environment = {"env": dict(variables)} if variables else {}
    return {"command": executable, "args": list(SERVER_ARGUMENTS), **environment}


def _stdio(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(executable, variables)}


def _copilot(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "local", **_plain(executable, variables), "tools": ["*"]}


def _opencode(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Write the entry of OpenCode and of what came from it; `enabled` is the default, and unknown to version 2."""
    environment = {"environment": dict(variables)} if variables else {}
    return {"type": "local", "command": [executable, *SERVER_ARGUMENTS], **environment}


def _goose(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": SERVER_NAME,
        "description": "Past sessions of coding agents",
        "cmd": executable,
        "args": list(SERVER_ARGUMENTS),
        "envs": dict(variables),
        "env_keys": [],
        "timeout": 300,  # seconds that Goose waits for an answer: its own default
    }


def _zed_folder(machine: Machine) -> Path:
    """Return Zed's folder (`crates/paths/src/paths.rs` of zed-industries/zed)."""
    if machine.platform == "win32":
        return machine.roaming() / "Zed"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    outside = machine.environment.get("FLATPAK_XDG_CONFIG_HOME")  # what Flatpak calls the user's own folder
    return (Path(outside) if outside else machine.xdg_config()) / "zed"


def _goose_folder(machine: Machine) -> Path:
    """Return Goose's folder (`crates/goose/src/config/paths.rs` of block/goose)."""
    root = machine.environment.get("GOOSE_PATH_ROOT")
    if root:
        return Path(root) / "config"
    if machine.platform == "win32":
        return machine.roaming() / "Block" / "goose" / "config"
    return machine.xdg_config() / "goose"


_SERVERS = _below("mcpServers")
CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "cursor", "Cursor", ("cursor", "cursor-agent"), lambda machine: machine.home / ".cursor", ("mcp.json",),
            _SERVERS, _stdio, "https://cursor.com/docs/mcp",
        ),
        Client(
            "vscode", "VS Code", ("code",), lambda machine: machine.app_data() / "Code", ("User/mcp.json",),
            _below("servers"), _stdio, "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        ),
        Client(
            "claude-desktop", "Claude Desktop", ("claude-desktop",), lambda machine: machine.app_data() / "Claude",
            ("claude_desktop_config.json",), _SERVERS, _plain,
            "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        ),
        Client(
            "copilot", "GitHub Copilot CLI", ("copilot",), lambda machine: machine.folder("COPILOT_HOME", ".copilot"),
            ("mcp-config.json",), _SERVERS, _copilot,
            "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        ),
        Client(
            "opencode", "OpenCode", ("opencode", "opencode2"), lambda machine: machine.xdg_config() / "opencode",
            ("opencode.json", "opencode.jsonc"), _of_opencode, _opencode, "https://opencode.ai/docs/mcp-servers",
        ),
        Client(
            "kilo", "Kilo Code", ("kilo",), lambda machine: machine.xdg_config() / "kilo", ("kilo.json", "kilo.jsonc"),
            _below("mcp"), _opencode, "https://kilo.ai/docs/automate/mcp/using-in-kilo-code",
        ),
        Client(
            "zed", "Zed", ("zed", "zeditor"), _zed_folder, ("settings.json",),
            _below("context_servers"), _plain, "https://zed.dev/docs/ai/mcp",
        ),
        Client(
            "qwen", "Qwen Code", ("qwen",), lambda machine: machine.folder("QWEN_HOME", ".qwen"), ("settings.json",),
            _SERVERS, _plain, "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
        ),
        Client(
            "kiro", "Kiro", ("kiro-cli", "kiro"), lambda machine: machine.home / ".kiro", ("settings/mcp.json",),
            _SERVERS, _plain, "https://kiro.dev/docs/cli/mcp/configuration",
        ),
        Client(
            "goose", "Goose", ("goose",), _goose_folder, ("config.yaml",),
            _below("extensions"), _goose, "https://block.github.io/goose/docs/guides/config-files", Language.YAML,
        ),
        Client(
            "antigravity", "Antigravity", ("agy", "antigravity"), lambda machine: machine.home / ".gemini",
            ("config/mcp_config.json", "antigravity/mcp_config.json"), _SERVERS, _plain,
            "https://antigravity.google/docs/mcp", traces=("config", "antigravity", "antigravity-cli"),
        ),
    )
}  # fmt: skip
"""The clients by the name that the user types."""
