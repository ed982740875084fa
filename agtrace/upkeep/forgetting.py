"""What `agtrace forget` would forget: which logs, what they hold, and what stays all the same."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from agtrace_indexer.families.belonging import STARTED, THESE_FILES, Logs, json_ids
from agtrace_indexer.index.tombstones import Tombstones, digest_of
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact_json
from agtrace_indexer.repair.repair import damaged_copies
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace.index.reader import open_read_only
from agtrace.problems import InvalidParameter, UnknownProject
from agtrace.report.selection import projects_named
from agtrace.sessions.query import find_session, iso
from agtrace.sessions.references import session_in
from agtrace.settings import Settings
from agtrace.text.lines import USER_MESSAGE, one_line, repeated
from agtrace.times import moment

_TITLES = 5

_HEADS = f"""
SELECT s.uid, s.kind, s.title, s.snippet, s.started_at, s.ended_at, s.event_count, f.path, f.gone
FROM session s JOIN file f ON f.id = s.file_id WHERE s.file_id IN {THESE_FILES} ORDER BY s.started_at, s.id
"""

# What a session that stays holds of what goes: the same lines in a log of its own.
_ALSO_IN = f"""
SELECT o.uid, count(DISTINCT e.identity) AS events FROM session s JOIN kin k ON k.session_id = s.id
JOIN session o ON o.id = k.other_id JOIN event e ON e.session_id = s.id
JOIN event c ON c.identity = e.identity AND c.session_id = o.id
WHERE s.file_id IN {THESE_FILES} AND o.file_id NOT IN {THESE_FILES}
  AND e.identity > 0 AND c.identity > 0 AND e.type != :usage
GROUP BY o.id ORDER BY events DESC, o.uid
"""

# What stays of a sub-agent in the log of the session that started it.
_TOLD_IN = f"""
SELECT DISTINCT p.uid FROM session s JOIN session p ON p.id = s.parent_session
WHERE s.file_id IN {THESE_FILES} AND p.file_id NOT IN {THESE_FILES} AND s.kind IN {STARTED} ORDER BY p.uid
"""


def choose(
    connection: sqlite3.Connection, sessions: Iterable[str] | None, project: str | None, before: str | None
) -> set[int]:
    """The files of the logs that go: of these sessions, or of all that no other one started; all conditions hold.

    With each one go its sub-agents. Raises `Problem` for what can't be found or read, and for a sub-agent that stands
    in its parent's log.
    """
    logs = Logs(connection)
    files = logs.roots if sessions is None else {_file_of(connection, given) for given in sessions}
    if project is not None:
        files &= _of_project(connection, project)
    if before is not None:
        files &= logs.ended_before(moment("before", before, datetime.now(UTC)))
    return logs.with_all_of(files)


def digests(connection: sqlite3.Connection, files: Iterable[int]) -> set[str]:
    """What their tombstones will say."""
    return Logs(connection).digests(files)


def describe(settings: Settings, connection: sqlite3.Connection, files: set[int]) -> dict[str, Any]:
    """What these files hold, as it may be shown: redacted, titles and ids on one line."""
    named = {"files": json_ids(files), "usage": TYPE_CODE[EventType.TOKEN_USAGE]}
    rows = connection.execute(_HEADS, named).fetchall()
    main = [row for row in rows if row["kind"] in ("main", "fork")]
    titles = (row["title"] or row["snippet"] for row in main or rows)
    found = {
        "sessions": len(main),
        "sub_agents": len(rows) - len(main),
        "events": sum(row["event_count"] for row in rows),
        "from": iso(min((row["started_at"] for row in rows if row["started_at"]), default=None)),
        "to": iso(max((row["ended_at"] for row in rows if row["ended_at"]), default=None)),
        "titles": [one_line(title, USER_MESSAGE) for title in titles if title][:_TITLES],
        "also_in": [dict(row) for row in connection.execute(_ALSO_IN, named)],
        "told_in": [uid for (uid,) in connection.execute(_TOLD_IN, named)],
        "logs": sorted({row["path"] for row in rows if not row["gone"] and os.path.exists(row["path"])}),
        "damaged_copies": [str(path) for path in damaged_copies(settings.database)],
    }
    redacted: dict[str, Any] = redact_json(found)  # type: ignore[assignment]  # an object stays an object
    return redacted


def chosen(
    settings: Settings, sessions: Sequence[str], project: str | None, before: str | None
) -> tuple[set[str], dict[str, Any]]:
    """The digests and the description of what is chosen, seen at one moment. Raises as `choose` does.

    Sessions of which a whole id is given, and which were forgotten before, are `already` gone.
    """
    tombstones = Tombstones.of(settings.database)
    with closing(open_read_only(settings.database)) as connection:
        connection.execute("BEGIN")
        already = [given for given in sessions if _is_gone(connection, given, tombstones)]
        left = [given for given in sessions if given not in already] if sessions else None
        files = choose(connection, left, project, before)
        return digests(connection, files), {**describe(settings, connection, files), "already": already}


def _is_gone(connection: sqlite3.Connection, given: str, tombstones: Tombstones) -> bool:
    id = session_in(given.strip())
    if not any(tombstones.has(digest_of(agent, id)) for agent in AGENTS):
        return False
    return connection.execute("SELECT 1 FROM session WHERE uid = ?", (id,)).fetchone() is None


def _file_of(connection: sqlite3.Connection, given: str) -> int:
    session = find_session(connection, given)
    if session["thread"] != "":
        head = "SELECT uid FROM session WHERE file_id = ? AND thread = ''"
        (parent,) = connection.execute(head, (session["file_id"],)).fetchone() or ("",)
        raise InvalidParameter(
            "session", f"{session['uid']} is a sub-agent that stands in the log of {parent}: forget that one"
        )
    return int(session["file_id"])


def _of_project(connection: sqlite3.Connection, project: str) -> set[int]:
    found = projects_named(connection, project)
    if len(found) > 1:
        query = "SELECT coalesce(root_path, hash) FROM project WHERE id = ?"
        names = [str(connection.execute(query, (id,)).fetchone()[0]) for id in found]
        raise UnknownProject(f"{len(found)} projects are called {repeated(project, 100)!r}", names[:5])
    rows = connection.execute("SELECT file_id FROM session WHERE project_id = ? AND thread = ''", found)
    return {row[0] for row in rows}
