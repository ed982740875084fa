"""The index that a process answers from: its own, or that of a team if the setting `index` names one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agtrace.index.reader import Index

if TYPE_CHECKING:
    from agtrace.index.team import TeamIndex
    from agtrace.settings.model import Settings

AnyIndex: TypeAlias = "Index | TeamIndex"


def index_of(settings: Settings) -> AnyIndex:
    """Return the index that answers come from. Raises `SettingError` if what a team's index takes isn't installed."""
    if settings.asked is None:
        return Index(settings)
    from agtrace.index.team import TeamIndex

    return TeamIndex(settings.asked, settings.user)


def opened(settings: Settings) -> sqlite3.Connection:
    """Return a connection that only reads the index, as it is. Raises `sqlite3.Error`."""
    if settings.asked is None:
        from agtrace_indexer.index.opening import open_read_only

        return open_read_only(settings.database)
    from agtrace.index.team import connection_to

    return connection_to(settings.asked, settings.user)


def bytes_on_disk(settings: Settings) -> int | None:
    """Return the size of one's own index; None for that of a team, which is its server's business."""
    from agtrace_indexer.index import opening

    return None if settings.asked is not None else opening.bytes_on_disk(Path(settings.database))
