"""The health of one session: what failed, what was repeated, where the tokens went, each with its events.

The score is 100 less what the findings cost; the costs are in `_COSTS` and depend on rates as well
as counts, so that a long session isn't worse for being long.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import orjson
from agtrace_indexer.sums import TOTAL
from agtrace_schema.answers import Analysis, Evidence, Insight, Severity
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODE, OUTCOME_CODES, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace.reading.query import COUNTED, EVENT, StoredEvent, short_id, with_texts
from agtrace.shaping.cutting import LABEL, one_line

VERSION = 1
"""Of the detectors. 1 (2026-11-21)."""

EVIDENCE = 3
"""Events quoted for a finding."""

_QUOTE = 80
_REPEATS = 3
_MANY_REPEATS = 5
_TURN_SHARE = 0.5
_LEAST_TOKENS = 200_000
_OPENED_AT_ONCE = 500
_COSTS: dict[Severity, int] = {"Critical": 20, "Warning": 8, "Info": 2}

# Calls that wait for something are repeated on purpose; calls that write to a process differ by time.
_POLLERS = re.compile(r"^(write_stdin|wait|wait_agent|BashOutput|TaskOutput|TaskGet|TaskList|KillShell|Monitor|Sleep)$")
_POLLING_COMMAND = re.compile(r"^\s*(sleep|watch|tail|gh run|gh pr checks|docker ps|kubectl get|ps|jobs)\b")

_DEAREST_TURN = f"""
SELECT u.turn_index, u.first_event AS first, {TOTAL} AS tokens
FROM turn u WHERE u.session_id = ? AND NOT u.copied ORDER BY tokens DESC LIMIT 1
"""


def analyze(connection: sqlite3.Connection, session: sqlite3.Row) -> Analysis:
    """Find what went wrong in a session, the worst first. The score counts every finding."""
    found = [*_failures(connection, session), *_loops(connection, session), *_tokens(connection, session)]
    order: list[Severity] = ["Critical", "Warning", "Info"]
    return Analysis(
        session_id=short_id(connection, session["uid"]),
        score=max(0, 100 - sum(_COSTS[insight.severity] for insight in found)),
        insights=sorted(found, key=lambda insight: order.index(insight.severity)),
        summary=_counts(connection, session),
    )


def _failures(connection: sqlite3.Connection, session: sqlite3.Row) -> Iterator[Insight]:
    """Failed tool executions by tool."""
    calls = Counter(dict(_calls_by_tool(connection, session)))
    by_tool: dict[str, list[sqlite3.Row]] = defaultdict(list)
    for row in _rows(connection, session, EventType.TOOL_RESULT):
        if row["outcome"] == OUTCOME_CODE[Outcome.FAILED]:
            by_tool[row["name"] or "unknown tool"].append(row)
    for tool, failed in by_tool.items():
        total = max(calls[tool], len(failed))
        yield Insight(
            turn_index=failed[0]["turn_index"],
            severity=_severity_of_failures(len(failed), total),
            lens="Failures",
            message=f"{len(failed)} of {total} {one_line(tool, LABEL)} executions failed",
            count=len(failed),
            evidence=_evidence(connection, failed),
        )


def _severity_of_failures(failed: int, total: int) -> Severity:
    """Critical where at least three failed and half of all; Warning from three or a third on."""
    if failed >= 3 and failed * 2 >= total:
        return "Critical"
    return "Warning" if failed >= 3 or failed * 3 >= total else "Info"


def _loops(connection: sqlite3.Connection, session: sqlite3.Row) -> Iterator[Insight]:
    """Calls with the same tool and arguments, repeated within one turn; waiting for something is no loop."""
    groups: dict[tuple[int | None, str, bytes], list[sqlite3.Row]] = defaultdict(list)
    for call in _opened(connection, _rows(connection, session, EventType.TOOL_CALL)):
        if not _is_polling(call):
            groups[(call.row["turn_index"], call.row["name"], _digest(call.rest.get("arguments")))].append(call.row)
    for (turn, tool, _), repeated in groups.items():
        if len(repeated) < _REPEATS:
            continue
        failed = sum(row["outcome"] == OUTCOME_CODE[Outcome.FAILED] for row in repeated)
        failing = f", {failed} of them failed" if failed else ""
        yield Insight(
            turn_index=turn,
            severity=_severity_of_a_loop(len(repeated), failed),
            lens="Loops",
            message=f"{one_line(tool, LABEL)} was called {len(repeated)} times with the same arguments{failing}",
            count=len(repeated),
            evidence=_evidence(connection, repeated),
        )


def _severity_of_a_loop(repeats: int, failed: int) -> Severity:
    """Critical where at least half of many failed; Warning where any did, or where there are many."""
    if repeats >= _MANY_REPEATS and failed * 2 >= repeats:
        return "Critical"
    return "Warning" if failed or repeats >= _MANY_REPEATS else "Info"


def _tokens(connection: sqlite3.Connection, session: sqlite3.Row) -> Iterator[Insight]:
    """A turn that took most of a large session's tokens, and figures that the log doesn't hold."""
    total = session["total_tokens"] or 0
    if session["turn_count"] > 1 and total >= _LEAST_TOKENS:
        turn = connection.execute(_DEAREST_TURN, (session["id"],)).fetchone()
        if turn is not None and turn["tokens"] >= total * _TURN_SHARE:
            yield _dear_turn(connection, session, turn, total)
    missing = session["incomplete_usage"]
    if missing:
        message = f"The log holds only placeholder figures for {missing} responses"
        yield Insight(severity="Info", lens="TokenUsage", message=message, count=missing, evidence=[])


def _dear_turn(connection: sqlite3.Connection, session: sqlite3.Row, turn: sqlite3.Row, total: int) -> Insight:
    share = round(100 * turn["tokens"] / total)
    first = connection.execute(f"{EVENT} WHERE e.session_id = ? AND e.event_index = ?", (session["id"], turn["first"]))
    return Insight(
        turn_index=turn["turn_index"],
        severity="Info",
        lens="TokenUsage",
        message=f"Turn {turn['turn_index']} took {turn['tokens']:,} of {total:,} tokens ({share} %)",
        count=turn["tokens"],
        evidence=_evidence(connection, first.fetchall()),
    )


def _counts(connection: sqlite3.Connection, session: sqlite3.Row) -> dict[str, dict[str, int]]:
    by_type = connection.execute(
        f"SELECT type, count(*) AS n FROM event e WHERE e.session_id = ? AND {COUNTED} GROUP BY type",
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
        f"SELECT outcome, count(*) AS n FROM event e WHERE e.session_id = ? AND e.type = ? AND {COUNTED} "
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
        f"WHERE e.session_id = ? AND e.type = ? AND {COUNTED} GROUP BY n.text",
        (session["id"], TYPE_CODE[EventType.TOOL_CALL]),
    )
    return [(row[0], row[1]) for row in rows]


def _rows(connection: sqlite3.Connection, session: sqlite3.Row, kind: EventType) -> list[sqlite3.Row]:
    return connection.execute(
        f"{EVENT} WHERE e.session_id = ? AND e.type = ? AND {COUNTED} ORDER BY e.event_index",
        (session["id"], TYPE_CODE[kind]),
    ).fetchall()


def _opened(connection: sqlite3.Connection, rows: list[sqlite3.Row]) -> Iterator[StoredEvent]:
    """The events of these rows with their texts, few of them in memory at once."""
    for start in range(0, len(rows), _OPENED_AT_ONCE):
        yield from with_texts(connection, rows[start : start + _OPENED_AT_ONCE])


def _is_polling(call: StoredEvent) -> bool:
    if _POLLERS.match(call.row["name"] or ""):
        return True
    arguments = call.rest.get("arguments")
    command = arguments.get("command", arguments.get("cmd")) if isinstance(arguments, dict) else None
    if isinstance(command, list) and command:
        command = command[-1]  # ["bash", "-lc", "sleep 5"]
    return isinstance(command, str) and bool(_POLLING_COMMAND.match(command))


def _digest(arguments: Any) -> bytes:
    return blake2b(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS, default=str), digest_size=16).digest()


def _evidence(connection: sqlite3.Connection, rows: list[sqlite3.Row]) -> list[Evidence]:
    """The first events and the last one."""
    shown = rows if len(rows) <= EVIDENCE else [*rows[: EVIDENCE - 1], rows[-1]]
    events = with_texts(connection, shown)
    return [Evidence(event_index=event.event_index, quote=one_line(event.text, _QUOTE)) for event in events]
