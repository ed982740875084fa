"""Events that occur in several logs: each counts once, in the oldest session that contains it.

A fork, a background copy or a resumed session repeats the lines of another log, word for word and under the same ids.
The age of two sessions is decided by the lines that only one of them has: the one whose first such line is earlier, or
that has none, is older. A session that its own log calls a fork is younger than a main session, and a sub-agent is
younger than both: one that logs the whole conversation again began later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import combinations, groupby
from operator import attrgetter
from typing import NamedTuple

from agtrace_indexer.index import kin
from agtrace_indexer.index.kin import Held, Member, Replay
from agtrace_indexer.providers.registry import AGENTS

_MANY_EVENTS = 20_000
_MOST_COMPARED = 24
"""The most relatives that are compared with each other; if there are more, their times decide the order."""

_KINDS = {"main": 0, "fork": 1}
_SUBAGENT, _REVIEWER = 2, -1
"""A sub-agent is younger, unless only its figures are repeated by the log that it reports to."""


class Log(NamedTuple):
    """A log among its relatives, with the kind and name of its main session."""

    file: int
    kind: int
    name: tuple[str, str]
    sessions: list[int]


def find_kin(connection: sqlite3.Connection, pending: Iterable[int]) -> set[int]:
    """Record which sessions share events with the changed ones.

    Return the sessions whose copies must be determined anew: all but those that only grew and have no relatives.
    """
    changed = [kin.changed(connection, session) for session in pending]
    new_events = sum(session.last + 1 - session.compared_to for session in changed)
    pairs = kin.kin_of(connection, None if new_events > _MANY_EVENTS else changed)
    kin.note_compared(connection, changed, pairs)
    related = {session.session for session in changed if session.pending > 1 or session.related}
    return related | {session for pair in pairs for session in pair}


def attribute_copies(connection: sqlite3.Connection, sessions: Iterable[int]) -> set[int]:
    """Determine which events in the families of these sessions are copies, and renew the sums; return the families."""
    done: set[int] = set()
    for session in sorted(sessions):
        if session in done:
            continue
        members = kin.members(connection, session)
        done |= {session, *(member.session for member in members)}
        logs = _logs(members)
        if len(logs) > 1 or any(member.copied_events for member in members):
            in_order = (member for log in _oldest_first(connection, logs) for member in log.sessions)
            _attribute(connection, {member: place for place, member in enumerate(in_order)})
    return done


def _logs(members: list[Member]) -> list[Log]:
    """Return the logs of these sessions; inline sub-agents are as old as the log that contains them."""
    logs: dict[int, Log] = {}
    for member in members:  # the main session of a log comes first
        kind = _KINDS.get(member.kind, _REVIEWER if AGENTS[member.provider].replays_items else _SUBAGENT)
        log = Log(member.file, kind, (member.own_id, member.path), [])
        logs.setdefault(member.file, log).sessions.append(member.session)
    return list(logs.values())


def _attribute(connection: sqlite3.Connection, order: dict[int, int]) -> None:
    """Record the copies among sessions; `order` is session -> place, 0 for the oldest."""
    changes: list[tuple[int | None, int]] = []
    touched: set[int] = set()
    for _, held in groupby(kin.held(connection, order), key=attrgetter("identity")):
        for event, original in _copies(list(held), order):
            if original != event.copy_of:
                changes.append((original, event.event))
                touched.add(event.session)
    kin.note_copies(connection, changes)
    for session in sorted(touched):
        kin.sum_up(connection, session)


def _copies(events: list[Held], order: dict[int, int]) -> Iterator[tuple[Held, int | None]]:
    """Yield all events with one identity, each with its original; None for the original and others in its session.

    Of the token figures of a response the best count, and of equally good ones the oldest: a copy made while the
    response was being written has less.
    """
    original = min(events, key=lambda e: (-(e.complete or 0), -(e.output_tokens or 0), order[e.session], e.event_index))
    for event in events:
        yield event, None if event.session == original.session else original.event


def _oldest_first(connection: sqlite3.Connection, logs: list[Log]) -> list[Log]:
    """Return logs by age, oldest first."""
    times = {log.file: kin.times(connection, log.file) for log in logs}
    logs = sorted(logs, key=lambda log: (log.kind, times[log.file], log.name))
    if 1 < len(logs) <= _MOST_COMPARED:
        older = _times_older(connection, logs)
        logs.sort(key=lambda log: -older[log.file])
    return logs


def _times_older(connection: sqlite3.Connection, logs: list[Log]) -> dict[int, int]:
    """Return, for each file, how many of its relatives it is older than."""
    lines = {log.file: kin.lines(connection, log.file) for log in logs}
    older = dict.fromkeys(lines, 0)
    for one, other in combinations(logs, 2):
        own = [_first_own(lines[a.file], lines[b.file]) for a, b in ((one, other), (other, one))]
        older[other.file if one.kind == other.kind and own[1] < own[0] else one.file] += 1
    return older


def _first_own(lines: dict[int, int], others: dict[int, int]) -> tuple[bool, int]:
    """Return a sort key for the time of the first line that only this log has; no such line sorts first."""
    found = next((time for identity, time in lines.items() if identity not in others), None)
    return (found is not None, found or 0)


# -- replays ---------------------------------------------------------------------------------------
# Forks and sub-agents whose logs begin with a replay of their parent's history, as Codex's do.
# The replayed items are the parent's own with new timestamps. If the log's turns have ids that contain times, the log
# itself shows where the replay ends (`session.replayed_to`). If it only shows that there is a replay
# (`session.clustered_to`), it is compared with the parent, item by item in order; without the parent's log, or a
# common item, everything written at the instant of the fork is the replay. Everything before that point is a copy,
# whether the parent has it or not.

_REPLAYING = frozenset(agent.name for agent in AGENTS.values() if agent.replays_items)

_MISSES = 3
"""This many new items in a row end a replay that can only be found by comparison."""


def attribute_replays(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Determine which events of these sessions are replayed, and sum the sessions up again."""
    for session in sorted(sessions):
        replay = kin.replay(connection, session, _REPLAYING)
        if replay is not None:
            _attribute_replay(connection, session, replay)


def _attribute_replay(connection: sqlite3.Connection, session: int, replay: Replay) -> None:
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
