"""The index itself: how much it holds, and what is noted about it."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions.rows import only, value

_TOTALS = """
SELECT count(*) FILTER (WHERE kind != 'warmup'), coalesce(sum(event_count), 0), max(ended_at),
  (SELECT count(*) FROM file WHERE status = 'log')
FROM session
"""

_FACT = "SELECT value FROM meta WHERE key = ?"


class Totals(NamedTuple):
    """How much an index holds."""

    sessions: int
    """Without warm-ups, as lists count them."""
    events: int
    newest_event: int | None
    """Milliseconds since 1970 UTC; None where there is none, or its time isn't known."""
    logs: int


EMPTY = Totals(0, 0, None, 0)
"""What an index holds that isn't there."""


def totals(connection: sqlite3.Connection) -> Totals:
    """How much the index holds."""
    return only(connection, Totals, _TOTALS)


def is_built(connection: sqlite3.Connection) -> bool:
    """Whether a run over all roots has ended since the index was made."""
    return bool(value(connection, _FACT, ("built",)) == "1")


def masked_by(connection: sqlite3.Connection) -> str | None:
    """The digest of the rules for secrets by which the index is masked; None where it isn't noted."""
    found: str | None = value(connection, _FACT, ("redaction",))
    return found
