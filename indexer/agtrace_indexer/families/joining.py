"""Relations between sessions: who started whom, who was copied from whom, and what counts where.

Logs are read one by one, in any order and in pieces, so whatever depends on several of them is computed at
the end of a run, as a function of the logs that still exist: `join_families` looks at the
sessions that changed (`session.pending`) and at their relatives. Rows of vanished logs stay as they
were; they neither own the events of existing logs nor lose theirs to these.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple, TypeAlias

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.events.identity import LINE_SPAN
from agtrace_indexer.families.copies import (
    attribute_copies,
    attribute_repetitions,
    attribute_replays,
    attribute_reports,
    find_kin,
    logged_twice,
    show_again,
)
from agtrace_indexer.index.queries.base import as_json
from agtrace_indexer.providers.registry import AGENTS

_DEEPEST = 64

_IN_ITS_FOLDER = "(substr(:path, 1, length(f.path) - 5) = substr(f.path, 1, length(f.path) - 6) || '/')"
"""Whether a log is in the folder that belongs to another one: `<session>/subagents/...` next to `<session>.jsonl`."""

# In a log of the same provider, preferably the original.
_STARTED_BY = f"""
SELECT s.id, coalesce(e.link, e.event_index)
FROM agent_start a JOIN session s ON s.id = a.session_id JOIN file f ON f.id = s.file_id
JOIN event e ON e.session_id = a.session_id AND e.event_index = a.event_index
WHERE (a.agent_id = :own_id OR (a.agent_id = :parent_id AND :parent_id LIKE 'team-%')) AND s.id != :id
  AND s.provider = :provider AND e.superseded_by IS NULL
ORDER BY s.kind = 'warmup', NOT {_IN_ITS_FOLDER}, e.copy_of IS NOT NULL, s.file_id != :file,
  s.own_id IS NOT :parent_id AND s.parent_id IS NOT :parent_id, f.path, s.thread, a.event_index LIMIT 1
"""

_NAMED_PARENT = f"""
SELECT s.id, NULL FROM session s JOIN file f ON f.id = s.file_id
WHERE s.own_id = :parent_id AND s.id != :id AND s.provider = :provider
ORDER BY s.kind = 'warmup', NOT {_IN_ITS_FOLDER}, s.file_id != :file, s.started_at IS NULL, s.started_at, f.path,
  s.thread LIMIT 1
"""

# The session with the original of the last copy.
_COPIED_FROM = f"""
SELECT s.id, NULL FROM event e JOIN event o ON o.id = e.copy_of JOIN session s ON s.id = o.session_id
WHERE e.session_id = :id AND e.copy_of > 0 AND e.type != {TYPE_CODE[EventType.TOKEN_USAGE]}
  AND e.superseded_by IS NULL
ORDER BY e.event_index DESC LIMIT 1
"""

# The session whose log repeats figures of a sub-agent's.
_REPEATED_BY = f"""
SELECT c.session_id, NULL FROM event e JOIN event c ON c.identity = e.identity AND c.identity > 0 AND c.copy_of = e.id
WHERE e.session_id = :id AND e.type = {TYPE_CODE[EventType.TOKEN_USAGE]} LIMIT 1
"""

_CONTINUED = f"""
SELECT s.id, NULL FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE e.identity >= :line AND e.identity < :line + {LINE_SPAN} AND e.identity > 0 AND s.id != :id
ORDER BY e.copy_of IS NOT NULL, f.path, s.thread LIMIT 1
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

# By the titles that logs give, as these are few.
_TITLES = f"""
SELECT e.session_id, n.title FROM naming n
CROSS JOIN event e ON e.identity >= n.line AND e.identity < n.line + {LINE_SPAN} AND e.identity > 0
CROSS JOIN session s ON s.id = n.session_id CROSS JOIN file f ON f.id = s.file_id
WHERE e.copy_of IS NULL AND e.superseded_by IS NULL
ORDER BY f.path, s.thread, e.event_index
"""

_RANK_OF_NAMING = 2
"""A title that a log gives its own session with a higher rank is preferred to one that another log gives it."""

_RETITLE = f"""
UPDATE session AS s SET title = coalesce(?1, own_title)
WHERE id = ?2 AND title_rank < {_RANK_OF_NAMING} AND title IS NOT coalesce(?1, own_title)
"""

_TWINS = """
SELECT wanted, id FROM (
  SELECT s.id, s.uid, CASE row_number() OVER twins WHEN 1 THEN s.own_id
    ELSE s.own_id || '~' || row_number() OVER twins END AS wanted
  FROM session s JOIN file f ON f.id = s.file_id
  WHERE s.own_id IN (SELECT own_id FROM session GROUP BY own_id HAVING count(*) > 1) OR s.uid != s.own_id
  WINDOW twins AS (PARTITION BY s.own_id
    ORDER BY f.gone, s.kind = 'warmup', s.started_at IS NULL, s.started_at, f.path, s.thread))
WHERE wanted != uid
"""


class _Session(NamedTuple):
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


_Origin: TypeAlias = tuple[_Session, int | None, int | None]
"""A session, its parent according to logs, and the event of the call that started it."""


def join_families(connection: sqlite3.Connection) -> None:
    """Bring copies, parents, children and titles up to date with the sessions that changed."""
    changed = _all(connection, "SELECT id FROM session WHERE pending")
    if not changed:
        return
    uncertain = find_kin(connection)
    repeated = logged_twice(connection)
    uncertain |= show_again(connection, repeated.keys())
    related = attribute_copies(connection, uncertain, repeated.keys())
    attribute_repetitions(connection, repeated, related | changed)
    to_link = related.union(*(_all(connection, _NEAR, {"id": session}) for session in changed))
    to_link |= {session for session, origin in connection.execute(_CONTINUING) if origin in changed}
    _link(connection, to_link)
    attribute_replays(connection, to_link)
    attribute_reports(connection, to_link)
    _name(connection)
    connection.execute("UPDATE session SET pending = 0 WHERE pending")


def _all(connection: sqlite3.Connection, query: str, arguments: Any = ()) -> set[int]:
    return {row for (row,) in connection.execute(query, arguments)}


def _link(connection: sqlite3.Connection, sessions: set[int]) -> None:
    """Find the parents of sessions, and the calls that started them."""
    found = _origins(connection, sessions)
    parents: dict[int, int | None] = dict.fromkeys((session.id for session, *_ in found), None)
    for session, parent, started_by in found:
        if parent is not None and _descends(connection, parents, parent, session.id):
            parent, started_by = None, None
        parents[session.id] = parent
        if (parent, started_by) != (session.parent_session, session.started_by):
            change = "UPDATE session SET parent_session = ?, started_by = ? WHERE id = ?"
            connection.execute(change, (parent, started_by, session.id))


def _origins(connection: sqlite3.Connection, sessions: set[int]) -> list[_Origin]:
    """Return the origins of sessions according to the logs, by path, and of all sessions they come or came from.

    If logs contradict each other, the origins can form a cycle, and which link is left out depends on the order: so
    all links of a cycle are made anew as soon as one of them may change.
    """
    found: dict[int, _Origin] = {}
    while sessions:
        near = set()
        for row in connection.execute(_TO_BE_LINKED, (as_json(sessions),)).fetchall():
            session = _Session(*row)
            parent, started_by = _parent(connection, session)
            found[session.id] = session, parent, started_by
            near |= {parent, session.parent_session}
        sessions = {other for other in near if other is not None and other not in found}
    return sorted(found.values(), key=lambda origin: (origin[0].path, origin[0].thread))


def _parent(connection: sqlite3.Connection, session: _Session) -> tuple[int | None, int | None]:
    """Return the parent and the starting event: named by a result, else by the session's log, else found by copies."""
    replays, kind = AGENTS[session.provider].replays_items, session.kind
    for query, applies in (
        (_STARTED_BY, True),
        (_NAMED_PARENT, session.parent_id is not None),
        (_COPIED_FROM, session.copied_events > 0 and kind in ("main", "fork") and not replays),
        (_REPEATED_BY, kind == "subagent" and replays),
        (_CONTINUED, session.line is not None),
    ):
        found = connection.execute(query, session._asdict()).fetchone() if applies else None
        if found is not None:
            parent, started_by = found
            return parent, session.started_call if started_by is None else started_by
    return None, None


def _descends(connection: sqlite3.Connection, parents: dict[int, int | None], session: int, ancestor: int) -> bool:
    """Whether a session is another one or comes from it; `parents` are the links that this run has found so far."""
    at: int | None = session
    for _ in range(_DEEPEST):
        if at is None or at == ancestor:
            return at is not None
        if at in parents:
            at = parents[at]
        else:
            (at,) = connection.execute("SELECT parent_session FROM session WHERE id = ?", (at,)).fetchone()
    return True


def _name(connection: sqlite3.Connection) -> None:
    """Give sessions the titles that logs (of several, the last) attach to their lines, unless they have better ones."""
    titles = dict(connection.execute(_TITLES).fetchall())
    named = {*titles, *_all(connection, "SELECT id FROM session WHERE title IS NOT own_title")}
    connection.executemany(_RETITLE, [(titles.get(session), session) for session in named])


def assign_unique_ids(connection: sqlite3.Connection) -> None:
    """Give sessions that share an id their suffixes; the oldest one whose log still exists has none."""
    renamed = connection.execute(_TWINS).fetchall()
    parked = [(str(session).encode(), session) for _, session in renamed]  # bytes: never equal to an id from a log
    for ids in (parked, renamed):  # they may swap their ids
        connection.executemany("UPDATE session SET uid = ? WHERE id = ?", ids)
