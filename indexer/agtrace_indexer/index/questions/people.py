"""The people whose sessions an index has: one's own index has one's own, that of a team says who pushed which."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agtrace_indexer.index.questions.queries import GIVEN, as_json, is_team, pairs

_PUSHED = f"SELECT s.id, p.shown FROM session s JOIN person p ON p.id = s.person_id WHERE s.id IN {GIVEN}"


def people_of(connection: sqlite3.Connection, sessions: Sequence[int]) -> dict[int, str]:
    """Return session -> who pushed it, for the sessions with these row ids; nothing for one's own index."""
    return pairs(connection, _PUSHED, (as_json(sessions),)) if is_team(connection) else {}
