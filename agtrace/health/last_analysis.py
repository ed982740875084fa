"""The most recent analysis, kept because a long one is read in many chunks but made only once."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from agtrace_indexer.index.opening import state_of

if TYPE_CHECKING:
    from agtrace_indexer.index.questions.sessions import Session
    from agtrace_schema.analysis import Analysis

    from agtrace.sessions.prices import PriceTable

_GOOD_FOR_SECONDS = 600
"""The time for which it is uncertain whether a session is still at work."""


class LastAnalysis:
    """A cache of one analysis, valid while the index doesn't change. For one thread at a time."""

    def __init__(self) -> None:
        self._of: tuple[sqlite3.Connection, int, int, int] | None = None
        self._found: Analysis | None = None

    def get(self, connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> Analysis:
        """Return the result of `agtrace.health.analysis.analyze`."""
        from agtrace.health.analysis import analyze  # 35 ms: loads all detectors, which no other answer needs

        written = state_of(connection)
        asked = connection, written, session.id, int(now // _GOOD_FOR_SECONDS)
        if self._found is None or self._of != asked:
            self._of, self._found = asked, analyze(connection, session, now=now, prices=prices)
        return self._found
