"""The health of one session."""

from __future__ import annotations

import sqlite3
from typing import Any

from agtrace_schema.answers import Insight

from agtrace.arguments import Arguments, SessionId
from agtrace.reading import analysis
from agtrace.reading.query import find_session
from agtrace.shaping.cutting import counted
from agtrace.shaping.replies import Reply
from agtrace.tools.tool import Context, Tool, call, dump, event_kilobytes, kilobytes, overview_kilobytes

_BYTES = 5_120
_INSIGHTS = 10


class AnalyzeSession(Arguments):
    """Arguments of analyze_session."""

    session_id: SessionId
    include_failures: bool = True
    include_loops: bool = False


def answer(context: Context, wanted: AnalyzeSession) -> Reply:
    """The health of a session (R-113)."""
    session = find_session(context.connection, wanted.session_id)
    found = analysis.analyze(context.connection, session)
    asked = {"Failures": wanted.include_failures, "Loops": wanted.include_loops}
    insights = [insight for insight in found.insights if asked.get(insight.lens, True)]
    left_out = len(found.insights) - len(insights)
    more = f", {left_out} more left out" if left_out else ""
    return Reply(
        summary=f"Session {found.session_id}: health {found.score} of 100, {counted(len(insights), 'finding')}{more}",
        data=_worst(dump(found.model_copy(update={"insights": insights}))),
        budget=_BYTES,
        hint=_hint(context, session, found.session_id, insights, left_out),
        reference=f"ax://analysis/{found.session_id}",
        untrusted=bool(insights),
        counts={"score": found.score, "findings": len(insights), "failed_calls": session["failed_calls"]},
    )


def _hint(context: Context, session: sqlite3.Row, session_id: str, insights: list[Insight], left_out: int) -> str:
    first = next((evidence.event_index for insight in insights for evidence in insight.evidence), None)
    if first is not None:
        opening = call("get_event_details", session_id=session_id, event_index=first)
        size = event_kilobytes(context.connection, session["id"], first)
        return f"{opening} opens the first piece of evidence {size}."
    if left_out:
        again = call(TOOL.name, session_id=session_id, include_failures=True, include_loops=True)
        return f"{again} shows every finding {kilobytes(0, _BYTES)}."
    size = overview_kilobytes(session["turn_count"] + session["copied_turns"])
    return f"{call('get_session_details', session_id=session_id)} shows its turns {size}."


def _worst(base: dict[str, Any]) -> dict[str, Any]:
    """The analysis with its ten worst findings, and how many there are."""
    insights = base["insights"]
    if len(insights) <= _INSIGHTS:
        return base
    return {**base, "insights": insights[:_INSIGHTS], "total_insights": len(insights)}


TOOL = Tool(
    "analyze_session",
    "Diagnose a session",
    "What went wrong in a session: a health score with findings (failed tools; with include_loops identical "
    "calls repeated; token use), each with the events that show it. Next: get_event_details on the evidence.",
    AnalyzeSession,
    answer,
)
