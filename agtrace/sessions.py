"""Breadth and overview: lists of sessions and projects, and a session by its turns."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from agtrace_schema.answers import (
    ProjectItem,
    SessionHead,
    SessionItem,
    SessionStats,
    StepSummary,
    Tokens,
    TurnDetail,
    TurnOutcome,
    TurnOverview,
)
from agtrace_schema.events import EventType, Outcome, Provider

from agtrace.problems import InvalidRange
from agtrace.query import (
    OUTCOME_CODE,
    TYPE_CODE,
    StoredEvent,
    events_where,
    iso,
    sessions_where,
    short_id,
    with_texts,
)
from agtrace.shape import cut, one_line

SHORT_HASH = 8
"""Characters of a project's hash that answers show and accept."""

USER_MESSAGE = 200
LABEL = 50
_REASONING = 200
_KEY_ACTIONS = 6
_CALLS_NAMED = 8


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """What restricts a list of sessions; times are milliseconds since 1970 UTC."""

    provider: str | None = None
    project_hash: str | None = None
    since: int | None = None
    until: int | None = None


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
    return SessionPage([session_item(connection, row) for row in page], places, total, failures, len(rows) > limit)


def newest_session_row(connection: sqlite3.Connection) -> int:
    """The mark of which sessions the index holds now."""
    return connection.execute("SELECT coalesce(max(id), 0) FROM session").fetchone()[0]  # type: ignore[no-any-return]


def session_item(connection: sqlite3.Connection, row: sqlite3.Row) -> SessionItem:
    """A session as a list shows it."""
    title, snippet = row["title"], row["snippet"]
    return SessionItem(
        id=short_id(connection, row["uid"]),
        provider=Provider(row["provider"]),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        kind=None if row["kind"] == "main" else row["kind"],
        parent_id=_shown_parent(connection, row),
        title=title and one_line(title, LABEL * 2),
        snippet=snippet and one_line(snippet, USER_MESSAGE),
        start_time=iso(row["started_at"]),
        duration_seconds=_duration(row["started_at"], row["ended_at"]),
        turn_count=row["turn_count"],
        tool_calls=row["tool_calls"],
        failed_calls=row["failed_calls"],
        total_tokens=row["total_tokens"],
        tokens_incomplete=True if row["incomplete_usage"] else None,
    )


def list_projects(
    connection: sqlite3.Connection, limit: int, behind: tuple[int, int] | None
) -> tuple[list[ProjectItem], list[tuple[int, int]], int, bool]:
    """The projects, last active first: items, positions, how many there are, whether more follow."""
    last, row = behind or (1 << 62, 1 << 62)
    rows = connection.execute(
        """
        WITH active AS (
          SELECT p.id, p.hash, p.root_path, count(*) AS sessions, group_concat(DISTINCT s.provider) AS providers,
            sum(s.failed_calls) AS failed, coalesce(max(s.ended_at), 0) AS last
          FROM project p JOIN session s ON s.project_id = p.id WHERE s.kind != 'warmup' GROUP BY p.id)
        SELECT *, (SELECT count(*) FROM active) AS total FROM active
        WHERE (last, id) < (:last, :row) ORDER BY last DESC, id DESC LIMIT :limit
        """,
        {"last": last, "row": row, "limit": limit + 1},
    ).fetchall()
    items = [
        ProjectItem(
            hash=row["hash"][:SHORT_HASH],
            root_path=row["root_path"],
            session_count=row["sessions"],
            providers=sorted(map(Provider, row["providers"].split(","))),
            failed_calls=row["failed"],
            last_activity=iso(row["last"]),
        )
        for row in rows[:limit]
    ]
    places = [(row["last"], row["id"]) for row in rows[:limit]]
    return items, places, rows[0]["total"] if rows else 0, len(rows) > limit


def session_head(connection: sqlite3.Connection, row: sqlite3.Row) -> SessionHead:
    """What every level says about a session."""
    children = connection.execute(
        "SELECT uid FROM session WHERE parent_id = ? AND kind != 'warmup' ORDER BY started_at, id LIMIT 10",
        (row["own_id"],),
    ).fetchall()
    return SessionHead(
        session_id=row["uid"],
        provider=Provider(row["provider"]),
        kind=row["kind"],
        parent_id=_shown_parent(connection, row),
        children=[short_id(connection, child["uid"]) for child in children] or None,
        title=row["title"] and one_line(row["title"], USER_MESSAGE),
        project_hash=row["project_hash"] and row["project_hash"][:SHORT_HASH],
        root_path=row["root_path"],
        model=row["model"],
        version=row["version"],
        branch=row["branch"],
        start_time=iso(row["started_at"]),
        end_time=iso(row["ended_at"]),
        log=row["path"].partition("#replaced-")[0],
        log_gone=True if row["gone"] else None,
        stats=SessionStats(
            total_turns=row["turn_count"],
            total_events=row["event_count"],
            tool_calls=row["tool_calls"],
            failed_calls=row["failed_calls"],
            total_tokens=row["total_tokens"],
            tokens_incomplete=True if row["incomplete_usage"] else None,
            duration_seconds=_duration(row["started_at"], row["ended_at"]),
        ),
    )


def turn_overviews(
    connection: sqlite3.Connection, session: sqlite3.Row, from_turn: int, last_event: int
) -> list[TurnOverview]:
    """The turns of a session from one on, as far as the snapshot's last event goes."""
    rows = connection.execute(
        "SELECT * FROM turn WHERE session_id = ? AND turn_index >= ? AND first_event <= ? ORDER BY turn_index",
        (session["id"], from_turn, last_event),
    ).fetchall()
    requests = _requests(connection, session["id"], [row["first_event"] for row in rows])
    return [_overview(row, requests.get(row["first_event"])) for row in rows]


class Step(NamedTuple):
    """A step with the turn it belongs to; a turn without a response has one without a summary."""

    turn_index: int
    step_index: int
    summary: StepSummary | None


def steps_of(
    connection: sqlite3.Connection,
    session: sqlite3.Row,
    *,
    behind: tuple[int, int],
    last_event: int,
    turn_index: int | None,
    include_reasoning: bool,
    most: int,
) -> list[Step]:
    """The next steps behind a (turn, step), at most about this many, in order; whole turns where possible."""
    only = "" if turn_index is None else "AND turn_index = :turn"
    rows = connection.execute(
        f"""
        SELECT turn_index, step_index AS step, min(event_index) AS first FROM event
        WHERE session_id = :session AND step_index IS NOT NULL AND superseded_by IS NULL
          AND event_index <= :last_event {only} AND (turn_index, step_index) > (:behind_turn, :behind_step)
        GROUP BY 1, 2
        UNION ALL
        SELECT turn_index, -1, first_event FROM turn
        WHERE session_id = :session AND step_count = 0 AND first_event <= :last_event {only}
          AND (turn_index, -1) > (:behind_turn, :behind_step)
        ORDER BY 1, 2 LIMIT :most
        """,
        {
            "session": session["id"], "last_event": last_event, "turn": turn_index, "behind_turn": behind[0],
            "behind_step": behind[1], "most": most,
        },
    ).fetchall()  # fmt: skip
    if not rows:
        return []
    events = _step_events(connection, session["id"], rows, last_event, include_reasoning)
    steps = []
    for row in rows:
        key = (row["turn_index"], row["step"])
        summary = None if row["step"] < 0 else _step_summary(row, events.get(key, []), include_reasoning)
        steps.append(Step(*key, summary))
    return steps


def turn_details(connection: sqlite3.Connection, session: sqlite3.Row, steps: Iterable[Step]) -> list[TurnDetail]:
    """Group steps into their turns."""
    turns = []
    for index, group in groupby(steps, key=lambda step: step.turn_index):
        row = connection.execute(
            "SELECT * FROM turn WHERE session_id = ? AND turn_index = ?", (session["id"], index)
        ).fetchone()
        request = _requests(connection, session["id"], [row["first_event"]]).get(row["first_event"])
        turns.append(
            TurnDetail(
                turn_index=index,
                user_message=_user_message(request),
                steps=[step.summary for step in group if step.summary is not None],
                outcome=turn_outcome(connection, session["id"], index),
                key_actions=_key_actions(connection, session["id"], index),
            )
        )
    return turns


def turn_outcome(connection: sqlite3.Connection, session_row: int, turn_index: int) -> TurnOutcome:
    """How a turn ended.

    unknown: the model never answered; failed: every tool execution failed, or the last one did and no
    message followed; partial: some failed; success otherwise.
    """
    calls, failed, last_failed, last_message, responses = connection.execute(
        """
        SELECT sum(type = :call), sum(type = :call AND outcome = :failed),
          max(CASE WHEN type = :result AND outcome = :failed THEN event_index END),
          max(CASE WHEN type = :message THEN event_index END), count(step_index)
        FROM event WHERE session_id = :session AND turn_index = :turn AND superseded_by IS NULL
        """,
        {
            "session": session_row, "turn": turn_index, "failed": OUTCOME_CODE[Outcome.FAILED],
            "call": TYPE_CODE[EventType.TOOL_CALL], "result": TYPE_CODE[EventType.TOOL_RESULT],
            "message": TYPE_CODE[EventType.MESSAGE],
        },
    ).fetchone()  # fmt: skip
    if not responses:
        return "unknown"
    if not failed:
        return "success"
    unanswered = last_failed is not None and (last_message is None or last_message < last_failed)
    if failed == calls or (unanswered and _is_last_result(connection, session_row, turn_index, last_failed)):
        return "failed"
    return "partial"


def check_turn(session: sqlite3.Row, turn_index: int) -> None:
    """Raise `InvalidRange` for a turn that the session doesn't have."""
    if turn_index >= session["turn_count"]:
        last = session["turn_count"] - 1
        raise InvalidRange(
            f"Turn {turn_index} out of bounds: the session has {session['turn_count']} turns (max: {last})",
            "Leave out turn_index to see every turn.",
            requested_turn=turn_index,
            max_turn=last,
        )


def _session_condition(filters: SessionFilters, snapshot: int) -> tuple[str, dict[str, Any]]:
    conditions, arguments = ["s.kind != 'warmup'", "s.id <= :snapshot"], {"snapshot": snapshot}
    wanted: list[tuple[str, str, Any]] = [
        ("s.provider = :provider", "provider", filters.provider),
        ("s.project_id IN (SELECT id FROM project WHERE hash >= :hash AND hash < :hash || 'g')", "hash",
         filters.project_hash and filters.project_hash.lower()),
        ("coalesce(s.ended_at, 0) >= :since", "since", filters.since),
        ("coalesce(s.started_at, 0) <= :until", "until", filters.until),
    ]  # fmt: skip
    for condition, name, value in wanted:
        if value is not None:
            conditions.append(condition)
            arguments[name] = value
    return " AND ".join(conditions), arguments


def _shown_parent(connection: sqlite3.Connection, row: sqlite3.Row) -> str | None:
    if row["parent_id"] is None:
        return None
    found = connection.execute("SELECT uid FROM session WHERE own_id = ? LIMIT 1", (row["parent_id"],)).fetchone()
    return short_id(connection, found["uid"]) if found else row["parent_id"]


def _duration(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else (end - start) // 1000


def _requests(connection: sqlite3.Connection, session_row: int, indices: list[int]) -> dict[int, StoredEvent]:
    marks = ", ".join(map(str, indices)) or "-1"
    rows = connection.execute(
        f"SELECT e.*, n.text AS name FROM event e LEFT JOIN name n ON n.id = e.name_id "
        f"WHERE e.session_id = ? AND e.event_index IN ({marks}) AND e.type = ?",
        (session_row, TYPE_CODE[EventType.USER]),
    ).fetchall()
    return {event.event_index: event for event in with_texts(connection, rows)}


def _user_message(request: StoredEvent | None) -> str:
    return "" if request is None else one_line(request.text.rpartition("## My request for Codex:")[2], USER_MESSAGE)


def _overview(row: sqlite3.Row, request: StoredEvent | None) -> TurnOverview:
    tokens = {"input_tokens": row["input_tokens"], "output_tokens": row["output_tokens"]}
    return TurnOverview(
        id=f"turn-{row['turn_index']}",
        turn_index=row["turn_index"],
        timestamp=iso(row["started_at"]),
        user_message=_user_message(request),
        user_event=request.event_index if request else None,
        step_count=row["step_count"],
        tool_calls=row["tool_calls"],
        failed_tools=row["failed_calls"],
        stats={name: value for name, value in tokens.items() if value is not None} or None,
    )


def _step_events(
    connection: sqlite3.Connection, session_row: int, rows: list[sqlite3.Row], last_event: int, include_reasoning: bool
) -> dict[tuple[int, int], list[StoredEvent]]:
    """The calls, messages and (asked for) reasoning of steps, by (turn, step)."""
    types = [EventType.TOOL_CALL, EventType.MESSAGE, EventType.TOKEN_USAGE]
    types += [EventType.REASONING] if include_reasoning else []
    events = events_where(
        connection,
        "e.session_id = :session AND e.superseded_by IS NULL AND e.step_index IS NOT NULL "
        "AND (e.turn_index, e.step_index) >= (:t0, :s0) AND (e.turn_index, e.step_index) <= (:t1, :s1) "
        f"AND e.event_index <= :last AND e.type IN ({', '.join(str(TYPE_CODE[t]) for t in types)}) "
        "ORDER BY e.event_index",
        {
            "session": session_row, "t0": rows[0]["turn_index"], "s0": rows[0]["step"],
            "t1": rows[-1]["turn_index"], "s1": rows[-1]["step"], "last": last_event,
        },
    )  # fmt: skip
    usage = _usage_by_event(connection, session_row)
    grouped: dict[tuple[int, int], list[StoredEvent]] = {}
    for event in events:
        if event.type == EventType.TOKEN_USAGE:
            event.rest.update(usage(event.event_index))
        grouped.setdefault((event.row["turn_index"], event.row["step_index"]), []).append(event)
    return grouped


def _usage_by_event(connection: sqlite3.Connection, session_row: int) -> Any:
    def usage(event_index: int) -> dict[str, Any]:
        row = connection.execute(
            "SELECT * FROM token_usage WHERE session_id = ? AND event_index = ?", (session_row, event_index)
        ).fetchone()
        return dict(row) if row else {}

    return usage


def _step_summary(row: sqlite3.Row, events: list[StoredEvent], include_reasoning: bool) -> StepSummary:
    calls = [event for event in events if event.type == EventType.TOOL_CALL]
    messages = [event for event in events if event.type == EventType.MESSAGE]
    named = [f"{_call_label(call)} ({call.outcome})" for call in calls[:_CALLS_NAMED]]
    if len(calls) > _CALLS_NAMED:
        named.append(f"and {len(calls) - _CALLS_NAMED} more")
    said = one_line(messages[0].text, USER_MESSAGE if not calls else LABEL * 2) if messages else ""
    thought = " ".join(event.text for event in events if event.type == EventType.REASONING).strip()
    return StepSummary(
        step_index=row["step"],
        first_event=row["first"],
        summary=", ".join([*filter(None, [said]), *named]),
        tool_calls=len(calls),
        failed_tools=sum(call.outcome == Outcome.FAILED for call in calls),
        tokens=_step_tokens(events),
        reasoning=one_line(thought, _REASONING) if include_reasoning and thought else None,
    )


def _call_label(call: StoredEvent) -> str:
    """The tool's name with the argument that tells most."""
    arguments = call.rest.get("arguments")
    what = ""
    if isinstance(arguments, dict):
        for key in ("file_path", "path", "command", "cmd", "pattern", "query", "url", "description", "prompt"):
            if arguments.get(key):
                value = arguments[key]
                what = " ".join(map(str, value)) if isinstance(value, list) else str(value)
                break
    elif isinstance(arguments, str):
        what = arguments
    return f"{call.row['name']} {one_line(what, 80)}".strip()


def _step_tokens(events: list[StoredEvent]) -> Tokens | None:
    usages = [event.rest for event in events if event.type == EventType.TOKEN_USAGE]
    if not usages:
        return None
    inputs = ("input_tokens", "cache_creation_5m_tokens", "cache_creation_1h_tokens", "cache_read_tokens")
    return Tokens(
        input=sum(usage.get(name) or 0 for usage in usages for name in inputs),
        output=sum(usage.get("output_tokens") or 0 for usage in usages),
    )


def _key_actions(connection: sqlite3.Connection, session_row: int, turn_index: int) -> list[str]:
    rows = connection.execute(
        "SELECT n.text AS name, e.outcome FROM event e JOIN name n ON n.id = e.name_id WHERE e.session_id = ? "
        "AND e.turn_index = ? AND e.type = ? AND e.superseded_by IS NULL ORDER BY e.event_index",
        (session_row, turn_index, TYPE_CODE[EventType.TOOL_CALL]),
    ).fetchall()
    used = Counter(row["name"] for row in rows)
    failed = Counter(row["name"] for row in rows if row["outcome"] == OUTCOME_CODE[Outcome.FAILED])
    named = [f"{name} x{count}" if count > 1 else name for name, count in used.most_common(_KEY_ACTIONS)]
    actions = [f"Used tools: {', '.join(named)}"] if named else []
    if failed:
        actions.append("Failed: " + ", ".join(f"{name} x{count}" for name, count in failed.most_common(_KEY_ACTIONS)))
    return [cut(action, USER_MESSAGE) for action in actions]


def _is_last_result(connection: sqlite3.Connection, session_row: int, turn_index: int, event_index: int) -> bool:
    last = connection.execute(
        "SELECT max(event_index) FROM event WHERE session_id = ? AND turn_index = ? AND type = ?",
        (session_row, turn_index, TYPE_CODE[EventType.TOOL_RESULT]),
    ).fetchone()[0]
    return bool(last == event_index)
