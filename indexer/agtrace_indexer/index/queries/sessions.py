"""Sessions: by id, as filtered lists, and by their relations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from agtrace_indexer.index.queries.base import (
    BELOW,
    COUNTED,
    GIVEN,
    HAS_PATH,
    IS_COMMIT,
    IS_PULL_REQUEST,
    LAST,
    OF_PROJECTS,
    REPOSITORY,
    as_json,
    conditions,
    first,
    is_team,
    only,
    pairs,
    rows,
    value,
    values,
)
from agtrace_indexer.logs.discovery import REPEATS, stem

_SESSION = """
SELECT s.id, s.file_id, s.thread, s.uid, s.own_id, s.provider, s.kind,
  s.project_id, p.hash, p.root_path, f.path, f.gone, s.parent_id, s.parent_session, s.started_by,
  s.agent_type, s.description, s.title, s.snippet, s.cwd, s.branch, s.version, s.model,
  s.started_at, s.ended_at, s.active_ms, s.event_count, s.turn_count, s.tool_calls, s.failed_calls, s.total_tokens,
  s.copied_events, s.copied_turns, s.copied_tool_calls, s.copied_failed_calls, s.copied_tokens
FROM session s JOIN file f ON f.id = s.file_id LEFT JOIN project p ON p.id = s.project_id
"""

_BEGINS = f"uid >= :prefix AND uid < :prefix || {LAST}"

_OF_KIND = f"{BELOW} = (:kind = 'subagent')"

# instr rather than LIKE, so that the text is taken literally.
_SAYS = """
(instr(lower(coalesce(s.title, '')), lower(:query)) OR EXISTS (
  SELECT 1 FROM turn t JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
  WHERE t.session_id = s.id AND instr(lower(r.text), lower(:query))))
"""

_USED = """
EXISTS (SELECT 1 FROM model_usage u WHERE u.session_id = s.id AND instr(lower(u.model), lower(:model)))
"""

# Few paths match, and few of the sessions that touched one have many: 6 ms at 1 GB of logs.
_TOUCHED = f"""
EXISTS (SELECT 1 FROM touched t JOIN event e USING (session_id, event_index)
  WHERE t.session_id = s.id AND {COUNTED} AND (:access IS NULL OR t.access = :access)
  AND (:path IS NULL OR t.path_id IN (SELECT id FROM path WHERE {HAS_PATH.format("text")})))
"""

_COMMITTED = f"""
s.id IN (SELECT l.session_id FROM landmark l JOIN event e USING (session_id, event_index)
  WHERE {IS_COMMIT} AND {COUNTED})
"""

_OF_PULL_REQUEST = f"""
s.id IN (SELECT l.session_id FROM landmark l JOIN event e USING (session_id, event_index)
  WHERE {IS_PULL_REQUEST} AND {COUNTED})
"""

_CHILDREN = """
SELECT id, uid, kind, copied_events, parent_session, started_by, started_at FROM session
WHERE parent_session = :id AND kind != 'warmup'
UNION
SELECT id, uid, kind, copied_events, parent_session, started_by, started_at FROM session
WHERE parent_session IS NULL AND parent_id = :own_id AND id != :id AND provider = :provider AND kind != 'warmup'
ORDER BY started_at NULLS FIRST, id
"""

_PARENT = """
SELECT uid FROM session WHERE id = :parent_session
UNION ALL SELECT uid FROM session
WHERE :parent_session IS NULL AND own_id = :parent_id AND id != :id AND provider = :provider LIMIT 1
"""

# A session and the sub-agents below it; a cycle in damaged logs ends where it began.
_WITH_AGENTS = """
WITH RECURSIVE below (id) AS (
  SELECT :id
  UNION SELECT s.id FROM below b JOIN session s ON s.parent_session = b.id AND s.kind IN ('subagent', 'warmup'))
SELECT sum(s.kind != 'warmup'), sum(s.tool_calls), sum(s.failed_calls), group_concat(s.id)
FROM below b JOIN session s ON s.id = b.id
"""

# Events of one session that repeat the other's, and events of both that repeat the same event of a third.
_COPIED = """
SELECT count(*) FROM event e JOIN event o ON o.id = e.copy_of
WHERE e.session_id = :one AND o.session_id = :other AND e.superseded_by IS NULL
"""
_COPIED_BOTH = """
SELECT count(*) FROM event e WHERE e.session_id = :one AND e.copy_of > 0 AND e.superseded_by IS NULL
  AND e.copy_of IN (SELECT copy_of FROM event WHERE session_id = :other AND copy_of > 0 AND superseded_by IS NULL)
"""

# A sub-agent's work is that of the session above it; a cycle in damaged logs ends where it began.
_ACTIVE = """
WITH RECURSIVE above (id, at) AS (
  SELECT id, ended_at FROM session WHERE ended_at >= :since AND kind != 'warmup'
  UNION
  SELECT s.parent_session, a.at FROM above a JOIN session s ON s.id = a.id
  WHERE s.kind = 'subagent' AND s.parent_session IS NOT NULL)
SELECT s.id, max(a.at) FROM above a JOIN session s ON s.id = a.id
WHERE s.kind NOT IN ('subagent', 'warmup') GROUP BY s.id ORDER BY 2 DESC, 1 DESC LIMIT :most
"""

_NEWEST = """
SELECT id FROM session WHERE kind NOT IN ('subagent', 'warmup') ORDER BY coalesce(ended_at, 0) DESC, id DESC LIMIT ?
"""

_PUSHED = f"SELECT s.id, p.shown FROM session s JOIN person p ON p.id = s.person_id WHERE s.id IN {GIVEN}"


class Session(NamedTuple):
    """A session with its project and its log. Times are milliseconds since 1970 UTC; None is unknown."""

    id: int
    """Its row id; row ids grow with time of indexing."""
    file_id: int
    thread: str
    """The thread of the log that it is; empty for the main session."""
    uid: str
    """The provider's id, with a visible suffix if two logs share it."""
    own_id: str
    """The provider's id as in the log."""
    provider: str
    kind: str
    """main, subagent, fork or warmup."""
    project_id: int | None
    project_hash: str | None
    root_path: str | None
    """The root of the project; None if the log names only its hash."""
    path: str
    """The log, followed by `#replaced-` and a number if another one took its place."""
    gone: int
    """1 if the log has vanished."""
    parent_id: str | None
    """The provider's id of the session that started this one."""
    parent_session: int | None
    """The row id of the session that started this one, was copied into it or continues in it."""
    started_by: int | None
    """The event of the call that started it, in that session."""
    agent_type: str | None
    description: str | None
    """The task a sub-agent was started for."""
    title: str | None
    snippet: str | None
    """The beginning of the first human request."""
    cwd: str | None
    branch: str | None
    version: str | None
    model: str | None
    started_at: int | None
    ended_at: int | None
    active_ms: int
    event_count: int
    """Like all totals except the `copied_` ones, without superseded events and copies."""
    turn_count: int
    tool_calls: int
    failed_calls: int
    total_tokens: int | None
    copied_events: int
    copied_turns: int
    copied_tool_calls: int
    copied_failed_calls: int
    copied_tokens: int


class Child(Struct, frozen=True):
    """A session that another one started, or that continues from it."""

    id: int
    uid: str
    kind: str
    copied_events: int
    parent_session: int | None
    started_by: int | None
    started_at: int | None


class Counts(NamedTuple):
    """The number of sessions in a list."""

    sessions: int
    with_failures: int
    """Sessions with failed tool calls."""
    sub_agents: int
    """Those that are part of another session."""


class Family(Struct, frozen=True):
    """A session with the sub-agents below it."""

    sessions: int
    """Without warm-ups."""
    tool_calls: int
    failed_calls: int
    ids: tuple[int, ...]
    """The row ids of all of them, warm-ups included."""


class SessionFilters(Struct, frozen=True):
    """The filters of a list of sessions; None means no restriction. Times are milliseconds since 1970 UTC."""

    provider: str | None = None
    projects: tuple[int, ...] | None = None
    """The row ids of projects."""
    since: int | None = None
    until: int | None = None
    query: str | None = None
    """A text in the title or in the beginning of a request, ignoring the case of A to Z."""
    model: str | None = None
    """A text in the name of a model that answered."""
    branch: str | None = None
    """A text in the name of the branch on which it began."""
    path: str | None = None
    """A text in the path of a file named in one of the session's own calls."""
    access: str | None = None
    """`read` or `write`: what such a call did to the file, or to any file if there is no path."""
    kind: str | None = None
    """`subagent`, or `main` for all others; `top` for all that are below no other one; None for all."""
    min_tokens: int | None = None
    """Compared with the `total_tokens` of a list; 0 means no restriction, as a session may have no figures."""
    has_failures: bool | None = None
    commit: str | None = None
    """The hash of a commit that it made, or the beginning of one, in lower case; a text in its subject; or `any`."""
    pr: str | None = None
    """The number or the address of a pull request that it created, merged, closed or is about; `any` for whichever."""


# -- by id -----------------------------------------------------------------------------------------


def with_id(connection: sqlite3.Connection, uid: str) -> Session | None:
    """Return the session with this id."""
    return first(connection, Session, f"{_SESSION} WHERE s.uid = ?", (uid,))


def latest(connection: sqlite3.Connection) -> Session | None:
    """Return the session in which something happened last; a sub-agent's only if there are no others."""
    newest = "s.kind IN ('subagent', 'warmup'), coalesce(s.ended_at, 0) DESC, s.id DESC"
    return first(connection, Session, f"{_SESSION} ORDER BY {newest} LIMIT 1", ())


def with_prefix(connection: sqlite3.Connection, prefix: str, most: int) -> list[Session]:
    """Return the first sessions, ordered by id, whose id begins with a prefix."""
    sql = f"{_SESSION} WHERE {_BEGINS} ORDER BY s.uid LIMIT :most"
    return list(rows(connection, Session, sql, {"prefix": prefix, "most": most}))


def ids_with_prefix(connection: sqlite3.Connection, prefix: str, most: int) -> list[str]:
    """Return the first ids that begin with a prefix."""
    sql = f"SELECT uid FROM session WHERE {_BEGINS} ORDER BY uid LIMIT :most"
    return values(connection, sql, {"prefix": prefix, "most": most})


def count_with_prefix(connection: sqlite3.Connection, prefix: str) -> int:
    """Return the number of sessions whose id begins with a prefix."""
    return int(value(connection, f"SELECT count(*) FROM session WHERE {_BEGINS}", {"prefix": prefix}))


def neighbours(connection: sqlite3.Connection, uid: str) -> list[str | None]:
    """Return the ids before and after this one, which determine its shortest unique prefix."""
    before = "SELECT max(uid) FROM session WHERE uid < :uid"
    return values(connection, f"{before} UNION ALL SELECT min(uid) FROM session WHERE uid > :uid", {"uid": uid})


def in_rows(connection: sqlite3.Connection, ids: Iterable[int]) -> list[Session]:
    """Return the sessions with these row ids, oldest first."""
    sql = f"{_SESSION} WHERE s.id IN {GIVEN} ORDER BY s.started_at NULLS FIRST, s.id"
    return list(rows(connection, Session, sql, (as_json(ids),)))


def id_of(connection: sqlite3.Connection, row: int) -> str:
    """Return the id of the session with this row id."""
    uid: str = value(connection, "SELECT uid FROM session WHERE id = ?", (row,))
    return uid


# -- lists -----------------------------------------------------------------------------------------


def of_repositories(connection: sqlite3.Connection, repositories: Iterable[int]) -> set[int]:
    """Return the rows of the sessions of some repositories."""
    sql = f"SELECT s.id FROM session s WHERE {REPOSITORY} IN {GIVEN}"
    return {int(row) for row in values(connection, sql, (as_json(repositories),))}


def of_agents(connection: sqlite3.Connection, agents: Iterable[str]) -> set[int]:
    """Return the rows of the sessions of some agents."""
    names = [*agents]
    sql = f"SELECT id FROM session WHERE provider IN ({', '.join('?' * len(names))})"
    return {int(row) for row in values(connection, sql, names)}


def newest_row(connection: sqlite3.Connection) -> int:
    """Return the row id of the session indexed last, which marks the present state of lists; 0 if there is none."""
    return int(value(connection, "SELECT coalesce(max(id), 0) FROM session"))


def newest_event(connection: sqlite3.Connection) -> int:
    """Return the row id of the newest event, which marks the present state of the index; 0 if it is empty."""
    return int(value(connection, "SELECT coalesce(max(id), 0) FROM event"))


def last_piece(connection: sqlite3.Connection, path: str) -> str:
    """Return the last file of a log, by the path of the first; the path itself if there are no others."""
    others = values(connection, "SELECT path FROM file WHERE reason = ? AND NOT gone", (REPEATS.format(path),))
    return max(path, *others, key=lambda one: (stem(one), one == path)) if others else path


def active(connection: sqlite3.Connection, since: int, most: int) -> dict[int, int]:
    """Return session -> when something last happened in it or a sub-agent of it, for those active since a time.

    The latest come first; no sub-agents; at most `most`.
    """
    return pairs(connection, _ACTIVE, {"since": since, "most": most})


def newest(connection: sqlite3.Connection, most: int) -> list[Session]:
    """Return the sessions, no sub-agents, in which something happened last, the latest first."""
    ids = values(connection, _NEWEST, (most,))
    found = {session.id: session for session in in_rows(connection, ids)}
    return [found[id] for id in ids]


def of_provider(connection: sqlite3.Connection, provider: str | None) -> list[Session]:
    """Return all sessions except warm-ups, of one provider or of all, oldest first."""
    wanted = "s.kind != 'warmup' AND (:provider IS NULL OR s.provider = :provider)"
    sql = f"{_SESSION} WHERE {wanted} ORDER BY coalesce(s.started_at, 0), s.id"
    return list(rows(connection, Session, sql, {"provider": provider}))


def page(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    *,
    newest: int,
    behind: tuple[int, int] | None,
    most: int,
    oldest_first: bool = False,
) -> list[Session]:
    """Return the sessions of a list after a (start, row), newest first unless told otherwise, without warm-ups.

    `newest` marks the sessions that existed when the list was begun.
    """
    condition, arguments = _condition(filters, newest)
    start, row = behind or ((-1, 0) if oldest_first else (1 << 62, 0))
    after, way = (">", "ASC") if oldest_first else ("<", "DESC")
    sql = (
        f"{_SESSION} WHERE {condition} AND (coalesce(s.started_at, 0), s.id) {after} (:start, :row) "
        f"ORDER BY coalesce(s.started_at, 0) {way}, s.id {way} LIMIT :most"
    )
    return list(rows(connection, Session, sql, {**arguments, "start": start, "row": row, "most": most}))


def starts(connection: sqlite3.Connection, filters: SessionFilters, *, newest: int) -> dict[int, int]:
    """Return row id -> start of all sessions of a list, in no particular order; 0 is an unknown start."""
    condition, arguments = _condition(filters, newest)
    return pairs(connection, f"SELECT s.id, coalesce(s.started_at, 0) FROM session s WHERE {condition}", arguments)


def ends(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return row id -> when something happened last in these sessions, in milliseconds since 1970 UTC; 0 is unknown."""
    return pairs(connection, f"SELECT id, coalesce(ended_at, 0) FROM session WHERE id IN {GIVEN}", (as_json(ids),))


def count(connection: sqlite3.Connection, filters: SessionFilters, *, newest: int) -> Counts:
    """Return the number of sessions in a list."""
    condition, arguments = _condition(filters, newest)
    columns = f"count(*), coalesce(sum(s.failed_calls > 0), 0), count(*) FILTER (WHERE {BELOW})"
    sql = f"SELECT {columns} FROM session s WHERE {condition}"
    return only(connection, Counts, sql, arguments)


def _condition(filters: SessionFilters, newest: int) -> tuple[str, dict[str, Any]]:
    """Return the condition of a list as SQL over `session` s, and its arguments."""
    wanted, arguments = conditions(
        ("s.provider = :provider", "provider", filters.provider),
        (OF_PROJECTS, "projects", None if filters.projects is None else as_json(filters.projects)),
        ("coalesce(s.ended_at, 0) >= :since", "since", filters.since),
        ("nullif(s.started_at, 0) <= :until", "until", filters.until),
        (_SAYS, "query", filters.query),
        (_USED, "model", filters.model),
        ("instr(lower(s.branch), lower(:branch))", "branch", filters.branch),
        (_TOUCHED, "path", filters.path),
        (_TOUCHED, "access", filters.access),
        (_OF_KIND, "kind", filters.kind),
        ("s.total_tokens >= :min_tokens", "min_tokens", filters.min_tokens or None),
        ("(s.failed_calls > 0) = :has_failures", "has_failures", filters.has_failures),
        (_COMMITTED, "commit", filters.commit),
        (_OF_PULL_REQUEST, "pr", filters.pr),
    )
    condition = " AND ".join(["s.kind != 'warmup'", "s.id <= :newest", *wanted])
    return condition, {"newest": newest, "path": None, "access": None, **arguments}


# -- sessions that belong together -----------------------------------------------------------------


def children(connection: sqlite3.Connection, session: Session) -> list[Child]:
    """Return the sessions that come from this one, oldest first; if its log is gone, also those that name it."""
    return list(rows(connection, Child, _CHILDREN, session._asdict()))


def parent_id(connection: sqlite3.Connection, session: Session) -> str | None:
    """Return the id of the session that this one comes from; if that one's log is gone, the one that the log names."""
    result: str | None = value(connection, _PARENT, session._asdict())
    return result


def with_agents(connection: sqlite3.Connection, row: int) -> Family:
    """Return the totals of a session, given its row id, and of all sub-agents below it."""
    return only(connection, _family, _WITH_AGENTS, {"id": row})


def _family(sessions: int, tool_calls: int, failed_calls: int, ids: str) -> Family:
    return Family(sessions, tool_calls, failed_calls, tuple(map(int, ids.split(","))))


def started_by(connection: sqlite3.Connection, row: int, calls: Iterable[int]) -> dict[int, str]:
    """Return call event -> id of the session it started, for calls of the session with this row id.

    If a call started several, the one indexed first is returned.
    """
    sql = f"SELECT started_by, uid FROM session WHERE parent_session = ? AND started_by IN {GIVEN} ORDER BY id DESC"
    return pairs(connection, sql, (row, as_json(calls)))


def parents(connection: sqlite3.Connection) -> dict[int, int | None]:
    """Return session -> the one that started it, None for all but sub-agents, by row id, without warm-ups."""
    started = "CASE kind WHEN 'subagent' THEN parent_session END"
    return pairs(connection, f"SELECT id, {started} FROM session WHERE kind != 'warmup' ORDER BY id")


def shared_events(connection: sqlite3.Connection, one: int, other: int) -> int:
    """Return how many events two sessions share: copied from one to the other, or by both from a third."""
    ways = ({"one": one, "other": other}, {"one": other, "other": one})
    copied = sum(value(connection, _COPIED, way) for way in ways)
    return int(copied + value(connection, _COPIED_BOTH, ways[0]))


def people_of(connection: sqlite3.Connection, sessions: Iterable[int]) -> dict[int, str]:
    """Return session -> who pushed it, for the sessions with these row ids; nothing for one's own index."""
    return pairs(connection, _PUSHED, (as_json(sessions),)) if is_team(connection) else {}
