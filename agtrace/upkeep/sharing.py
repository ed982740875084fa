"""What one shares with a team: projects, each with those who may see it, kept next to the index. None by default."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from agtrace.problems import SettingError

Audience: TypeAlias = Literal["self", "project", "team"]
"""The person alone, on all machines; those who may read the project; everybody of the team."""

AUDIENCES: tuple[Audience, ...] = get_args(Audience)

SEEN_BY: dict[Audience, str] = {
    "self": "you alone",
    "project": "those who may read the project",
    "team": "everybody of the team",
}
"""Who that is, as a person is told."""

_FILE = "sharing.json"


class Sharing(Struct, frozen=True):
    """What is shared from this machine."""

    machine: str
    """What tells this machine from the person's others: random, made once."""
    projects: Mapping[str, Audience] = field(default_factory=dict)
    """By the names that the person gave."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By these names, the hashes of the folders that were meant: later the name may mean others."""

    def with_project(self, name: str, audience: Audience, folders: Iterable[str]) -> Sharing:
        """Return it with a project shared, whose folders have these hashes."""
        folders = tuple(sorted(folders))
        return replace(self, projects={**self.projects, name: audience}, folders={**self.folders, name: folders})

    def without(self, name: str) -> Sharing:
        """Return it with a project no longer shared."""
        projects = {one: shown for one, shown in self.projects.items() if one != name}
        folders = {one: hashes for one, hashes in self.folders.items() if one != name}
        return replace(self, projects=projects, folders=folders)


def load(data_dir: Path) -> Sharing:
    """Return what is shared; nothing if that was never said. Raises `SettingError` for a file that can't be used."""
    path = data_dir / _FILE
    try:
        told = json.loads(path.read_bytes())
        projects = {str(name): audience for name, audience in told["projects"].items()}
        if not set(projects.values()) <= set(AUDIENCES):
            raise ValueError("an audience is self, project or team")
        folders = {str(name): tuple(map(str, hashes)) for name, hashes in told.get("folders", {}).items()}
        return Sharing(str(told["machine"]), projects, folders)
    except FileNotFoundError:
        return Sharing(uuid.uuid4().hex)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingError(f"{path}, which says what is shared, can't be used: {error}") from None


def save(data_dir: Path, sharing: Sharing) -> None:
    """Keep what is shared; the file is whole at every moment. Raises `OSError`."""
    path = data_dir / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(f".{os.getpid()}")
    told = {"machine": sharing.machine, "projects": dict(sharing.projects), "folders": dict(sharing.folders)}
    text = json.dumps(told, indent=2, ensure_ascii=False)
    descriptor = os.open(written, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{text}\n")
    written.replace(path)
