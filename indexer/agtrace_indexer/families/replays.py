"""Forks and sub-agents whose logs begin with a replay of their parent's history, as Codex's do.

The replayed items are the parent's own with new timestamps. If the log's turns have ids that contain times, the log
itself shows where the replay ends (`session.replayed_to`). If it only shows that there is a replay
(`session.clustered_to`), it is compared with the parent, item by item in order; without the parent's log, or a common
item, everything written at the instant of the fork is the replay. Everything before that point is a copy, whether the
parent has it or not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agtrace_indexer.index import kin
from agtrace_indexer.index.kin import Replay
from agtrace_indexer.providers.registry import AGENTS

_REPLAYING = frozenset(agent.name for agent in AGENTS.values() if agent.replays_items)

_MISSES = 3
"""This many new items in a row end a replay that can only be found by comparison."""


def attribute_replays(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Determine which events of these sessions are replayed, and sum the sessions up again."""
    for session in sorted(sessions):
        replay = kin.replay(connection, session, _REPLAYING)
        if replay is not None:
            _attribute(connection, session, replay)


def _attribute(connection: sqlite3.Connection, session: int, replay: Replay) -> None:
    replayed_to, parent = replay.replayed_to, replay.parent
    tells = replayed_to > 0 or replay.clustered_to is not None
    originals = _originals(connection, session, parent, replayed_to) if tells and parent is not None else {}
    end = replayed_to or (replay.clustered_to or 0)
    if originals and not replayed_to:
        end = kin.item_after(connection, session, max(originals)) or max(originals) + 1
    wanted = {index: originals.get(index, 0) for index in range(end)}
    marked = kin.marked(connection, session, end)
    changes = [(wanted.get(index), event) for event, index, before in marked if wanted.get(index) != before]
    if changes:
        kin.note_copies(connection, changes)
        kin.sum_up(connection, session)


def _originals(connection: sqlite3.Connection, session: int, parent: int, replayed_to: int) -> dict[int, int]:
    """Map the index of each replayed event to the parent's event that it repeats, walking both in order."""
    places: dict[int, list[tuple[int, int]]] = {}
    for index, identity, event in kin.items(connection, parent):
        places.setdefault(identity, []).append((index, event))
    found: dict[int, int] = {}
    behind, missed = -1, 0
    for index, identity, _ in kin.items(connection, session):
        if replayed_to and index >= replayed_to:
            break
        place = next((place for place in places.get(identity, ()) if place[0] > behind), None)
        if place is not None:
            behind, found[index], missed = place[0], place[1], 0
        elif not replayed_to and (missed := missed + 1) >= _MISSES:
            break
    return found
