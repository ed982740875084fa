"""Codex's forks and sub-agents: their logs begin with a replay of their parent's history.

The replayed items are the parent's own, stamped anew. How far the replay goes the log itself tells
where its turns have ids with times in them (`session.replayed_to`); else it is compared with the
parent, item by item in order. Everything before that point is a copy, whether the parent has it or not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agtrace_indexer.sums import sum_session, sum_turns

_CANDIDATES = """
SELECT s.id, s.replayed_to, p.id FROM session s
LEFT JOIN session p ON p.id = s.parent_session AND p.provider = 'codex'
WHERE s.id = ? AND s.provider = 'codex'
  AND (s.replayed_to > 0 OR s.copied_events > 0 OR (p.id IS NOT NULL AND s.kind IN ('fork', 'subagent')))
"""

_ITEMS = "SELECT event_index, identity, id FROM event WHERE session_id = ? AND identity < 0 ORDER BY event_index"

_MISSES = 3
"""So many items of its own in a row end a replay that only comparing can tell."""


def attribute_replays(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Tell for Codex sessions which of their events are replayed, and make their sums again."""
    for session in sorted(sessions):
        for row in connection.execute(_CANDIDATES, (session,)).fetchall():
            _attribute(connection, *row)


def _attribute(connection: sqlite3.Connection, session: int, replayed_to: int, parent: int | None) -> None:
    originals = {} if parent is None else _originals(connection, session, parent, replayed_to)
    end = replayed_to or max(originals, default=-1) + 1
    wanted = {index: originals.get(index, 0) for index in range(end)}
    rows = connection.execute(
        "SELECT id, event_index, copy_of FROM event WHERE session_id = ? AND (event_index < ? OR copy_of IS NOT NULL)",
        (session, end),
    ).fetchall()
    changes = [(wanted.get(index), event) for event, index, before in rows if wanted.get(index) != before]
    if changes:
        connection.executemany("UPDATE event SET copy_of = ? WHERE id = ?", changes)
        sum_turns(connection, session, 0)
        sum_session(connection, session)


def _originals(connection: sqlite3.Connection, session: int, parent: int, replayed_to: int) -> dict[int, int]:
    """The index of a replayed event -> the parent's event that it repeats, both walked in order."""
    places: dict[int, list[tuple[int, int]]] = {}
    for index, identity, event in connection.execute(_ITEMS, (parent,)):
        places.setdefault(identity, []).append((index, event))
    found: dict[int, int] = {}
    behind, missed = -1, 0
    for index, identity, _ in connection.execute(_ITEMS, (session,)):
        if replayed_to and index >= replayed_to:
            break
        place = next((place for place in places.get(identity, ()) if place[0] > behind), None)
        if place is not None:
            behind, found[index], missed = place[0], place[1], 0
        elif not replayed_to and (missed := missed + 1) >= _MISSES:
            break
    return found
