"""Forks and sub-agents whose logs begin with a replay of their parent's history, as Codex's do.

The replayed items are the parent's own, stamped anew. How far the replay goes the log itself tells
where its turns have ids with times in them (`session.replayed_to`). Where it can't, but says that there
is a replay (`session.clustered_to`), it is compared with the parent, item by item in order; without the
parent's log, or a common item, the replay is what was written at the instant of the fork. Everything
before that point is a copy, whether the parent has it or not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agtrace_indexer.index.sums import sum_session, sum_turns
from agtrace_indexer.providers.registry import AGENTS

_REPLAYING = ", ".join(f"'{agent.name}'" for agent in AGENTS.values() if agent.replays_items)

_CANDIDATES = f"""
SELECT s.id, s.replayed_to, s.clustered_to, p.id FROM session s
LEFT JOIN session p ON p.id = s.parent_session AND p.provider = s.provider
WHERE s.id = ? AND s.provider IN ({_REPLAYING}) AND NOT (SELECT f.gone FROM file f WHERE f.id = s.file_id)
  AND (s.replayed_to > 0 OR s.clustered_to IS NOT NULL OR s.copied_events > 0)
"""

_ITEMS = "SELECT event_index, identity, id FROM event WHERE session_id = ? AND identity < 0 ORDER BY event_index"

# What belongs to no item, such as token figures, goes with the item before it.
_NEXT_ITEM = """
SELECT coalesce(min(event_index) FILTER (WHERE identity < 0), max(event_index) + 1)
FROM event WHERE session_id = ? AND event_index > ?
"""

_MISSES = 3
"""So many items of its own in a row end a replay that only comparing can tell."""


def attribute_replays(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Tell for such sessions which of their events are replayed, and make their sums again."""
    for session in sorted(sessions):
        for row in connection.execute(_CANDIDATES, (session,)).fetchall():
            _attribute(connection, *row)


def _attribute(
    connection: sqlite3.Connection, session: int, replayed_to: int, clustered_to: int | None, parent: int | None
) -> None:
    tells = replayed_to > 0 or clustered_to is not None
    originals = _originals(connection, session, parent, replayed_to) if tells and parent is not None else {}
    end = replayed_to or (clustered_to or 0)
    if originals and not replayed_to:
        end = connection.execute(_NEXT_ITEM, (session, max(originals))).fetchone()[0] or max(originals) + 1
    wanted = {index: originals.get(index, 0) for index in range(end)}
    rows = connection.execute(
        "SELECT id, event_index, copy_of FROM event WHERE session_id = ? AND (event_index < ? OR copy_of IS NOT NULL)",
        (session, end),
    ).fetchall()
    changes = [(wanted.get(index), event) for event, index, before in rows if wanted.get(index) != before]
    if changes:
        connection.executemany("UPDATE event SET copy_of = ? WHERE id = ?", changes)
        sum_turns(connection, session)
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
