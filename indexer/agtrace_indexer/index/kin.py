"""Events that occur in several sessions: which sessions share some, which events are copies, and of what.

`families/copies.py` decides; this module queries the index and records their decisions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.index.questions.queries import as_json
from agtrace_indexer.index.session_sums import changes_from, sum_session
from agtrace_indexer.index.turn_sums import sum_turns

_USAGE = TYPE_CODE[EventType.TOKEN_USAGE]

# The sessions that share one of a session's new events. An identity that a session has many times is looked up once.
_KIN_OF_ONE = """
SELECT DISTINCT o.session_id FROM (
  SELECT DISTINCT session_id, identity FROM event WHERE session_id = ? AND event_index >= ? AND identity > 0
) e JOIN event o ON o.identity = e.identity AND o.session_id != e.session_id
WHERE o.identity > 0
"""

# The same for all sessions at once: each session of a shared identity, paired with the first of them.
_KIN_OF_ALL = """
SELECT DISTINCT min(e.session_id) OVER (PARTITION BY e.identity), e.session_id FROM event e
WHERE e.identity IN (SELECT identity FROM event WHERE identity > 0 GROUP BY identity HAVING count(*) > 1)
"""

_CHANGED = """
SELECT s.id, s.pending, s.compared_to, coalesce(max(e.event_index), -1) AS last,
  EXISTS (SELECT 1 FROM kin k WHERE k.session_id = s.id) AS related
FROM session s LEFT JOIN event e ON e.session_id = s.id WHERE s.id = ?
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

_HELD = """
SELECT e.identity, e.id, e.session_id, e.event_index, e.copy_of, u.complete, u.output_tokens
FROM event e LEFT JOIN token_usage u USING (session_id, event_index)
WHERE e.identity > 0 AND e.superseded_by IS NULL AND e.session_id IN (SELECT value FROM json_each(?))
ORDER BY e.identity, e.session_id, e.event_index
"""

_REPLAY = """
SELECT s.replayed_to, s.clustered_to, p.id FROM session s
LEFT JOIN session p ON p.id = s.parent_session AND p.provider = s.provider
WHERE s.id = :session AND s.provider IN (SELECT value FROM json_each(:agents))
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


class Changed(NamedTuple):
    """A session that has changed since it was compared with others."""

    session: int
    pending: int
    """More than 1 if it didn't only grow."""
    compared_to: int
    """The index of the first event that hasn't been compared yet."""
    last: int
    """The index of its last event; -1 if it has none."""
    related: int
    """1 if it is known to share events with others."""


class Member(NamedTuple):
    """A session among its relatives."""

    session: int
    file: int
    kind: str
    own_id: str
    path: str
    copied_events: int
    provider: str


class Held(NamedTuple):
    """An event that several sessions may share; the last two fields are token figures."""

    identity: int
    event: int
    session: int
    event_index: int
    copy_of: int | None
    complete: int | None
    output_tokens: int | None


class Replay(NamedTuple):
    """The beginning of a session's log that may replay another session's history."""

    replayed_to: int
    """The index of the first event that isn't replayed; 0 if the log doesn't say."""
    clustered_to: int | None
    """The same judged by the times of the events; None if nothing indicates a replay."""
    parent: int | None
    """The session of the same provider that started it."""


class Item(NamedTuple):
    """An event that a replay can repeat."""

    event_index: int
    identity: int
    event: int


class Marked(NamedTuple):
    """An event that is, or may become, a copy."""

    event: int
    event_index: int
    copy_of: int | None


def changed(connection: sqlite3.Connection, session: int) -> Changed:
    """Return a changed session's progress and relations."""
    return Changed(*connection.execute(_CHANGED, (session,)).fetchone())


def kin_of(connection: sqlite3.Connection, sessions: Iterable[Changed] | None) -> set[tuple[int, int]]:
    """Return pairs of sessions that share an event: of these sessions, with events not compared yet, or of all."""
    if sessions is None:  # each session of an event is paired with the first
        return {(one, other) for one, other in connection.execute(_KIN_OF_ALL) if one != other}
    return {
        (one.session, other)
        for one in sessions
        for (other,) in connection.execute(_KIN_OF_ONE, (one.session, one.compared_to))
    }


def note_compared(connection: sqlite3.Connection, sessions: Iterable[Changed], pairs: set[tuple[int, int]]) -> None:
    """Record that sessions were compared up to their last event, and which share events, in both directions."""
    connection.executemany("INSERT OR IGNORE INTO kin VALUES (?, ?)", pairs | {(b, a) for a, b in pairs})
    ends = [(session.last + 1, session.session) for session in sessions]
    connection.executemany("UPDATE session SET compared_to = ? WHERE id = ?", ends)


def members(connection: sqlite3.Connection, session: int) -> list[Member]:
    """Return the sessions of all logs that share events with this one's, even indirectly; main sessions first."""
    return [Member(*row) for row in connection.execute(_MEMBERS, {"id": session})]


def times(connection: sqlite3.Connection, file: int) -> tuple[int, int]:
    """Return the first and the last time of a log's main session, copies included; 0 is unknown.

    What counts where must not depend on what counted before.
    """
    first, last = connection.execute(_TIMES, (file,)).fetchone()
    return first, last


def lines(connection: sqlite3.Connection, file: int) -> dict[int, int]:
    """Return a log's contents line by line: identity -> time."""
    return dict(connection.execute(_LINES, (file,)).fetchall())


def held(connection: sqlite3.Connection, sessions: Iterable[int]) -> Iterator[Held]:
    """Return the events of some sessions that others may share, grouped by identity."""
    return map(Held._make, connection.execute(_HELD, (as_json(sessions),)))


def replay(connection: sqlite3.Connection, session: int, agents: Iterable[str]) -> Replay | None:
    """Return the replay of a session of one of these agents; None if it never replayed anything."""
    found = connection.execute(_REPLAY, {"session": session, "agents": json.dumps(sorted(agents))}).fetchone()
    return None if found is None else Replay(*found)


def items(connection: sqlite3.Connection, session: int) -> Iterator[Item]:
    """Return the events of a session that a replay can repeat, or that may repeat another's, in order."""
    return map(Item._make, connection.execute(_ITEMS, (session,)))


def item_after(connection: sqlite3.Connection, session: int, event_index: int) -> int | None:
    """Return the index of the next item after an event, or of the session's end; None if no event follows."""
    found: int | None = connection.execute(_NEXT_ITEM, (session, event_index)).fetchone()[0]
    return found


def marked(connection: sqlite3.Connection, session: int, before: int) -> list[Marked]:
    """Return the events of a session before an index, and all its copies."""
    return [Marked(*row) for row in connection.execute(_MARKED, (session, before))]


def note_copies(connection: sqlite3.Connection, copies: Iterable[tuple[int | None, int]]) -> None:
    """Record what events are copies of: (original, event). None: it is an original; 0: its original isn't indexed."""
    connection.executemany("UPDATE event SET copy_of = ? WHERE id = ?", copies)


def note_repetition(connection: sqlite3.Connection, session: int, original: int) -> None:
    """Record that all of a session is a copy, from this event on, of one that has a log of its own."""
    connection.execute("UPDATE event SET copy_of = ? WHERE session_id = ?", (original, session))
    sum_up(connection, session)
    connection.execute("UPDATE session SET kind = 'warmup' WHERE id = ?", (session,))


def sum_up(connection: sqlite3.Connection, session: int) -> None:
    """Compute the totals of a session and its turns again, after other events of it became copies."""
    changes_from(connection, session, 0)
    sum_turns(connection, session)
    sum_session(connection, session)
