"""The ids of sessions that a shell completes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.questions import live, sessions

from agtrace.text.lines import unbroken

_MOST, _TITLE = 30, 60
"""The most sessions that are offered, and the characters of each title."""


def beginning_with(database: Path, beginning: str) -> list[tuple[str, str]]:
    """Return the sessions whose ids begin so, each with its title on one line; for nothing, the latest ones.

    Whatever is wrong with the index, nothing is offered: a shell shows no errors.
    """
    try:
        with closing(open_read_only(database)) as connection:
            found = sessions.with_prefix(connection, beginning, _MOST) if beginning else live.newest(connection, _MOST)
    except (sqlite3.Error, OSError):
        return []
    return [(one.uid, unbroken((one.title or one.snippet or "")[:_TITLE])) for one in found]
