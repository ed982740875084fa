"""The steps of a session: model responses, each with what it said and the tool calls that it asked for."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from agtrace_schema.answers import StepSummary, Tokens
from agtrace_schema.events import EventType, Outcome

from agtrace.cutting import LABEL, USER_MESSAGE, one_line
from agtrace.query import TYPE_CODE, StoredEvent, events_where

_REASONING = 200
_CALLS_NAMED = 8
_TELLING_ARGUMENTS = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "description", "prompt")

_STEPS = """
SELECT turn_index, step_index AS step, min(event_index) AS first FROM event
WHERE session_id = :session AND step_index IS NOT NULL AND superseded_by IS NULL AND event_index <= :last_event
  AND turn_index = coalesce(:turn, turn_index) AND (turn_index, step_index) > (:behind_turn, :behind_step)
GROUP BY 1, 2
UNION ALL
SELECT turn_index, -1, first_event FROM turn
WHERE session_id = :session AND step_count = 0 AND first_event <= :last_event
  AND turn_index = coalesce(:turn, turn_index) AND (turn_index, -1) > (:behind_turn, :behind_step)
ORDER BY 1, 2 LIMIT :most
"""

_USAGES = """
SELECT event_index, coalesce(output_tokens, 0) AS output,
  coalesce(input_tokens, 0) + coalesce(cache_creation_5m_tokens, 0) + coalesce(cache_creation_1h_tokens, 0)
    + coalesce(cache_read_tokens, 0) AS input
FROM token_usage WHERE session_id = ? AND event_index BETWEEN ? AND ?
"""


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
    """The next steps behind a (turn, step), at most this many, in order."""
    named = {
        "session": session["id"], "last_event": last_event, "turn": turn_index, "behind_turn": behind[0],
        "behind_step": behind[1], "most": most,
    }  # fmt: skip
    rows = connection.execute(_STEPS, named).fetchall()
    if not rows:
        return []
    events = _step_events(connection, session["id"], rows, last_event, include_reasoning)
    steps = []
    for row in rows:
        key = (row["turn_index"], row["step"])
        steps.append(Step(*key, None if row["step"] < 0 else _step_summary(row, events.get(key, []))))
    return steps


def _step_events(
    connection: sqlite3.Connection, session_row: int, rows: list[sqlite3.Row], last_event: int, include_reasoning: bool
) -> dict[tuple[int, int], list[StoredEvent]]:
    """The calls, messages, token figures and (asked for) reasoning of steps, by (turn, step)."""
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
    _add_usages(connection, session_row, [event for event in events if event.type == EventType.TOKEN_USAGE])
    grouped: dict[tuple[int, int], list[StoredEvent]] = {}
    for event in events:
        grouped.setdefault((event.row["turn_index"], event.row["step_index"]), []).append(event)
    return grouped


def _add_usages(connection: sqlite3.Connection, session_row: int, usages: list[StoredEvent]) -> None:
    if not usages:
        return
    span = (session_row, usages[0].event_index, usages[-1].event_index)
    figures = {row["event_index"]: row for row in connection.execute(_USAGES, span)}
    for event in usages:
        event.rest.update(figures[event.event_index])


def _step_summary(row: sqlite3.Row, events: list[StoredEvent]) -> StepSummary:
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
        reasoning=one_line(thought, _REASONING) if thought else None,
    )


def _call_label(call: StoredEvent) -> str:
    """The tool's name with the argument that tells most."""
    arguments = call.rest.get("arguments")
    value: Any = arguments if isinstance(arguments, str) else ""
    if isinstance(arguments, dict):
        value = next((arguments[key] for key in _TELLING_ARGUMENTS if arguments.get(key)), "")
    what = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{call.row['name']} {one_line(what, 80)}".strip()


def _step_tokens(events: list[StoredEvent]) -> Tokens | None:
    usages = [event.rest for event in events if event.type == EventType.TOKEN_USAGE]
    if not usages:
        return None
    return Tokens(input=sum(usage["input"] for usage in usages), output=sum(usage["output"] for usage in usages))
