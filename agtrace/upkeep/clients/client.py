"""What `agtrace setup` knows about a program whose settings it edits itself, and about the machine it is on.

A client is one module in this package, and its name in `CLIENTS`. Most are coding agents and editors without a command
that adds a server; those of Claude Code, Codex and Gemini CLI are `providers/*/setup.py` of the indexer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.providers.setup import SERVER_ARGUMENTS
from msgspec import Struct


class Language(Enum):
    """How settings are written."""

    JSON = "JSON"
    """JSON to the letter: the client refuses comments and trailing commas."""
    COMMENTED = "JSON with comments"
    """The client refuses trailing commas."""
    JSONC = "JSON with comments and trailing commas"
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


class Client(Struct, frozen=True):
    """A program that starts MCP servers which its settings list."""

    name: str
    """What the user types."""
    title: str
    """The name people know the program by."""
    programs: tuple[str, ...]
    """The names of the program on the PATH."""
    files: Callable[[Machine], Sequence[Path]]
    """The files that may have the user's servers, in the order of preference; the first is made if there is none."""
    folders: Callable[[Machine], Sequence[Path]]
    """Folders that are there where the program has been used."""
    language: Language
    path: Callable[[Mapping[str, Any]], tuple[str, ...]]
    """The names that lead to the servers, given what the settings hold."""
    entry: Entry
    documented: str
    """The page from which all of this comes."""


def below(*names: str) -> Callable[[Mapping[str, Any]], tuple[str, ...]]:
    """Return the `path` of a client whose servers are always in the same place."""
    return lambda _settings: names


def plain_entry(executable: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Write the entry that most clients use: a command, its arguments and environment variables."""
    environment = {"env": dict(variables)} if variables else {}
    return {"command": executable, "args": list(SERVER_ARGUMENTS), **environment}


def typed_entry(kind: str) -> Entry:
    """Return what writes an entry that begins with its type, such as `stdio`."""
    return lambda executable, variables: {"type": kind, **plain_entry(executable, variables)}
