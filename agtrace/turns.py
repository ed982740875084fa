"""Overview: a session by its turns, and the turns by their steps."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from agtrace_schema.answers import StepSummary, Tokens, TurnDetail, TurnOutcome, TurnOverview
from agtrace_schema.events import EventType, Outcome

from agtrace.cutting import LABEL, USER_MESSAGE, cut, one_line
from agtrace.problems import InvalidRange
from agtrace.query import OUTCOME_CODE, TYPE_CODE, StoredEvent, events_where, iso, with_texts

_REASONING = 200
_KEY_ACTIONS = 6
_CALLS_NAMED = 8


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
