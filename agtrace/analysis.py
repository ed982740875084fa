"""The health of one session: what failed, what was repeated, where the tokens went, each with its events.

The score is 100 less what the findings cost; the costs are in `_COSTS` and depend on rates as well
as counts, so that a long session isn't worse for being long.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict

import orjson
from agtrace_schema.answers import Analysis, Evidence, Insight, Severity
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

from agtrace.cutting import one_line
from agtrace.query import OUTCOME_CODE, TYPE_CODE, StoredEvent, events_where, short_id, with_texts

VERSION = 1
"""Of the detectors. 1 (2026-11-21)."""

EVIDENCE = 3
"""Events quoted for a finding."""

_QUOTE = 80
_REPEATS = 3
_MANY_REPEATS = 5
_TURN_SHARE = 0.5
_LEAST_TOKENS = 200_000
_COSTS: dict[Severity, int] = {"Critical": 20, "Warning": 8, "Info": 2}

# Calls that wait for something are repeated on purpose; calls that write to a process differ by time.
_POLLERS = re.compile(r"^(write_stdin|wait|wait_agent|BashOutput|TaskOutput|TaskGet|TaskList|KillShell|Monitor|Sleep)$")
_POLLING_COMMAND = re.compile(r"^\s*(sleep|watch|tail|gh run|gh pr checks|docker ps|kubectl get|ps|jobs)\b")


def analyze(
    connection: sqlite3.Connection, session: sqlite3.Row, *, include_failures: bool = True, include_loops: bool = True
) -> Analysis:
    """Find what went wrong in a session. The score counts every finding, whichever are included."""
    failures, loops, tokens = _failures(connection, session), _loops(connection, session), _tokens(connection, session)
    found = failures + loops + tokens
    shown = (failures if include_failures else []) + (loops if include_loops else []) + tokens
    order: list[Severity] = ["Critical", "Warning", "Info"]
    return Analysis(
        session_id=short_id(connection, session["uid"]),
        score=max(0, 100 - sum(_COSTS[insight.severity] for insight in found)),
        insights=sorted(shown, key=lambda insight: order.index(insight.severity)),
        summary=_counts(connection, session),
    )


def _failures(connection: sqlite3.Connection, session: sqlite3.Row) -> list[Insight]:
    """Failed tool executions by tool: Critical where it kept failing to the end, Warning from three or a third on."""
    calls = Counter(dict(_calls_by_tool(connection, session)))
    results = events_where(
        connection,
        "e.session_id = :session AND e.type = :result AND e.outcome = :failed AND e.superseded_by IS NULL "
        "ORDER BY e.event_index",
        {"session": session["id"], "result": TYPE_CODE[EventType.TOOL_RESULT], "failed": OUTCOME_CODE[Outcome.FAILED]},
    )
    by_tool: dict[str, list[StoredEvent]] = defaultdict(list)
    for result in results:
        by_tool[result.row["name"] or "unknown tool"].append(result)
    insights = []
    for tool, failed in by_tool.items():
        total = max(calls[tool], len(failed))
        often = len(failed) >= 3 or len(failed) * 3 >= total
        severity: Severity = "Critical" if len(failed) >= 3 and len(failed) * 2 >= total else "Warning"
        insights.append(
            Insight(
                turn_index=failed[0].row["turn_index"],
                severity=severity if often else "Info",
                lens="Failures",
                message=f"{len(failed)} of {total} {tool} executions failed",
                count=len(failed),
                evidence=_evidence(failed),
            )
        )
    return insights


def _loops(connection: sqlite3.Connection, session: sqlite3.Row) -> list[Insight]:
    """Calls with the same tool and arguments, repeated within one turn; waiting for something is no loop."""
    calls = events_where(
        connection,
        "e.session_id = :session AND e.type = :call AND e.superseded_by IS NULL ORDER BY e.event_index",
        {"session": session["id"], "call": TYPE_CODE[EventType.TOOL_CALL]},
    )
    groups: dict[tuple[int | None, str, bytes], list[StoredEvent]] = defaultdict(list)
    for call in calls:
        if not _is_polling(call):
            arguments = orjson.dumps(call.rest.get("arguments"), option=orjson.OPT_SORT_KEYS, default=str)
            groups[(call.row["turn_index"], call.row["name"], arguments)].append(call)
    insights = []
    for (turn, tool, _), repeated in groups.items():
        if len(repeated) < _REPEATS:
            continue
        failed = sum(call.outcome == Outcome.FAILED for call in repeated)
        severe = len(repeated) >= _MANY_REPEATS and failed * 2 >= len(repeated)
        failing = f", {failed} of them failed" if failed else ""
        insights.append(
            Insight(
                turn_index=turn,
                severity="Critical" if severe else "Warning" if failed or len(repeated) >= _MANY_REPEATS else "Info",
                lens="Loops",
                message=f"{tool} was called {len(repeated)} times with the same arguments{failing}",
                count=len(repeated),
                evidence=_evidence(repeated),
            )
        )
    return insights


def _tokens(connection: sqlite3.Connection, session: sqlite3.Row) -> list[Insight]:
    """A turn that took most of a large session's tokens, and figures that the log doesn't hold."""
    insights = []
    turns = connection.execute(
        "SELECT turn_index, first_event, coalesce(input_tokens, 0) + coalesce(output_tokens, 0) AS tokens "
        "FROM turn WHERE session_id = ? ORDER BY tokens DESC LIMIT 1",
        (session["id"],),
    ).fetchall()
    total = session["total_tokens"] or 0
    if turns and session["turn_count"] > 1 and total >= _LEAST_TOKENS and turns[0]["tokens"] >= total * _TURN_SHARE:
        turn = turns[0]
        share = round(100 * turn["tokens"] / total)
        insights.append(
            Insight(
                turn_index=turn["turn_index"],
                severity="Info",
                lens="TokenUsage",
                message=f"Turn {turn['turn_index']} took {turn['tokens']:,} of {total:,} tokens ({share} %)",
                count=turn["tokens"],
                evidence=_evidence(_at(connection, session, turn["first_event"])),
            )
        )
    if session["incomplete_usage"]:
        insights.append(
            Insight(
                severity="Info",
                lens="TokenUsage",
                message=f"The log holds only placeholder figures for {session['incomplete_usage']} responses",
                count=session["incomplete_usage"],
                evidence=[],
            )
        )
    return insights


def _counts(connection: sqlite3.Connection, session: sqlite3.Row) -> dict[str, dict[str, int]]:
    by_type = connection.execute(
        "SELECT type, count(*) AS n FROM event WHERE session_id = ? AND superseded_by IS NULL GROUP BY type",
        (session["id"],),
    )
    types = {EVENT_TYPE_CODES[row["type"]]: row["n"] for row in by_type}
    names = {
        "assistant_messages": EventType.MESSAGE,
        "tool_calls": EventType.TOOL_CALL,
        "tool_results": EventType.TOOL_RESULT,
        "user_messages": EventType.USER,
        "reasoning": EventType.REASONING,
        "notifications": EventType.NOTIFICATION,
    }
    calls = connection.execute(
        "SELECT outcome, count(*) AS n FROM event WHERE session_id = ? AND type = ? AND superseded_by IS NULL "
        "GROUP BY outcome",
        (session["id"], TYPE_CODE[EventType.TOOL_CALL]),
    )
    outcomes: Counter[str] = Counter()
    for row in calls:
        outcomes[Outcome.UNKNOWN if row["outcome"] is None else OUTCOME_CODES[row["outcome"]]] += row["n"]
    return {"event_counts": {name: types.get(kind, 0) for name, kind in names.items()}, "outcomes": dict(outcomes)}


def _calls_by_tool(connection: sqlite3.Connection, session: sqlite3.Row) -> list[tuple[str, int]]:
    rows = connection.execute(
        "SELECT n.text, count(*) FROM event e JOIN name n ON n.id = e.name_id "
        "WHERE e.session_id = ? AND e.type = ? AND e.superseded_by IS NULL GROUP BY n.text",
        (session["id"], TYPE_CODE[EventType.TOOL_CALL]),
    )
    return [(row[0], row[1]) for row in rows]


def _is_polling(call: StoredEvent) -> bool:
    if _POLLERS.match(call.row["name"] or ""):
        return True
    arguments = call.rest.get("arguments")
    command = arguments.get("command", arguments.get("cmd")) if isinstance(arguments, dict) else None
    return isinstance(command, str) and bool(_POLLING_COMMAND.match(command))


def _at(connection: sqlite3.Connection, session: sqlite3.Row, event_index: int) -> list[StoredEvent]:
    rows = connection.execute(
        "SELECT e.*, n.text AS name FROM event e LEFT JOIN name n ON n.id = e.name_id "
        "WHERE e.session_id = ? AND e.event_index = ?",
        (session["id"], event_index),
    ).fetchall()
    return with_texts(connection, rows)


def _evidence(events: list[StoredEvent]) -> list[Evidence]:
    """The first events and the last one."""
    shown = events if len(events) <= EVIDENCE else [*events[: EVIDENCE - 1], events[-1]]
    return [Evidence(event_index=event.event_index, quote=one_line(event.text, _QUOTE)) for event in shown]
