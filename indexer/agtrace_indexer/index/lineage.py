"""The origins of sessions: their parents, titles given by other logs, shared ids.

The modules of `families` decide; this module queries the index and records their decisions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.events.identity import LINE_SPAN
from agtrace_indexer.index.questions.queries import as_json

_LOGGED = """
SELECT s.id, s.file_id, s.thread, s.provider, s.own_id, s.parent_id, s.kind, s.parent_session, s.ended_at, f.path
FROM session s JOIN file f ON f.id = s.file_id ORDER BY s.id
"""

_IN_ITS_FOLDER = "(substr(:path, 1, length(f.path) - 5) = substr(f.path, 1, length(f.path) - 6) || '/')"
"""Whether a log is in the folder that belongs to another one: `<session>/subagents/...` next to `<session>.jsonl`."""

_CHANGED = "SELECT id, pending FROM session WHERE pending"

# In a log of the same provider, preferably the original.
STARTED_BY = f"""
SELECT s.id, coalesce(e.link, e.event_index)
FROM agent_start a JOIN session s ON s.id = a.session_id JOIN file f ON f.id = s.file_id
JOIN event e ON e.session_id = a.session_id AND e.event_index = a.event_index
WHERE (a.agent_id = :own_id OR (a.agent_id = :parent_id AND :parent_id LIKE 'team-%')) AND s.id != :id
  AND s.provider = :provider AND e.superseded_by IS NULL
ORDER BY NOT {_IN_ITS_FOLDER}, e.copy_of IS NOT NULL, s.file_id != :file,
  s.own_id IS NOT :parent_id AND s.parent_id IS NOT :parent_id, f.path, s.thread, a.event_index LIMIT 1
"""

NAMED_PARENT = f"""
SELECT s.id, NULL FROM session s JOIN file f ON f.id = s.file_id
WHERE s.own_id = :parent_id AND s.id != :id AND s.provider = :provider
ORDER BY NOT {_IN_ITS_FOLDER}, s.file_id != :file, s.kind = 'warmup', s.started_at IS NULL, s.started_at, f.path,
  s.thread LIMIT 1
"""

# Of sessions within another one's log; the log of its own is read in their place.
_LOGGED_TWICE = """
SELECT p.id, (SELECT min(e.id) FROM event e WHERE e.session_id = a.id) AS first FROM session p
JOIN session a ON a.own_id = p.own_id AND a.provider = p.provider AND a.parent_id = p.parent_id AND a.thread = ''
WHERE p.thread != '' AND first
  AND (p.id IN (SELECT value FROM json_each(?1)) OR a.id IN (SELECT value FROM json_each(?1)))
"""

CONTINUED = f"""
SELECT s.id, NULL FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE e.identity >= :line AND e.identity < :line + {LINE_SPAN} AND e.identity > 0 AND s.id != :id
ORDER BY e.copy_of IS NOT NULL, f.path, s.thread LIMIT 1
"""

# The session with the original of the last copy.
COPIED_FROM = f"""
SELECT s.id, NULL FROM event e JOIN event o ON o.id = e.copy_of JOIN session s ON s.id = o.session_id
WHERE e.session_id = :id AND e.copy_of > 0 AND e.type != {TYPE_CODE[EventType.TOKEN_USAGE]}
  AND e.superseded_by IS NULL
ORDER BY e.event_index DESC LIMIT 1
"""

# The session whose log repeats figures of a sub-agent's.
REPEATED_BY = f"""
SELECT c.session_id, NULL FROM event e JOIN event c ON c.identity = e.identity AND c.identity > 0 AND c.copy_of = e.id
WHERE e.session_id = :id AND e.type = {TYPE_CODE[EventType.TOKEN_USAGE]} LIMIT 1
"""

_TO_BE_LINKED = """
SELECT s.id, s.own_id, s.provider, s.parent_id, s.kind, s.continues, s.started_call, s.file_id, f.path, s.thread,
  s.parent_session, s.started_by, s.copied_events
FROM session s JOIN file f ON f.id = s.file_id
WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY f.path, s.thread
"""

_NEAR = """
SELECT id FROM session WHERE id = :id
UNION SELECT c.id FROM session p JOIN session c ON c.parent_id = p.own_id WHERE p.id = :id
UNION SELECT c.id FROM agent_start a JOIN session c ON a.agent_id IN (c.own_id, c.parent_id) WHERE a.session_id = :id
UNION SELECT id FROM session WHERE parent_session = :id
UNION SELECT other_id FROM kin WHERE session_id = :id
"""

# CROSS JOIN: these few sessions first, then their lines by index.
_CONTINUING = f"""
SELECT c.id, e.session_id FROM session c CROSS JOIN event e ON e.identity >= c.continues
  AND e.identity < c.continues + {LINE_SPAN} AND e.identity > 0 WHERE c.continues IS NOT NULL
"""

# By the titles that logs give, as these are few; the last condition spares a look at the logs of all of them.
_TITLES = f"""
SELECT e.session_id, n.title FROM naming n
CROSS JOIN event e ON e.identity >= n.line AND e.identity < n.line + {LINE_SPAN} AND e.identity > 0
CROSS JOIN session s ON s.id = n.session_id CROSS JOIN file f ON f.id = s.file_id
WHERE e.copy_of IS NULL AND e.superseded_by IS NULL
  AND (:sessions IS NULL OR e.session_id IN (SELECT value FROM json_each(:sessions)))
ORDER BY f.path, s.thread, e.event_index
"""

_NAMED_BY = f"""
SELECT DISTINCT e.session_id FROM naming n
CROSS JOIN event e ON e.identity >= n.line AND e.identity < n.line + {LINE_SPAN} AND e.identity > 0
WHERE n.session_id IN (SELECT value FROM json_each(?))
"""

_RANK_OF_NAMING = 2
"""A title that a log gives its own session with a higher rank is preferred to one that another log gives it."""

_RETITLE = f"""
UPDATE session AS s SET title = coalesce(?1, own_title)
WHERE id = ?2 AND title_rank < {_RANK_OF_NAMING} AND title IS NOT coalesce(?1, own_title)
"""

_TWINS = """
SELECT s.id, s.uid, s.own_id,
  row_number() OVER (PARTITION BY s.own_id ORDER BY f.gone, s.kind = 'warmup', s.started_at IS NULL,
    s.started_at, f.path, s.thread)
FROM session s JOIN file f ON f.id = s.file_id WHERE s.id IN ({which})
"""

_ALL = """
SELECT id FROM session WHERE own_id IN (SELECT own_id FROM session GROUP BY own_id HAVING count(*) > 1)
UNION ALL SELECT id FROM session WHERE uid != own_id
"""

_OF_THESE = """
SELECT id FROM session
WHERE own_id IN (SELECT own_id FROM session WHERE id IN (SELECT value FROM json_each(?)))
"""


class Logged(NamedTuple):
    """A session and the log that contains it."""

    id: int
    file: int
    thread: str
    provider: str
    own_id: str
    parent_id: str | None
    kind: str
    parent_session: int | None
    ended_at: int | None
    path: str


class ToBeLinked(NamedTuple):
    """A session whose parent is to be found: its log's statements about it, and its current parent."""

    id: int
    own_id: str
    provider: str
    parent_id: str | None
    kind: str
    line: int | None
    """The identity of the line, in another log, that it continues from."""
    started_call: int | None
    file: int
    path: str
    thread: str
    parent_session: int | None
    started_by: int | None
    copied_events: int


class Parent(NamedTuple):
    """The origin of a session."""

    session: int
    started_by: int | None
    """The event of the call that started it, if known."""


class Twin(NamedTuple):
    """A session that shares its own id with others, or did."""

    session: int
    uid: str
    own_id: str
    number: int
    """1 for the oldest one whose log still exists."""


def logged(connection: sqlite3.Connection) -> Iterator[Logged]:
    """Return all sessions with their logs."""
    return map(Logged._make, connection.execute(_LOGGED))


def changed(connection: sqlite3.Connection) -> dict[int, bool]:
    """Return the sessions that have changed since families were joined.

    With each of them whether it only grew: else it is new, or a relative has vanished.
    """
    return {session: pending == 1 for session, pending in connection.execute(_CHANGED)}


def logged_twice(connection: sqlite3.Connection, sessions: Iterable[int]) -> list[tuple[int, int]]:
    """Return the sub-agents among these whose session's log repeats them, each with the first event of its own log."""
    return connection.execute(_LOGGED_TWICE, (as_json(sessions),)).fetchall()


def near(connection: sqlite3.Connection, session: int) -> list[int]:
    """Return the session itself and all sessions whose parent may depend on it."""
    return [found for (found,) in connection.execute(_NEAR, {"id": session})]


def continuing(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return (session, origin) for all sessions that continue from a line of another one."""
    return [(session, origin) for session, origin in connection.execute(_CONTINUING)]


def to_be_linked(connection: sqlite3.Connection, sessions: Iterable[int]) -> list[ToBeLinked]:
    """Return the facts about the origin of these sessions."""
    return [ToBeLinked(*row) for row in connection.execute(_TO_BE_LINKED, (as_json(sessions),))]


def parent_by(connection: sqlite3.Connection, query: str, session: ToBeLinked) -> Parent | None:
    """Return the parent of a session according to one of `STARTED_BY`, `NAMED_PARENT` and the queries that follow."""
    found = connection.execute(query, session._asdict()).fetchone()
    return None if found is None else Parent(*found)


def parent_of(connection: sqlite3.Connection, session: int) -> int | None:
    """Return the parent of a session as recorded in the index."""
    found: int | None = connection.execute("SELECT parent_session FROM session WHERE id = ?", (session,)).fetchone()[0]
    return found


def note_parent(connection: sqlite3.Connection, session: int, parent: int | None, started_by: int | None) -> None:
    """Record the origin of a session."""
    change = "UPDATE session SET parent_session = ?, started_by = ? WHERE id = ?"
    connection.execute(change, (parent, started_by, session))


def note_joined(connection: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Record that nothing is left to be done for these sessions."""
    connection.executemany("UPDATE session SET pending = 0 WHERE id = ?", [(session,) for session in sessions])


def given_titles(connection: sqlite3.Connection, sessions: Iterable[int] | None = None) -> dict[int, str]:
    """Return session -> the title that a log gives to one of its lines; of several, the last log's.

    If sessions are given, only theirs.
    """
    asked = None if sessions is None else as_json(sessions)
    return dict(connection.execute(_TITLES, {"sessions": asked}).fetchall())


def named_by(connection: sqlite3.Connection, sessions: Iterable[int]) -> list[int]:
    """Return the sessions with a line to which the log of one of these sessions gives a title."""
    return [session for (session,) in connection.execute(_NAMED_BY, (as_json(sessions),))]


def retitled(connection: sqlite3.Connection) -> list[int]:
    """Return the sessions whose title isn't their own."""
    return [session for (session,) in connection.execute("SELECT id FROM session WHERE title IS NOT own_title")]


def retitle(connection: sqlite3.Connection, titles: Mapping[int, str | None]) -> None:
    """Give sessions these titles unless they have better ones; None restores their own."""
    connection.executemany(_RETITLE, [(title, session) for session, title in titles.items()])


def twins(connection: sqlite3.Connection, sessions: Collection[int] | None = None) -> list[Twin]:
    """Return the sessions that share an id with others, or did; if sessions are given, only with one of these."""
    if sessions is None:
        return [Twin(*row) for row in connection.execute(_TWINS.format(which=_ALL))]
    return [Twin(*row) for row in connection.execute(_TWINS.format(which=_OF_THESE), (as_json(sessions),))]


def note_ids(connection: sqlite3.Connection, ids: Iterable[tuple[str, int]]) -> None:
    """Give sessions new ids: (id, session). They may swap their present ones."""
    ids = list(ids)
    parked = [(str(session).encode(), session) for _, session in ids]  # bytes: never equal to an id from a log
    connection.executemany("UPDATE session SET uid = ? WHERE id = ?", parked)
    connection.executemany("UPDATE session SET uid = ? WHERE id = ?", ids)
