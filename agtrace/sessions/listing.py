"""Breadth: lists of sessions, and what is known of one session."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from agtrace_indexer.index.sums import TOTAL, WHOLE_INPUT
from agtrace_schema.answers import ChildItem, Copied, SessionHead, SessionItem, SessionStats, WithChildren

from agtrace.sessions.query import COUNTED, PROJECTS_BY_HASH, iso, sessions_where, short_id
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line, shown_path
from agtrace.usage.prices import PriceTable
from agtrace.usage.usage import KINDS, Usage, usage_by, usage_of

SHORT_HASH = 8
"""Characters of a project's hash that answers show and accept."""

MODELS_SHOWN = 3
"""Models of a session or a project that an overview names."""

_CHILDREN = 10

# A session and the sub-agents below it; a circle in damaged logs ends where it began.
_DESCENDANTS = """
WITH RECURSIVE below (id) AS (
  SELECT :id
  UNION SELECT s.id FROM below b JOIN session s ON s.parent_session = b.id AND s.kind IN ('subagent', 'warmup'))
SELECT sum(s.kind != 'warmup') AS sessions, count(*) AS all_sessions,
  sum(s.tool_calls) AS tool_calls, sum(s.failed_calls) AS failed_calls,
  group_concat(s.id) AS ids
FROM below b JOIN session s ON s.id = b.id
"""

_CHILDREN_OF = """
SELECT id, uid, kind, copied_events, parent_session, started_by, started_at FROM session
WHERE parent_session = :id AND kind != 'warmup'
UNION
SELECT id, uid, kind, copied_events, parent_session, started_by, started_at FROM session
WHERE parent_session IS NULL AND parent_id = :own_id AND id != :id AND provider = :provider AND kind != 'warmup'
ORDER BY started_at, id
"""

# instr and not LIKE: whatever is looked for is literal.
_SAYS = """
(instr(lower(coalesce(s.title, '')), lower(:query)) OR EXISTS (
  SELECT 1 FROM turn t JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
  WHERE t.session_id = s.id AND instr(lower(r.text), lower(:query))))
"""

# Few paths match, and few of the sessions that touched one have many: 6 ms at 1 GB of logs.
_TOUCHED = f"""
EXISTS (SELECT 1 FROM touched t JOIN event e USING (session_id, event_index)
  WHERE t.session_id = s.id AND {COUNTED}
  AND t.path_id IN (SELECT id FROM path WHERE instr(lower(text), lower(:path))))
"""

_IN_TURNS = f"SELECT coalesce(sum({TOTAL}), 0) FROM turn u WHERE u.session_id = ?"

_PEAK = f"""
SELECT max({WHOLE_INPUT}), max(u.context_window) FROM token_usage u JOIN event e USING (session_id, event_index)
WHERE u.session_id = ? AND {COUNTED}
"""


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """What restricts a list of sessions; times are milliseconds since 1970 UTC."""

    provider: str | None = None
    project_hash: str | None = None
    since: int | None = None
    until: int | None = None
    query: str | None = None
    """A text in the title or in the beginning of a request, A to Z folded."""
    path: str | None = None
    """A text in the path of a file that a call of the session's own names."""
    min_tokens: int | None = None
    """Of what a list shows as `total_tokens`; 0 restricts nothing, as a session may have no figures."""
    has_failures: bool | None = None


class SessionPage(NamedTuple):
    """A page of sessions, newest first."""

    items: list[SessionItem]
    places: list[tuple[int, int]]
    """(start, row) of each item: the position behind it."""
    total: int
    failures: int
    """How many of `total` have failed tool calls."""
    more: bool


def list_sessions(
    connection: sqlite3.Connection,
    filters: SessionFilters,
    limit: int,
    *,
    snapshot: int,
    behind: tuple[int, int] | None,
    prices: PriceTable,
) -> SessionPage:
    """The sessions that were active in the window, by start, newest first; warm-ups are no sessions."""
    condition, arguments = _session_condition(filters, snapshot)
    start, row = behind or (1 << 62, 0)
    rows = sessions_where(
        connection,
        f"{condition} AND (coalesce(s.started_at, 0), s.id) < (:start, :row) "
        "ORDER BY coalesce(s.started_at, 0) DESC, s.id DESC LIMIT :limit",
        {**arguments, "start": start, "row": row, "limit": limit + 1},
    )
    total, failures = connection.execute(
        f"SELECT count(*), coalesce(sum(s.failed_calls > 0), 0) FROM session s WHERE {condition}", arguments
    ).fetchone()
    page = rows[:limit]
    places = [(row["started_at"] or 0, row["id"]) for row in page]
    used = usage_of(connection, prices, (row["id"] for row in page))
    items = [session_item(connection, row, used.get(row["id"], Usage())) for row in page]
    return SessionPage(items, places, total, failures, len(rows) > limit)


def count_sessions(connection: sqlite3.Connection, filters: SessionFilters, snapshot: int) -> int:
    """How many sessions fulfil these filters."""
    condition, arguments = _session_condition(filters, snapshot)
    return int(connection.execute(f"SELECT count(*) FROM session s WHERE {condition}", arguments).fetchone()[0])


def newest_session_row(connection: sqlite3.Connection) -> int:
    """The mark of which sessions the index holds now."""
    return connection.execute("SELECT coalesce(max(id), 0) FROM session").fetchone()[0]  # type: ignore[no-any-return]


def session_item(connection: sqlite3.Connection, row: sqlite3.Row, usage: Usage) -> SessionItem:
    """A session as a list shows it."""
    title, snippet = row["title"], row["snippet"]
    return SessionItem(
        id=short_id(connection, row["uid"]),
        provider=row["provider"],
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        kind=None if shown_kind(row) == "main" else shown_kind(row),
        parent_id=_shown_parent(connection, row),
        title=title and one_line(title, LABEL * 2),
        snippet=snippet and one_line(snippet, USER_MESSAGE),
        start_time=iso(row["started_at"]),
        duration_seconds=_duration(row["started_at"], row["ended_at"]),
        turn_count=row["turn_count"],
        tool_calls=row["tool_calls"],
        failed_calls=row["failed_calls"],
        total_tokens=usage.total,
        tokens_made=usage.tokens_made,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        copied_turns=row["copied_turns"] or None,
    )


def shown_kind(row: sqlite3.Row) -> str:
    """What a session is: main, subagent, fork (it repeats another's beginning), continuation (it goes on from it)."""
    if row["kind"] != "main" or row["parent_session"] is None:
        return str(row["kind"])
    return "fork" if row["copied_events"] else "continuation"


def session_head(connection: sqlite3.Connection, row: sqlite3.Row, prices: PriceTable) -> SessionHead:
    """What every level says about a session."""
    children, parent = children_of(connection, row), _shown_parent(connection, row)
    return SessionHead(
        session_id=row["uid"],
        provider=row["provider"],
        kind=shown_kind(row),
        parent_id=parent,
        parent_missing=True if row["parent_id"] and parent is None else None,
        started_by=row["started_by"],
        children=[child_item(connection, child) for child in children[:_CHILDREN]] or None,
        total_children=len(children) if len(children) > _CHILDREN else None,
        agent_type=row["agent_type"] and one_line(row["agent_type"], LABEL),
        description=row["description"] and one_line(row["description"], USER_MESSAGE),
        title=row["title"] and one_line(row["title"], USER_MESSAGE),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        root_path=row["root_path"] and shown_path(row["root_path"]),
        model=row["model"] and one_line(row["model"], LABEL),
        version=row["version"] and one_line(row["version"], LABEL),
        branch=row["branch"] and one_line(row["branch"], USER_MESSAGE),
        start_time=iso(row["started_at"]),
        end_time=iso(row["ended_at"]),
        log=shown_path(row["path"].partition("#replaced-")[0]),
        log_gone=True if row["gone"] else None,
        stats=_stats(connection, row, prices),
    )


def children_of(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    """The sessions that come from this one, oldest first; also those that name it, where its log is gone."""
    named = {"id": row["id"], "own_id": row["own_id"], "provider": row["provider"]}
    return connection.execute(_CHILDREN_OF, named).fetchall()


def child_item(connection: sqlite3.Connection, child: sqlite3.Row) -> ChildItem:
    """One of `children_of`, as an answer shows it."""
    return ChildItem(id=short_id(connection, child["uid"]), kind=shown_kind(child), started_by=child["started_by"])


def _stats(connection: sqlite3.Connection, row: sqlite3.Row, prices: PriceTable) -> SessionStats:
    usage = usage_of(connection, prices, [row["id"]]).get(row["id"], Usage())
    peak, window = connection.execute(_PEAK, (row["id"],)).fetchone()
    return SessionStats(
        total_turns=row["turn_count"],
        total_events=row["event_count"],
        tool_calls=row["tool_calls"],
        failed_calls=row["failed_calls"],
        responses=usage.responses,
        total_tokens=usage.total,
        tokens={kind: usage.tokens[kind] for kind in KINDS if kind in usage.tokens} or None,
        tokens_made=usage.tokens_made,
        tokens_outside_turns=_outside_turns(connection, row, usage) or None,
        incomplete_responses=usage.incomplete or None,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
        models=usage.by_model(MODELS_SHOWN) if len(usage.models) > 1 else None,
        peak_context_tokens=peak or None,
        context_window=window or prices.window(row["model"]) if peak else None,
        duration_seconds=_duration(row["started_at"], row["ended_at"]),
        active_seconds=row["active_ms"] // 1000 if row["started_at"] is not None else None,
        copied=_copied(row),
        with_children=_with_children(connection, row, prices),
    )


def _outside_turns(connection: sqlite3.Connection, row: sqlite3.Row, usage: Usage) -> int:
    (in_turns,) = connection.execute(_IN_TURNS, (row["id"],)).fetchone()
    return max((usage.total or 0) + int(row["copied_tokens"]) - int(in_turns), 0)


def _copied(row: sqlite3.Row) -> Copied | None:
    if not row["copied_events"]:
        return None
    return Copied(
        turns=row["copied_turns"],
        events=row["copied_events"],
        tool_calls=row["copied_tool_calls"],
        failed_calls=row["copied_failed_calls"],
        total_tokens=row["copied_tokens"],
    )


def _with_children(connection: sqlite3.Connection, row: sqlite3.Row, prices: PriceTable) -> WithChildren | None:
    """Sums with all sub-agents below; None where there is none."""
    below = connection.execute(_DESCENDANTS, {"id": row["id"]}).fetchone()
    if below["all_sessions"] < 2:
        return None
    usage = usage_by(connection, prices, "0", f"s.id IN ({below['ids']})").get(0, Usage())
    return WithChildren(
        sessions=below["sessions"],
        tool_calls=below["tool_calls"],
        failed_calls=below["failed_calls"],
        total_tokens=usage.total,
        tokens_made=usage.tokens_made,
        cost_usd=usage.cost,
        cost_made=usage.cost_made,
    )


def _session_condition(filters: SessionFilters, snapshot: int) -> tuple[str, dict[str, Any]]:
    conditions, arguments = ["s.kind != 'warmup'", "s.id <= :snapshot"], {"snapshot": snapshot}
    wanted: list[tuple[str, str, Any]] = [
        ("s.provider = :provider", "provider", filters.provider),
        (f"s.project_id IN ({PROJECTS_BY_HASH})", "hash",
         filters.project_hash and filters.project_hash.lower()),
        ("coalesce(s.ended_at, 0) >= :since", "since", filters.since),
        ("coalesce(s.started_at, 0) <= :until", "until", filters.until),
        (_SAYS, "query", filters.query),
        (_TOUCHED, "path", filters.path),
        ("s.total_tokens >= :min_tokens", "min_tokens", filters.min_tokens or None),
        ("(s.failed_calls > 0) = :has_failures", "has_failures", filters.has_failures),
    ]  # fmt: skip
    for condition, name, value in wanted:
        if value is not None:
            conditions.append(condition)
            arguments[name] = value
    return " AND ".join(conditions), arguments


def _shown_parent(connection: sqlite3.Connection, row: sqlite3.Row) -> str | None:
    """The id of the parent where it is indexed: every id that is shown can be opened.

    Where the parent's log is gone, it is the session that the log names.
    """
    found = connection.execute(
        "SELECT uid FROM session WHERE id = ?1 "
        "UNION ALL SELECT uid FROM session WHERE ?1 IS NULL AND own_id = ?2 AND id != ?3 AND provider = ?4 LIMIT 1",
        (row["parent_session"], row["parent_id"], row["id"], row["provider"]),
    ).fetchone()
    return short_id(connection, found["uid"]) if found else None


def _duration(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else (end - start) // 1000
