"""The people whose sessions an index has: one's own index has one's own, that of a team says who pushed which."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agtrace_indexer.index.engines import OfPeople
from agtrace_indexer.index.questions.queries import question


@question
def is_of_people(connection: sqlite3.Connection) -> bool:
    """Whether the index is that of a team, and not one's own."""
    return isinstance(connection, OfPeople)


@question
def people_of(connection: sqlite3.Connection, sessions: Sequence[int]) -> dict[int, str]:
    """Return session -> who pushed it, for the sessions with these row ids; nothing for one's own index."""
    return connection.people_of(sessions) if isinstance(connection, OfPeople) else {}
