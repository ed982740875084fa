"""Sessions that belong together: who started whom, who was copied from whom, and what counts where.

Logs are read one by one, in any order and in pieces, so what depends on several of them is made at
the end of a run, as a function of the logs that are still there: `join_families` looks at the
sessions that changed (`session.pending`) and at their relatives. Rows of vanished logs stay as they
were; they neither own the events of logs that are there nor lose theirs to these.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace_indexer.events.identity import LINE_SPAN
from agtrace_indexer.families.copies import attribute_copies, find_kin
from agtrace_indexer.families.replays import attribute_replays
from agtrace_indexer.providers.registry import AGENTS

_THERE = "(SELECT 1 FROM file f WHERE f.id = s.file_id AND NOT f.gone)"

_IN_ITS_FOLDER = "(substr(:path, 1, length(f.path) - 5) = substr(f.path, 1, length(f.path) - 6) || '/')"
"""Whether a log lies in the folder that belongs to another one: `<session>/subagents/...` beside `<session>.jsonl`."""

_PENDING = f"SELECT s.id FROM session s WHERE s.pending AND EXISTS {_THERE}"

# Where a result names the agent that the execution started: in a log of its own provider, best the original.
_STARTED_BY = f"""
SELECT s.id, coalesce(e.link, e.event_index) AS started_by
FROM agent_start a JOIN session s ON s.id = a.session_id JOIN file f ON f.id = s.file_id
JOIN event e ON e.session_id = a.session_id AND e.event_index = a.event_index
WHERE a.agent_id = :own_id AND s.id != :id AND s.provider = :provider AND EXISTS {_THERE} AND e.superseded_by IS NULL
ORDER BY NOT {_IN_ITS_FOLDER}, e.copy_of IS NOT NULL, s.file_id != :file,
  s.own_id IS NOT :parent_id AND s.parent_id IS NOT :parent_id, f.path, s.thread, a.event_index LIMIT 1
"""

_NAMED_PARENT = f"""
SELECT s.id, NULL AS started_by FROM session s JOIN file f ON f.id = s.file_id
WHERE s.own_id = :parent_id AND s.id != :id AND s.provider = :provider AND EXISTS {_THERE}
ORDER BY NOT {_IN_ITS_FOLDER}, s.file_id != :file, s.kind = 'warmup', s.started_at IS NULL, s.started_at, f.path,
  s.thread LIMIT 1
"""

_CONTINUED = f"""
SELECT s.id, NULL AS started_by FROM event e JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
WHERE e.identity >= :line AND e.identity < :line + {LINE_SPAN} AND e.identity > 0 AND s.id != :id AND EXISTS {_THERE}
ORDER BY e.copy_of IS NOT NULL, f.path, s.thread LIMIT 1
"""

# Whose events a session repeats: the owner of the last of them.
_COPIED_FROM = f"""
SELECT s.id, NULL AS started_by FROM event e JOIN event o ON o.id = e.copy_of JOIN session s ON s.id = o.session_id
WHERE e.session_id = :id AND e.copy_of > 0 AND e.type != {TYPE_CODE[EventType.TOKEN_USAGE]}
  AND e.superseded_by IS NULL AND EXISTS {_THERE}
ORDER BY e.event_index DESC LIMIT 1
"""

_TO_BE_LINKED = """
SELECT s.id, s.own_id, s.provider, s.parent_id, s.kind, s.continues AS line, s.started_call, s.file_id AS file, f.path,
  s.thread, s.parent_session, s.started_by
FROM session s JOIN file f ON f.id = s.file_id
WHERE s.id IN (SELECT value FROM json_each(?)) AND NOT f.gone ORDER BY f.path, s.thread
"""

_TO_LINK = """
SELECT id FROM session WHERE id = :id
UNION SELECT c.id FROM session p JOIN session c ON c.parent_id = p.own_id WHERE p.id = :id
UNION SELECT c.id FROM agent_start a JOIN session c ON c.own_id = a.agent_id WHERE a.session_id = :id
UNION SELECT id FROM session WHERE parent_session = :id
UNION SELECT other_id FROM kin WHERE session_id = :id
"""

# Sessions that go on from a line of another one. CROSS JOIN: these few first, then their lines by index.
_CONTINUING = f"""
SELECT c.id, e.session_id FROM session c CROSS JOIN event e ON e.identity >= c.continues
  AND e.identity < c.continues + {LINE_SPAN} AND e.identity > 0 WHERE c.continues IS NOT NULL
"""

# The titles that logs give to the sessions that hold certain lines; of several, the last log's.
_NAMED = f"""
SELECT e.session_id, n.title FROM naming n JOIN session s ON s.id = n.session_id
JOIN file f ON f.id = s.file_id
CROSS JOIN event e ON e.identity >= n.line AND e.identity < n.line + {LINE_SPAN} AND e.identity > 0
WHERE e.copy_of IS NULL AND e.superseded_by IS NULL AND NOT f.gone ORDER BY f.path, s.thread, e.event_index
"""
_RANK_OF_NAMING = 2
"""What a log calls itself with a higher rank is better than a title that another log gives."""
_DEEPEST = 64


def join_families(connection: sqlite3.Connection) -> None:
    """Bring copies, parents, children and titles up to date with the sessions that changed."""
    pending = [row[0] for row in connection.execute(_PENDING)]
    if not pending:
        return
    related = attribute_copies(connection, find_kin(connection, pending))
    to_link = related | {row[0] for session in pending for row in connection.execute(_TO_LINK, {"id": session})}
    changed = set(pending)
    to_link |= {session for session, origin in connection.execute(_CONTINUING) if origin in changed}
    _link(connection, to_link)
    attribute_replays(connection, to_link)
    _name(connection)
    connection.executemany("UPDATE session SET pending = 0 WHERE id = ?", [(session,) for session in pending])


def _link(connection: sqlite3.Connection, sessions: set[int]) -> None:
    """Find the parents of sessions, and the calls that started them."""
    found = _origins(connection, sessions)
    parents: dict[int, int | None] = dict.fromkeys((origin.session for origin in found), None)
    for origin in found:
        parent, started_by = origin.parent, origin.started_by
        if parent is not None and _descends(connection, parents, parent, origin.session):
            parent, started_by = None, None
        parents[origin.session] = parent
        if (parent, started_by) != origin.before:
            connection.execute(
                "UPDATE session SET parent_session = ?, started_by = ? WHERE id = ?",
                (parent, started_by, origin.session),
            )


def _origins(connection: sqlite3.Connection, sessions: set[int]) -> list[_Origin]:
    """Where sessions come from as their logs tell it, by path; and all from which they come or came.

    Where logs contradict each other this is a circle, and the first link of it that is made closes it: so all of
    its links are made anew as soon as one of them may change.
    """
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    found: dict[int, _Origin] = {}
    while sessions:
        for row in map(dict, cursor.execute(_TO_BE_LINKED, (f"[{', '.join(map(str, sessions))}]",)).fetchall()):
            before = row["parent_session"], row["started_by"]
            found[row["id"]] = _Origin((row["path"], row["thread"]), row["id"], *_parent(cursor, row), before)
        near = {near for session in sessions & found.keys() for near in found[session].near}
        sessions = {session for session in near if session is not None and session not in found} - sessions
    return sorted(found.values())


class _Origin(NamedTuple):
    """What a session's log, and those of others, say of where it comes from."""

    place: tuple[str, str]
    session: int
    parent: int | None
    started_by: int | None
    before: tuple[int | None, int | None]
    """The parent and the event that started it, as the index has them."""

    @property
    def near(self) -> tuple[int | None, int | None]:
        """From whom it comes, and from whom it came."""
        return self.parent, self.before[0]


def _parent(cursor: sqlite3.Cursor, row: dict[str, Any]) -> tuple[int | None, int | None]:
    """The parent and the event that started the session: as a result names it, else as the log does, else by copies."""
    found = cursor.execute(_STARTED_BY, row).fetchone() if row["kind"] != "main" else None
    if found is None and row["parent_id"] is not None:
        found = cursor.execute(_NAMED_PARENT, row).fetchone()
    if found is None and row["kind"] in ("main", "fork") and not AGENTS[row["provider"]].replays_items:
        found = cursor.execute(_COPIED_FROM, row).fetchone()
    if found is None and row["line"] is not None:
        found = cursor.execute(_CONTINUED, row).fetchone()
    if found is None:
        return None, None
    return found["id"], row["started_call"] if found["started_by"] is None else found["started_by"]


def _descends(connection: sqlite3.Connection, parents: dict[int, int | None], session: int, ancestor: int) -> bool:
    """Whether a session is another one, or comes from it; `parents` are the links that this run has found so far."""
    for _ in range(_DEEPEST):
        if session == ancestor:
            return True
        if session in parents:
            found = parents[session]
        else:
            (found,) = connection.execute("SELECT parent_session FROM session WHERE id = ?", (session,)).fetchone()
        if found is None:
            return False
        session = found
    return True


def _name(connection: sqlite3.Connection) -> None:
    """Give sessions the titles that logs give to their lines, where nothing better names them."""
    titles = dict(connection.execute(_NAMED).fetchall())
    named_before = connection.execute("SELECT id FROM session WHERE title IS NOT own_title").fetchall()
    connection.executemany(
        "UPDATE session SET title = coalesce(?1, own_title) WHERE id = ?2 AND title_rank < ?3 "
        "AND file_id IN (SELECT id FROM file WHERE NOT gone)",
        [(titles.get(session), session, _RANK_OF_NAMING) for session in {*titles, *(row[0] for row in named_before)}],
    )
