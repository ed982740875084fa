"""Connecting to the database of a team, or to several that are asked together."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agtrace_team.connection import TeamConnection, shown
from agtrace_team.problems import LoginRefused, TeamUnavailable
from agtrace_team.several import SeveralConnections


def connected(urls: Sequence[str]) -> TeamConnection | SeveralConnections:
    """Return a connection to a database, or what stands for those to several; one that can't be reached is left out.

    Raises `TeamUnavailable` if none can be reached, and for a login that one of them refuses.
    """
    if len(urls) == 1:
        return TeamConnection(urls[0])
    parts: dict[int, TeamConnection] = {}
    missing: list[TeamUnavailable] = []
    for place, url in enumerate(urls):
        try:
            parts[place] = TeamConnection(url)
        except LoginRefused:
            raise
        except TeamUnavailable as why:
            missing.append(TeamUnavailable(f"{shown(url)}: {why}"))
    if not parts:
        raise missing[0]
    return SeveralConnections(parts, len(urls), time.monotonic(), missing[0] if missing else None)
