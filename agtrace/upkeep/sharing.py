"""What one shares with a team: projects, each with those who may see it, kept next to the index. None by default."""

from __future__ import annotations

import os
import platform
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from agtrace_indexer.index import meta
from agtrace_indexer.index.opening import one_moment, open_read_only
from agtrace_indexer.index.tombstones import Tombstones
from msgspec import Struct

from agtrace.index.team import check_installed
from agtrace.problems import SettingError
from agtrace.sessions.projects import with_hashes

if TYPE_CHECKING:
    from agtrace_team.push import Pushed

    from agtrace.settings.model import Settings

Audience: TypeAlias = Literal["self", "project", "team"]

SEEN_BY: dict[Audience, str] = {
    "self": "you alone",
    "project": "those who may read the project",
    "team": "everybody of the team",
}
"""Who that is, as a person is told."""

_FILE = "sharing.json"


class Shared(Struct, frozen=True):
    """A project that is shared."""

    audience: Audience
    folders: tuple[str, ...]
    """The hashes of the folders that were meant: later its name may mean others."""


class Sharing(Struct, frozen=True):
    """What is shared from this machine."""

    machine: str
    """What tells this machine from the person's others: random, made once."""
    projects: Mapping[str, Shared] = {}
    """By the names that the person gave."""


def load(data_dir: Path) -> Sharing:
    """Return what is shared; nothing if that was never said. Raises `SettingError` for a file that can't be used."""
    path = data_dir / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Sharing)
    except FileNotFoundError:
        return Sharing(uuid.uuid4().hex)
    except (OSError, msgspec.DecodeError) as error:
        raise SettingError(f"{path}, which says what is shared, can't be used: {error}") from None


def save(data_dir: Path, sharing: Sharing) -> None:
    """Keep what is shared; the file is whole at every moment. Raises `OSError`."""
    path = data_dir / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(written, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(sharing)) + b"\n")
    written.replace(path)


def push(
    settings: Settings, url: str, sharing: Sharing, *, dry: bool, report: Callable[[int, int], None]
) -> tuple[Pushed, list[str]]:
    """Push what is shared, from the index as it is at one moment, to the team's database.

    Return what that did, or would do, and the shared projects that the index doesn't have. `report` is told how many of
    how many sessions are done. Raises `SettingError`, `sqlite3.Error`, and `PushRefused`.
    """
    check_installed()
    from agtrace_team.connection import connect
    from agtrace_team.push import Push, chosen, refused

    with closing(open_read_only(settings.database)) as index, one_moment(index), closing(connect(url)) as team:
        audiences, unknown = _audiences(index, sharing)
        with refused():
            push = Push(index, team, sharing.machine, platform.node() or "?", meta.get(index, "redaction") or "")
            tombstones = Tombstones.of(settings.database)
            done = push.run(chosen(index, audiences), tombstones.keep_out, dry=dry, report=report)
    return done, unknown


def _audiences(index: sqlite3.Connection, sharing: Sharing) -> tuple[dict[int, Audience], list[str]]:
    """Return the folders of the shared projects (row id -> audience), and the names that the index doesn't know.

    Of two entries that mean the same folder the narrower audience holds.
    """
    from agtrace_team.push import WIDTH

    found: dict[int, Audience] = {}
    unknown = []
    for name, shared in sharing.projects.items():
        rows = with_hashes(index, shared.folders)
        if not rows:
            unknown.append(name)
        for row in rows:
            found[row] = min(shared.audience, found.get(row, shared.audience), key=WIDTH.__getitem__)
    return found, unknown
