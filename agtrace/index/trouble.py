"""Whether the index holds everything in the logs; why it can't be used, as an error with the next step."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agtrace.problems import IndexUnavailable

REPAIR = "agtrace doctor --repair"

_TEAM_STEP = "Does its server run, and is the URL in `team` right? Without `index`, your own index answers."
_LOGIN_STEP = "Is the URL in `team` right? Its owner lets people in: agtrace team add LOGIN"

_RETRY = f"Try again; if it stays so: {REPAIR}"
_STEP = f"Run: {REPAIR}. It reads the logs and the archive again."

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CLOSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


class Freshness(Struct, frozen=True):
    """How far the index is behind the logs; None means unknown."""

    state: Literal["ready", "catching_up", "building"]
    files_behind: int | None = None
    bytes_behind: int | None = None
    problem: str | None = None
    """Why the logs can't be indexed at the moment, so that answers come from what was indexed before."""


def explained(error: sqlite3.Error | OSError, database: Path) -> IndexUnavailable:
    """Return why the index can't be used, given an error: it is damaged only if all of it, read again, shows that."""
    from agtrace_indexer.index.opening import is_damage

    if not is_damage(error):
        return unusable(error)
    return damage_in(database) or IndexUnavailable(f"the index couldn't be read just now ({error})", _RETRY)


def unusable(error: sqlite3.Error | OSError) -> IndexUnavailable:
    """Return what an error means for the index, but never damage: no error alone proves that."""
    from agtrace_indexer.index.opening import NewerIndex, OlderIndex
    from agtrace_indexer.index.tombstones import UnreadableTombstones
    from agtrace_team.problems import LoginRefused, NobodyOfTheTeam, TeamUnavailable

    if isinstance(error, NobodyOfTheTeam):
        return IndexUnavailable(str(error), "Leave out `user`, or name a login that pushes.")
    if isinstance(error, LoginRefused):
        return IndexUnavailable(str(error), _LOGIN_STEP)
    if isinstance(error, TeamUnavailable):
        return IndexUnavailable(str(error), _TEAM_STEP)

    if isinstance(error, UnreadableTombstones):
        return IndexUnavailable(str(error), "Then run: agtrace index")
    if isinstance(error, NewerIndex):
        return IndexUnavailable(str(error), "Or set AGTRACE_DATA_DIR to another folder for a separate index.")
    if isinstance(error, OlderIndex):
        return IndexUnavailable(str(error), "Run: agtrace index. It rebuilds the index from the logs and the archive.")
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in _LOCKED:
        return IndexUnavailable(
            f"the index is locked by another program ({error})",
            "Try again. If it stays locked, close the program that has the index open.",
        )
    if code in _CLOSED or isinstance(error, PermissionError):
        return IndexUnavailable(
            f"the index can't be opened ({error})", "Check its permissions, or set AGTRACE_DATA_DIR to another folder."
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return IndexUnavailable(f"the index can't be read or written ({error})", "Check whether the disk is full.")
    return IndexUnavailable(f"the index can't be used ({error})", _RETRY)


def as_sentence(problem: IndexUnavailable) -> str:
    """Return a problem and its next step as part of a longer text, without a full stop at the end."""
    return f"{problem.message}. {problem.hint}".removesuffix(".")


def damage_in(database: Path) -> IndexUnavailable | None:
    """Examine the whole index and return its damage, if any; takes 2 s per gigabyte of logs."""
    from agtrace_indexer.run import rebuild

    try:
        found = rebuild.damage_in(database)
    except (sqlite3.Error, OSError) as error:
        return unusable(error)
    return IndexUnavailable(f"the index is damaged ({'; '.join(found)})", _STEP) if found else None
