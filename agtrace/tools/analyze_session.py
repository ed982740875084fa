"""The health of one session."""

from __future__ import annotations

from typing import Any

from agtrace_schema.answers import Insight

from agtrace import analysis
from agtrace.arguments import Arguments, SessionId
from agtrace.query import find_session
from agtrace.replies import Reply
from agtrace.tools.tool import Context, Tool, dump

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
        summary=f"Session {found.session_id}: health {found.score} of 100, {len(insights)} findings{more}",
        data=_worst(dump(found.model_copy(update={"insights": insights}))),
        budget=_BYTES,
        hint=_hint(found.session_id, insights, left_out),
        reference=f"ax://analysis/{found.session_id}",
        untrusted=bool(insights),
        counts={"score": found.score, "findings": len(insights), "failed_calls": session["failed_calls"]},
    )


def _hint(session_id: str, insights: list[Insight], left_out: int) -> str:
    first_evidence = next((e.event_index for insight in insights for e in insight.evidence), None)
    if first_evidence is not None:
        call = f"get_event_details(session_id={session_id!r}, event_index={first_evidence})"
        return f"{call} opens the first piece of evidence (1-5 KB)."
    if left_out:
        call = f"analyze_session(session_id={session_id!r}, include_failures=True, include_loops=True)"
        return f"{call} shows every finding (1-5 KB)."
    return f"get_session_details(session_id={session_id!r}) shows its turns (2-10 KB)."


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
