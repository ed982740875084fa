"""The index itself: its size, and facts recorded about it."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from agtrace_indexer.index import meta
from agtrace_indexer.index.questions.queries import only

_TOTALS = """
SELECT count(*) FILTER (WHERE kind != 'warmup'), coalesce(sum(event_count), 0), max(ended_at),
  (SELECT count(*) FROM file WHERE status = 'log')
FROM session
"""


class Totals(Struct, frozen=True):
    """The totals of an index."""

    sessions: int
    """Without warm-ups, as lists count them."""
    events: int
    newest_event: int | None
    """Milliseconds since 1970 UTC; None if there is none, or its time isn't known."""
    logs: int


EMPTY = Totals(0, 0, None, 0)
"""The totals of an index that doesn't exist."""


def totals(connection: sqlite3.Connection) -> Totals:
    """Return the totals of the index."""
    return only(connection, Totals, _TOTALS)


def is_built(connection: sqlite3.Connection) -> bool:
    """Whether a run over all roots has finished since the index was made."""
    return meta.get(connection, "built") == "1"


def masked_by(connection: sqlite3.Connection) -> str | None:
    """Return the digest of the rules for secrets that the index is masked with; None if none is recorded."""
    return meta.get(connection, "redaction")
