"""Overview: a session by its turns, with how each turn ended and what it did."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from agtrace_indexer.providers.provider import Notices
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import FailingTurns, TurnDetail, TurnOutcome, TurnOverview
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, UserKind

from agtrace.problems import InvalidRange
from agtrace.sessions.query import iso
from agtrace.sessions.steps import ALWAYS_SHOWN, Step
from agtrace.text.lines import USER_MESSAGE, one_line
from agtrace.usage.usage import KINDS

_KEY_ACTIONS = 6
_FAILING_SHOWN = 20
_ALL_EVENTS = 1 << 62

# What happened in turns: `open_call` is the last call whose end isn't known, the other indices likewise.
_ENDINGS = """
SELECT e.turn_index, count(e.step_index) AS responses,
  sum(e.type = :call AND e.outcome IS :failed) AS failed,
  sum(e.type = :call AND e.outcome IN (:rejected, :interrupted)) + sum(e.type = :user AND n.text = :stop) AS stopped,
  max(CASE WHEN e.type = :call AND coalesce(e.outcome, :unknown) IN (:unknown, :running) THEN e.event_index END)
    AS open_call,
  max(CASE WHEN e.type = :result AND e.outcome = :failed THEN e.event_index END) AS last_failed,
  max(CASE WHEN e.type = :result THEN e.event_index END) AS last_result,
  max(CASE WHEN e.type = :message THEN e.event_index END) AS last_message,
  max(CASE WHEN e.type = :notification AND n.text IN (SELECT value FROM json_each(:errors))
    THEN e.event_index END) AS api_error
FROM event e LEFT JOIN name n ON n.id = e.name_id
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND e.superseded_by IS NULL
GROUP BY e.turn_index
"""

_ACTIONS = """
SELECT e.turn_index, n.text AS name, count(*) AS used, sum(e.outcome IS :failed) AS failed
FROM event e JOIN name n ON n.id = e.name_id
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last AND e.type = :call
  AND e.superseded_by IS NULL
GROUP BY e.turn_index, e.name_id ORDER BY e.turn_index, min(e.event_index)
"""

_TURN = """
SELECT t.*, r.text AS request FROM turn t
LEFT JOIN request r ON r.session_id = t.session_id AND r.event_index = t.request_event
"""

_CODES = {
    "call": TYPE_CODE[EventType.TOOL_CALL],
    "result": TYPE_CODE[EventType.TOOL_RESULT],
    "message": TYPE_CODE[EventType.MESSAGE],
    "user": TYPE_CODE[EventType.USER],
    "notification": TYPE_CODE[EventType.NOTIFICATION],
    "stop": UserKind.INTERRUPTION,
    **{outcome.value: code for outcome, code in OUTCOME_CODE.items()},
}


def turn_overviews(
    connection: sqlite3.Connection, session: sqlite3.Row, from_turn: int, last_event: int, most: int
) -> list[TurnOverview]:
    """The turns of a session from one on, at most this many, as far as the snapshot's last event goes."""
    rows = connection.execute(
        f"{_TURN} WHERE t.session_id = ? AND t.turn_index >= ? AND t.first_event <= ? ORDER BY t.turn_index LIMIT ?",
        (session["id"], from_turn, last_event, most),
    ).fetchall()
    endings = _endings(connection, session, rows)
    return [_overview(row, endings[row["turn_index"]]) for row in rows]


def turn_details(connection: sqlite3.Connection, session: sqlite3.Row, steps: Iterable[Step]) -> list[TurnDetail]:
    """Group steps into their turns."""
    grouped = {index: list(group) for index, group in groupby(steps, key=lambda step: step.turn_index)}
    listed = ", ".join(map(str, grouped))
    rows = connection.execute(
        f"{_TURN} WHERE t.session_id = ? AND t.turn_index IN ({listed}) ORDER BY t.turn_index", (session["id"],)
    ).fetchall()
    if not rows:
        return []
    endings = _endings(connection, session, rows)
    actions = _key_actions(connection.execute(_ACTIONS, _span(session["id"], rows)).fetchall())
    return [
        TurnDetail(
            turn_index=row["turn_index"],
            user_message=one_line(row["request"] or "", USER_MESSAGE),
            copied=True if row["copied"] else None,
            steps=[step.summary for step in grouped[row["turn_index"]] if step.summary is not None],
            outcome=endings[row["turn_index"]],
            key_actions=actions.get(row["turn_index"], []),
        )
        for row in rows
    ]


def failing_turns(connection: sqlite3.Connection, session: sqlite3.Row, last_event: int) -> FailingTurns | None:
    """The turns with failed tool calls, all of them counted; those that are copied count in another session."""
    rows = connection.execute(
        "SELECT turn_index FROM turn WHERE session_id = ? AND failed_calls > 0 AND NOT copied AND first_event <= ? "
        "ORDER BY turn_index",
        (session["id"], last_event),
    ).fetchall()
    if not rows:
        return None
    return FailingTurns(total=len(rows), turns=[row["turn_index"] for row in rows[:_FAILING_SHOWN]])


def last_outcome(connection: sqlite3.Connection, session: sqlite3.Row) -> TurnOutcome:
    """How the last turn of a session ended; unknown where it has none."""
    last = connection.execute("SELECT max(turn_index) FROM turn WHERE session_id = ?", (session["id"],)).fetchone()[0]
    return "unknown" if last is None else turn_overviews(connection, session, last, _ALL_EVENTS, 1)[0].outcome


def count_turns(connection: sqlite3.Connection, session: sqlite3.Row, last_event: int) -> int:
    """How many turns a session has, as far as the snapshot's last event goes."""
    begun = "SELECT count(*) FROM turn WHERE session_id = ? AND first_event <= ?"
    return int(connection.execute(begun, (session["id"], last_event)).fetchone()[0])


def turn_behind(
    connection: sqlite3.Connection, session: sqlite3.Row, turn_index: int | None, last_event: int
) -> int | None:
    """The turn that follows one, as far as the snapshot's last event goes; None behind the last one."""
    behind = "SELECT min(turn_index) FROM turn WHERE session_id = ? AND turn_index > ? AND first_event <= ?"
    place = (session["id"], -1 if turn_index is None else turn_index, last_event)
    found = connection.execute(behind, place).fetchone()[0]
    return None if found is None else int(found)


def check_turn(connection: sqlite3.Connection, session: sqlite3.Row, turn_index: int) -> None:
    """Raise `InvalidRange` for a turn that the session doesn't have, or not any more."""
    turns = "SELECT 1 FROM turn WHERE session_id = ? AND turn_index = ?"
    if connection.execute(turns, (session["id"], turn_index)).fetchone():
        return
    last = connection.execute("SELECT max(turn_index) FROM turn WHERE session_id = ?", (session["id"],)).fetchone()[0]
    last = -1 if last is None else last
    trouble = f"out of bounds: the session has {session['turn_count'] + session['copied_turns']} turns (max: {last})"
    raise InvalidRange(
        f"Turn {turn_index} {trouble if turn_index > last else 'was taken back: nothing of it is left in the session'}",
        "Leave out turn_index to see every turn.",
        requested_turn=turn_index,
        max_turn=last,
    )


def _endings(
    connection: sqlite3.Connection, session: sqlite3.Row, turns: Sequence[sqlite3.Row]
) -> dict[int, TurnOutcome]:
    """How these turns ended, by turn."""
    if not turns:
        return {}
    notices = AGENTS[session["provider"]].notices
    given = {**_span(session["id"], turns), "errors": json.dumps(sorted(notices.api_errors))}
    return {row["turn_index"]: _outcome(row, notices) for row in connection.execute(_ENDINGS, given)}


def _span(session_row: int, turns: Sequence[sqlite3.Row]) -> dict[str, Any]:
    """The arguments of a query over the events from the first to the last of these turns."""
    first, last = min(turn["first_event"] for turn in turns), max(turn["last_event"] for turn in turns)
    return {**_CODES, "session": session_row, "first": first, "last": last}


def _outcome(ending: sqlite3.Row, notices: Notices) -> TurnOutcome:
    """How a turn ended.

    failed: the last tool execution failed, or the model's API did, and no message followed; partial: executions
    failed, were refused or interrupted, or the turn was; unknown: the model never answered, or the end of its last
    call isn't known; success otherwise.
    """
    said = -1 if ending["last_message"] is None else ending["last_message"]
    if _failed_at_api(ending, said, notices):
        return "failed"
    if not ending["responses"]:
        return "unknown"
    if ending["failed"]:
        last_one_did = ending["last_failed"] is not None and ending["last_failed"] == ending["last_result"]
        unanswered = last_one_did and said < ending["last_failed"]
        return "failed" if unanswered else "partial"
    if ending["stopped"]:
        return "partial"
    return "unknown" if ending["open_call"] is not None and ending["open_call"] > said else "success"


def _failed_at_api(ending: sqlite3.Row, said: int, notices: Notices) -> bool:
    """Whether the model's API failed and the model said and did nothing more.

    Where the human's commands may fail in the same words, what stands behind the model's last word is theirs.
    """
    error, done = ending["api_error"], ending["last_result"] or -1
    return error is not None and error > max(said, done) and (said <= done or not notices.also_of_commands)


def _overview(row: sqlite3.Row, outcome: TurnOutcome) -> TurnOverview:
    return TurnOverview(
        id=f"turn-{row['turn_index']}",
        turn_index=row["turn_index"],
        timestamp=iso(row["started_at"]),
        user_message=one_line(row["request"] or "", USER_MESSAGE),
        user_event=row["request_event"],
        copied=True if row["copied"] else None,
        step_count=row["step_count"],
        tool_calls=row["tool_calls"],
        failed_tools=row["failed_calls"],
        outcome=outcome,
        stats=_token_sums(row) or None,
        tokens_incomplete=True if row["incomplete_usage"] else None,
    )


def _token_sums(row: sqlite3.Row) -> dict[str, int]:
    """The known token sums of a turn; of caches and reasoning only what isn't zero."""
    shown = {kind: row[kind] for kind in KINDS}
    return {kind: sum for kind, sum in shown.items() if sum or (sum == 0 and kind in ALWAYS_SHOWN)}


def _key_actions(tools: list[sqlite3.Row]) -> dict[int | None, list[str]]:
    """By turn: the tools that were used most, and those that failed."""
    actions: dict[int | None, list[str]] = {}
    for turn, group in groupby(tools, key=lambda tool: tool["turn_index"]):
        of_turn = list(group)
        used = Counter({tool["name"]: tool["used"] for tool in of_turn}).most_common(_KEY_ACTIONS)
        failed = Counter({tool["name"]: tool["failed"] for tool in of_turn if tool["failed"]}).most_common(_KEY_ACTIONS)
        said = ["Used tools: " + ", ".join(f"{name} x{count}" if count > 1 else name for name, count in used)]
        said += ["Failed: " + ", ".join(f"{name} x{count}" for name, count in failed)] if failed else []
        actions[turn] = [one_line(action, USER_MESSAGE) for action in said]
    return actions
