"""Events that stand in several logs: each counts once, in the oldest session that holds it.

A fork, a background copy or a resumed session repeats the lines of another log, word for word and
under the same ids. Which of two sessions is older is told by what only they hold: the one whose first
own line is earlier, or that has none. What a log itself calls a fork is younger than a main session,
and a sub-agent younger than both: one that logs the whole conversation again began later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import combinations, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.sums import sum_session, sum_turns

_MANY_EVENTS = 20_000
_MOST_COMPARED = 24
"""Relatives that are compared with each other; more of them are put in order by their times."""

_USAGE = TYPE_CODE[EventType.TOKEN_USAGE]
_KINDS = {"main": 0, "fork": 1}
_SUBAGENT = 2

# Which new events of a session another one has, too.
_KIN_OF_ONE = """
SELECT DISTINCT o.session_id FROM event e JOIN event o ON o.identity = e.identity AND o.session_id != e.session_id
WHERE e.session_id = ? AND e.event_index >= ? AND e.identity > 0 AND o.identity > 0
"""

# The same for all sessions at once: the sessions of a shared identity, each beside the first of them.
_KIN_OF_ALL = """
SELECT DISTINCT min(e.session_id) OVER (PARTITION BY e.identity), e.session_id FROM event e
WHERE e.identity IN (SELECT identity FROM event WHERE identity > 0 GROUP BY identity HAVING count(*) > 1)
"""

# A session that changed: up to where it was compared, and whether it has relatives.
_PENDING = """
SELECT s.id, s.pending, s.compared_to, coalesce(max(e.event_index), -1) AS last,
  EXISTS (SELECT 1 FROM kin k WHERE k.session_id = s.id) AS related
FROM session s LEFT JOIN event e ON e.session_id = s.id WHERE s.id = ?
"""

# The sessions of all logs that share events with this one's, directly or through others.
_MEMBERS = """
WITH RECURSIVE member (id) AS (
  SELECT :id
  UNION SELECT k.other_id FROM member m JOIN kin k ON k.session_id = m.id
  UNION SELECT o.id FROM member m JOIN session s ON s.id = m.id JOIN session o ON o.file_id = s.file_id)
SELECT s.id, s.file_id, s.thread, s.kind, s.own_id, f.path, s.copied_events
FROM member m JOIN session s ON s.id = m.id JOIN file f ON f.id = s.file_id WHERE NOT f.gone
ORDER BY s.thread
"""

# From when to when a log goes, copies included: what counts where may not depend on what counted before.
_TIMES = """
SELECT coalesce(min(nullif(e.ts, 0)), 0), coalesce(max(e.ts), 0) FROM session s JOIN event e ON e.session_id = s.id
WHERE s.file_id = ? AND s.thread = '' AND e.superseded_by IS NULL
"""

# What a log says, line by line; the figures of responses change and are left out.
_LINES = """
SELECT e.identity, e.ts FROM session s JOIN event e ON e.session_id = s.id
WHERE s.file_id = ? AND e.identity > 0 AND e.type != ? AND e.superseded_by IS NULL ORDER BY e.offset, e.event_index
"""

_SHARED = """
SELECT e.identity, e.id, e.session_id, e.event_index, e.type, e.copy_of, u.complete, u.output_tokens
FROM event e LEFT JOIN token_usage u USING (session_id, event_index)
WHERE e.identity > 0 AND e.superseded_by IS NULL AND e.session_id IN (SELECT value FROM json_each(?))
ORDER BY e.identity, e.session_id, e.event_index
"""


class Held(NamedTuple):
    """An event that several sessions may hold; the last two are of token figures."""

    identity: int
    event: int
    session: int
    event_index: int
    type: int
    copy_of: int | None
    complete: int | None
    output_tokens: int | None


class Log(NamedTuple):
    """A log among its relatives: its main session tells when it began and what it is."""

    file: int
    kind: int
    name: tuple[str, str]
    sessions: list[int]


def find_kin(connection: sqlite3.Connection, pending: Iterable[int]) -> set[int]:
    """Note which sessions share events with those that changed.

    Gives the sessions among which copies must be told anew: all but those that only grew and have no relatives.
    """
    rows = [_pending_row(connection, session) for session in pending]
    new_events = sum(row["last"] + 1 - row["compared_to"] for row in rows)
    if new_events > _MANY_EVENTS:
        pairs = {pair for pair in connection.execute(_KIN_OF_ALL) if pair[0] != pair[1]}
    else:
        pairs = {
            (row["id"], other[0])
            for row in rows
            for other in connection.execute(_KIN_OF_ONE, (row["id"], row["compared_to"]))
        }
    connection.executemany("INSERT OR IGNORE INTO kin VALUES (?, ?)", pairs | {(b, a) for a, b in pairs})
    connection.executemany(
        "UPDATE session SET compared_to = ? WHERE id = ?", [(row["last"] + 1, row["id"]) for row in rows]
    )
    changed = {row["id"] for row in rows if row["pending"] > 1 or row["related"]}
    return changed | {session for pair in pairs for session in pair}


def _pending_row(connection: sqlite3.Connection, session: int) -> sqlite3.Row:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    row: sqlite3.Row = cursor.execute(_PENDING, (session,)).fetchone()
    return row


def attribute_copies(connection: sqlite3.Connection, sessions: Iterable[int]) -> set[int]:
    """Tell for the families of these sessions which events are copies, and make their sums again; give the families."""
    done: set[int] = set()
    for session in sorted(sessions):
        if session in done:
            continue
        members = connection.execute(_MEMBERS, {"id": session}).fetchall()
        done |= {session, *(member[0] for member in members)}
        logs = _logs(members)
        if len(logs) > 1 or any(member[-1] for member in members):
            in_order = (member for log in _oldest_first(connection, logs) for member in log.sessions)
            _attribute(connection, {member: place for place, member in enumerate(in_order)})
    return done


def _logs(members: list[tuple[Any, ...]]) -> list[Log]:
    """The logs of these sessions; inline sub-agents are as old as the log they stand in."""
    logs: dict[int, Log] = {}
    for session, file, _, kind, own_id, path, _ in members:  # by thread: the main one first
        log = Log(file, _KINDS.get(kind, _SUBAGENT), (own_id, path), [])
        logs.setdefault(file, log).sessions.append(session)
    return list(logs.values())


def _attribute(connection: sqlite3.Connection, order: dict[int, int]) -> None:
    """Note the copies among sessions; `order` is session -> place, 0 the oldest."""
    rows = map(Held._make, connection.execute(_SHARED, (f"[{', '.join(map(str, order))}]",)))
    changes: list[tuple[int | None, int]] = []
    touched: set[int] = set()
    for _, held in groupby(rows, key=attrgetter("identity")):
        for event, original in _copies(list(held), order):
            if original != event.copy_of:
                changes.append((original, event.event))
                touched.add(event.session)
    connection.executemany("UPDATE event SET copy_of = ? WHERE id = ?", changes)
    for session in sorted(touched):
        sum_turns(connection, session)
        sum_session(connection, session)


def _copies(events: list[Held], order: dict[int, int]) -> Iterator[tuple[Held, int | None]]:
    """All events with one identity, each with its original; None for the original and what stands beside it.

    Of the figures of a response the best count, and of the best the oldest: a copy made while it was
    written holds less.
    """
    original = min(events, key=lambda e: (-(e.complete or 0), -(e.output_tokens or 0), order[e.session], e.event_index))
    for event in events:
        yield event, None if event.session == original.session else original.event


def _oldest_first(connection: sqlite3.Connection, logs: list[Log]) -> list[Log]:
    """Logs by age."""
    times = {log.file: connection.execute(_TIMES, (log.file,)).fetchone() for log in logs}
    logs = sorted(logs, key=lambda log: (log.kind, times[log.file], log.name))
    if 1 < len(logs) <= _MOST_COMPARED:
        older = _times_older(connection, logs)
        logs.sort(key=lambda log: -older[log.file])
    return logs


def _times_older(connection: sqlite3.Connection, logs: list[Log]) -> dict[int, int]:
    """File -> than how many of its relatives it is older."""
    lines = {log.file: dict(connection.execute(_LINES, (log.file, _USAGE))) for log in logs}
    older = dict.fromkeys(lines, 0)
    for one, other in combinations(logs, 2):
        own = [_first_own(lines[a.file], lines[b.file]) for a, b in ((one, other), (other, one))]
        older[other.file if one.kind == other.kind and own[1] < own[0] else one.file] += 1
    return older


def _first_own(lines: dict[int, int], others: dict[int, int]) -> tuple[bool, int]:
    """Sorts the times of first own lines; no such line is the earliest."""
    found = next((time for identity, time in lines.items() if identity not in others), None)
    return (found is not None, found or 0)
