"""A push: the sessions of the shared projects, from the index as it is at one moment, to the team's database."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING

from agtrace_indexer.index.opening import one_moment, open_read_only
from agtrace_indexer.index.questions import state
from agtrace_indexer.index.tombstones import Tombstones

from agtrace.problems import SettingError
from agtrace.sessions.projects import with_hashes
from agtrace.upkeep.sharing import Audience, Sharing

if TYPE_CHECKING:
    from agtrace_team.push import Pushed

    from agtrace.settings.model import Settings


def push(
    settings: Settings, url: str, sharing: Sharing, *, dry: bool, report: Callable[[int, int], None]
) -> tuple[Pushed, list[str]]:
    """Push what is shared; return what that did, or would do, and the shared projects that the index doesn't have.

    `report` is told how many of how many sessions are done. Raises `SettingError`, `sqlite3.Error`, and `PushRefused`.
    """
    needs_team()
    from agtrace_team.connection import connect
    from agtrace_team.push import Push, chosen, refused

    with closing(open_read_only(settings.database)) as index, one_moment(index), closing(connect(url)) as team:
        audiences, unknown = _audiences(index, sharing)
        with refused():
            push = Push(index, team, sharing.machine, platform.node() or "?", state.masked_by(index) or "")
            tombstones = Tombstones.of(settings.database)
            done = push.run(chosen(index, audiences), tombstones.keep_out, dry=dry, report=report)
    return done, unknown


def needs_team() -> None:
    """Raise `SettingError` if what a team's database takes isn't installed."""
    if find_spec("psycopg") is None:
        raise SettingError(
            "a team's database needs psycopg, which isn't installed: pip install 'psycopg[binary]' (with pipx: "
            "pipx inject agtrace 'psycopg[binary]')"
        ) from None


def _audiences(index: sqlite3.Connection, sharing: Sharing) -> tuple[dict[int, Audience], list[str]]:
    """Return the folders of the shared projects (row id -> audience), and the names that the index doesn't know.

    Of two entries that mean the same folder the narrower audience holds.
    """
    from agtrace_team.push import WIDTH

    found: dict[int, Audience] = {}
    unknown = []
    for name, audience in sharing.projects.items():
        if name not in sharing.folders:
            raise SettingError(
                f"an older agtrace shared {name} without noting its folders: "
                f"agtrace team share {name} --with {audience}"
            )
        rows = with_hashes(index, sharing.folders[name])
        if not rows:
            unknown.append(name)
        for row in rows:
            found[row] = min(audience, found.get(row, audience), key=WIDTH.__getitem__)
    return found, unknown
