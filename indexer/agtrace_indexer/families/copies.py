"""Events that occur in several logs: each counts once, in the oldest session that contains it.

A fork, a background copy or a resumed session repeats the lines of another log, word for word and under the same ids.
The age of two sessions is decided by the lines that only one of them has: the one whose first such line is earlier, or
that has none, is older. A session that its own log calls a fork is younger than a main session, and a sub-agent is
younger than both: one that logs the whole conversation again began later.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Set
from itertools import combinations
from typing import NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.queries.base import as_json
from agtrace_indexer.index.sums import changes_from, sum_session, sum_turns
from agtrace_indexer.providers.registry import AGENTS

_MANY_EVENTS = 20_000
_MOST_COMPARED = 24
"""The most relatives that are compared with each other; if there are more, their times decide the order."""

_KINDS = {"main": 0, "fork": 1}
_SUBAGENT, _REVIEWER = 2, -1
"""A sub-agent is younger, unless only its figures are repeated by the log that it reports to."""

_USAGE = TYPE_CODE[EventType.TOKEN_USAGE]

_NEW_EVENTS = """
SELECT sum((SELECT coalesce(max(event_index), -1) + 1 FROM event WHERE session_id = s.id) - compared_to)
FROM session s WHERE pending
"""

# An identity that a session has many times is looked up once.
_KIN_OF_PENDING = """
SELECT DISTINCT e.session_id, o.session_id FROM (
  SELECT DISTINCT e.session_id, e.identity
  FROM session s CROSS JOIN event e ON e.session_id = s.id AND e.event_index >= s.compared_to
  WHERE s.pending AND e.identity > 0
) e CROSS JOIN event o ON o.identity = e.identity AND o.session_id != e.session_id
WHERE o.identity > 0
"""

# The same for all sessions at once: each session of a shared identity, paired with the first of them.
_KIN_OF_ALL = """
SELECT DISTINCT min(e.session_id) OVER (PARTITION BY e.identity), e.session_id FROM event e
WHERE e.identity IN (SELECT identity FROM event WHERE identity > 0 GROUP BY identity HAVING count(*) > 1)
"""

_COMPARED = """
UPDATE session SET compared_to = (SELECT coalesce(max(event_index) + 1, 0) FROM event WHERE session_id = session.id)
WHERE pending AND compared_to >= 0
"""

_RELATED = """
SELECT id FROM session s WHERE pending AND (pending > 1 OR EXISTS (SELECT 1 FROM kin k WHERE k.session_id = s.id))
"""

_MEMBERS = """
WITH RECURSIVE member (id) AS (
  SELECT :id
  UNION SELECT k.other_id FROM member m JOIN kin k ON k.session_id = m.id
  UNION SELECT o.id FROM member m JOIN session s ON s.id = m.id JOIN session o ON o.file_id = s.file_id)
SELECT s.id, s.file_id, s.kind, s.own_id, f.path, s.copied_events, s.provider
FROM member m JOIN session s ON s.id = m.id JOIN file f ON f.id = s.file_id
ORDER BY s.thread
"""

# Of a main session, copies included: what counts where must not depend on what counted before.
_TIMES = """
SELECT coalesce(min(nullif(e.ts, 0)), 0), coalesce(max(e.ts), 0) FROM session s JOIN event e ON e.session_id = s.id
WHERE s.file_id = ? AND s.thread = '' AND e.superseded_by IS NULL
"""

# The figures of responses change and are left out.
_LINES = f"""
SELECT e.identity, e.ts FROM session s JOIN event e ON e.session_id = s.id
WHERE s.file_id = ? AND e.identity > 0 AND e.type != {_USAGE} AND e.superseded_by IS NULL
ORDER BY e.offset, e.event_index
"""

# The original of events with one identity is the oldest session's. Of the token figures of a response the best count,
# and of equally good ones the oldest: a copy made while the response was being written has less.
_CHANGED_COPIES = """
SELECT original, id, session_id FROM (
  SELECT e.id, e.session_id, e.copy_of,
    CASE WHEN first_value(e.session_id) OVER best != e.session_id THEN first_value(e.id) OVER best END AS original
  FROM json_each(?) m CROSS JOIN event e ON e.session_id = m.value
  LEFT JOIN token_usage u USING (session_id, event_index)
  WHERE e.identity > 0 AND e.superseded_by IS NULL
  WINDOW best AS (PARTITION BY e.identity
    ORDER BY coalesce(u.complete, 0) DESC, coalesce(u.output_tokens, 0) DESC, m.key, e.event_index))
WHERE original IS NOT copy_of
"""

_IS_WITHIN = f"""
EXISTS (SELECT 1 FROM event WHERE session_id = {{0}}.id AND identity IS NOT NULL AND type != {_USAGE}) AND NOT EXISTS (
  SELECT identity FROM event WHERE session_id = {{0}}.id AND identity IS NOT NULL
  EXCEPT SELECT identity FROM event WHERE session_id = {{1}}.id)
"""

# Sessions that another log has as well, with the session that is read in their place: sub-agents within the log of
# their parent, or a copy of that, that have a log of their own, and sessions of which a log with the same id has all.
_LOGGED_TWICE = f"""
SELECT p.id, a.id
FROM session p JOIN session a ON a.own_id = p.own_id AND a.provider = p.provider AND a.thread = ''
WHERE p.thread != '' AND EXISTS (SELECT 1 FROM event e WHERE e.session_id = a.id)
  AND (a.parent_id = p.parent_id OR EXISTS (
    SELECT 1 FROM kin k JOIN session q ON q.id = k.other_id
    WHERE k.session_id = p.id AND q.own_id = a.own_id AND q.parent_id = a.parent_id))
UNION ALL
SELECT p.id, a.id FROM session p JOIN kin k ON k.session_id = p.id JOIN session a ON a.id = k.other_id
WHERE p.thread LIKE 'sidechain-%' AND a.thread = '' AND a.kind = 'subagent' AND {_IS_WITHIN.format("p", "a")}
UNION ALL
SELECT p.id, a.id FROM session p JOIN session a ON a.own_id = p.own_id AND a.provider = p.provider AND a.id != p.id
JOIN file f ON f.id = p.file_id JOIN file g ON g.id = a.file_id
WHERE p.thread = '' AND a.thread = '' AND {_IS_WITHIN.format("p", "a")}
  AND ((g.gone, coalesce(a.started_at, 0), g.path) < (f.gone, coalesce(p.started_at, 0), f.path)
    OR NOT ({_IS_WITHIN.format("a", "p")}))
"""

_ORIGINALS = """
SELECT identity, min(id) FROM event WHERE session_id = ?1 AND identity IS NOT NULL GROUP BY identity
UNION ALL SELECT 0, min(id) FROM event WHERE session_id = ?1
"""
"""The events of a session by their identities; the first one of all stands for those that have none."""

_HIDE = """
UPDATE session SET kind = 'warmup', compared_to = CASE kind WHEN 'main' THEN -1 WHEN 'fork' THEN -2 ELSE -3 END
WHERE id = ? AND kind != 'warmup'
"""
_SHOW = """
UPDATE session SET kind = CASE compared_to WHEN -1 THEN 'main' WHEN -2 THEN 'fork' ELSE 'subagent' END, compared_to = 0
WHERE id = ?
"""

_COPY = "UPDATE event SET copy_of = ? WHERE id = ?"
"""The event's original; null: it is one itself; 0: its original isn't indexed."""


class _Log(NamedTuple):
    """A log among its relatives, with the kind and name of its main session."""

    file: int
    kind: int
    name: tuple[str, str]
    sessions: list[int]


def find_kin(connection: sqlite3.Connection) -> set[int]:
    """Record which sessions share events with those that have changed.

    Return the sessions whose copies must be determined anew: all but those that only grew and have no relatives.
    """
    many = (connection.execute(_NEW_EVENTS).fetchone()[0] or 0) > _MANY_EVENTS
    pairs = [(a, b) for a, b in connection.execute(_KIN_OF_ALL if many else _KIN_OF_PENDING) if a != b]
    connection.executemany("INSERT OR IGNORE INTO kin VALUES (?1, ?2), (?2, ?1)", pairs)
    connection.execute(_COMPARED)
    return {session for (session,) in connection.execute(_RELATED)}.union(*pairs)


def logged_twice(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the sessions that are read in the log of another session, with that one."""
    pairs = connection.execute(_LOGGED_TWICE).fetchall()
    repeated = {session for session, _ in pairs}
    return {session: other for session, other in pairs if other not in repeated}


def show_again(connection: sqlite3.Connection, repeated: Set[int]) -> set[int]:
    """Restore the sessions that were read in the log of another one, but no longer are; return them."""
    hidden = {session for (session,) in connection.execute("SELECT id FROM session WHERE compared_to < 0")}
    for session in hidden - repeated:
        connection.execute("UPDATE event SET copy_of = NULL WHERE session_id = ?", (session,))
        connection.execute(_SHOW, (session,))
        _sum_up(connection, session)
    return hidden - repeated


def attribute_copies(connection: sqlite3.Connection, sessions: Set[int], repeated: Set[int]) -> set[int]:
    """Determine which events in the families of these sessions are copies, and renew the sums; return the families.

    The `repeated` sessions own none.
    """
    done: set[int] = set()
    for session in sorted(sessions):
        if session in done:
            continue
        logs: dict[int, _Log] = {}
        copied = 0
        for id, file, kind, own_id, path, copies, provider in connection.execute(_MEMBERS, {"id": session}):
            age = _KINDS.get(kind, _REVIEWER if AGENTS[provider].replays_items else _SUBAGENT)
            logs.setdefault(file, _Log(file, age, (own_id, path), [])).sessions.append(id)  # its main session first
            copied += copies
        done.update({session}, *(log.sessions for log in logs.values()))
        if len(logs) > 1 or copied:
            in_order = _oldest_first(connection, list(logs.values()))
            order = [member for log in in_order for member in log.sessions if member not in repeated]
            changes = connection.execute(_CHANGED_COPIES, (as_json(order),)).fetchall()
            connection.executemany(_COPY, [(original, event) for original, event, _ in changes])
            for member in sorted({member for *_, member in changes}):
                _sum_up(connection, member)
    return done


def attribute_repetitions(connection: sqlite3.Connection, repeated: Mapping[int, int], concerned: Set[int]) -> None:
    """Record that all of a session is a copy of the one that is read in its place, if one of these is concerned."""
    for session, other in repeated.items():
        if concerned.isdisjoint((session, other)):
            continue
        originals = dict(connection.execute(_ORIGINALS, (other,)).fetchall())
        events = connection.execute("SELECT coalesce(identity, 0), id FROM event WHERE session_id = ?", (session,))
        copies = [(originals.get(identity, originals[0]), event) for identity, event in events.fetchall()]
        connection.executemany(_COPY, copies)
        _sum_up(connection, session)
        connection.execute(_HIDE, (session,))


def _sum_up(connection: sqlite3.Connection, session: int) -> None:
    """Compute the totals of a session and its turns again, after other events of it became copies."""
    changes_from(connection, session, 0)
    sum_turns(connection, session)
    sum_session(connection, session)


def _oldest_first(connection: sqlite3.Connection, logs: list[_Log]) -> list[_Log]:
    """Return logs by age, oldest first."""
    times = {log.file: connection.execute(_TIMES, (log.file,)).fetchone() for log in logs}
    logs = sorted(logs, key=lambda log: (log.kind, times[log.file], log.name))
    if 1 < len(logs) <= _MOST_COMPARED:
        lines = {log.file: dict(connection.execute(_LINES, (log.file,)).fetchall()) for log in logs}
        older = dict.fromkeys(lines, 0)  # how many of its relatives a log is older than
        for one, other in combinations(logs, 2):
            own = [_first_own(lines[a.file], lines[b.file]) for a, b in ((one, other), (other, one))]
            older[other.file if one.kind == other.kind and own[1] < own[0] else one.file] += 1
        logs.sort(key=lambda log: -older[log.file])
    return logs


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

_REPLAYING = json.dumps(sorted(agent.name for agent in AGENTS.values() if agent.replays_items))

_MISSES = 3
"""This many new items in a row end a replay that can only be found by comparison."""

_REPLAY = """
SELECT s.replayed_to, s.clustered_to, p.id FROM session s
LEFT JOIN session p ON p.id = s.parent_session AND p.provider = s.provider
WHERE s.id = ? AND s.provider IN (SELECT value FROM json_each(?)) AND s.kind != 'warmup'
  AND (s.replayed_to > 0 OR s.clustered_to IS NOT NULL OR s.copied_events > 0)
"""

_ITEMS = "SELECT event_index, identity, id FROM event WHERE session_id = ? AND identity < 0 ORDER BY event_index"

# Events that belong to no item, such as token figures, go with the item before them.
_NEXT_ITEM = """
SELECT coalesce(min(event_index) FILTER (WHERE identity < 0), max(event_index) + 1)
FROM event WHERE session_id = ? AND event_index > ?
"""

_MARKED = """
SELECT id, event_index, copy_of FROM event
WHERE session_id = ? AND (event_index < ? OR (copy_of IS NOT NULL AND coalesce(identity, 0) <= 0))
"""


def attribute_replays(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Determine which events of these sessions are replayed, and sum the sessions up again."""
    for session in sorted(sessions):
        replay = connection.execute(_REPLAY, (session, _REPLAYING)).fetchone()
        if replay is not None:
            _attribute_replay(connection, session, *replay)


def _attribute_replay(
    connection: sqlite3.Connection, session: int, replayed_to: int, clustered_to: int | None, parent: int | None
) -> None:
    tells = replayed_to > 0 or clustered_to is not None
    originals = _originals(connection, session, parent, replayed_to) if tells and parent is not None else {}
    end = replayed_to or clustered_to or 0
    if originals and not replayed_to:
        last = max(originals)
        end = connection.execute(_NEXT_ITEM, (session, last)).fetchone()[0] or last + 1
    wanted = {index: originals.get(index, 0) for index in range(end)}
    marked = connection.execute(_MARKED, (session, end))
    changes = [(wanted.get(index), event) for event, index, before in marked if wanted.get(index) != before]
    if changes:
        connection.executemany(_COPY, changes)
        _sum_up(connection, session)


def _originals(connection: sqlite3.Connection, session: int, parent: int, replayed_to: int) -> dict[int, int]:
    """Map the index of each replayed event to the parent's event that it repeats, walking both in order."""
    places: dict[int, list[tuple[int, int]]] = {}
    for index, identity, event in connection.execute(_ITEMS, (parent,)):
        places.setdefault(identity, []).append((index, event))
    result: dict[int, int] = {}
    after, missed = -1, 0
    for index, identity, _ in connection.execute(_ITEMS, (session,)):
        if replayed_to and index >= replayed_to:
            break
        place = next((place for place in places.get(identity, ()) if place[0] > after), None)
        if place is not None:
            after, result[index], missed = place[0], place[1], 0
        elif not replayed_to and (missed := missed + 1) >= _MISSES:
            break
    return result


# -- reports ---------------------------------------------------------------------------------------
# Sub-agents whose figures are also in the log of the session that they belong to, as Qwen Code's are in its telemetry,
# where responses have ids: there they count.

_REPORTING = json.dumps(sorted(agent.name for agent in AGENTS.values() if agent.reports_agents))

_REPORTED = f"""
WITH RECURSIVE above (id) AS (
  SELECT parent_session FROM session WHERE id = :id
  UNION SELECT s.parent_session FROM above a JOIN session s ON s.id = a.id)
SELECT e.id, (SELECT min(o.id) FROM above a JOIN token_usage u ON u.session_id = a.id AND u.response_id IS NOT NULL
              JOIN event o USING (session_id, event_index)) AS original
FROM session s JOIN event e ON e.session_id = s.id
WHERE s.id = :id AND s.kind = 'subagent' AND s.provider IN (SELECT value FROM json_each(:reporting))
  AND e.type = {_USAGE} AND e.copy_of IS NOT original
"""


def attribute_reports(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Determine whether the figures of these sessions count in the log of a session above them."""
    for session in sorted(sessions):
        changes = connection.execute(_REPORTED, {"id": session, "reporting": _REPORTING}).fetchall()
        if changes:
            connection.executemany(_COPY, [(original, event) for event, original in changes])
            _sum_up(connection, session)
