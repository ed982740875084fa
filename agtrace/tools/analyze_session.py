"""The health of one session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.analysis import Analysis, Insight
from agtrace_schema.model import dump
from msgspec.structs import replace

from agtrace.sessions.landmarks import done_by
from agtrace.sessions.query import find_session
from agtrace.sessions.terms import ENDINGS
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Reply
from agtrace.text.lines import SUMMARY
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.tools.arguments import Arguments, SessionId
from agtrace.tools.tool import Context, Tool, opens_event

_BYTES = 5_120
_AROUND = 900
"""Bytes reserved for the envelope around the payload."""

_SIZES = ((10, 3), (10, 2), (8, 2), (6, 2), (6, 1), (4, 1))
"""How many findings to show, and how many events with each: the first pair that fits is used."""

_AGENTS = 5


class AnalyzeSession(Arguments):
    """Arguments of analyze_session."""

    session_id: SessionId
    include_failures: bool = True
    include_loops: bool = False


def answer(context: Context, request: AnalyzeSession) -> Reply:
    """Answer with the health of a session."""
    session = find_session(context.connection, request.session_id)
    found = context.analysis(session)
    asked = {"Failures": request.include_failures, "Loops": request.include_loops}
    insights = [insight for insight in found.insights if asked.get(insight.lens, True)]
    left_out = len(found.insights) - len(insights)
    done = done_by(context.connection, [session.id]).get(session.id)
    counts = {"findings": len(insights), "failed_calls": session.failed_calls}
    return Reply(
        summary=_summary(found, insights, left_out),
        data=_worst(replace(found, insights=insights, done=done)),
        budget=limits().size(_BYTES),
        hint=_hint(session, found.session_id, insights, left_out),
        reference=f"ax://analysis/{found.session_id}",
        untrusted=True,
        counts=counts if found.score is None else {"score": found.score, **counts},
    )


def _summary(analysis: Analysis, insights: Sequence[Insight], left_out: int) -> str:
    """`Session fb3cff44: health 65 of 100, ended on an error, 4 findings; most points lost: failures`.

    Why they were lost, if there is room for it.
    """
    health = "no score" if analysis.score is None else f"health {analysis.score} of 100"
    more = f", {left_out} more left out" if left_out else ""
    ending = ENDINGS[analysis.ending.ending]
    result = f"Session {analysis.session_id}: {health}, {ending}, {counted(len(insights), 'finding')}{more}"
    costly = max(analysis.parts, key=lambda part: part.lost, default=None)
    if costly is None or not costly.lost:
        return result
    fuller = (f"{result}; most points lost: {what}" for what in (costly.why, costly.part))
    return next((line for line in fuller if len(line) <= SUMMARY), result)


def first_evidence(session_id: str, insights: Sequence[Insight]) -> tuple[str, int] | None:
    """Return the session and event that show the worst finding; None without any evidence."""
    places = ((insight.session_id or session_id, one.event_index) for insight in insights for one in insight.evidence)
    return next(places, None)


def _hint(session: Session, session_id: str, insights: list[Insight], left_out: int) -> NextCall:
    place = first_evidence(session_id, insights)
    if place is not None:
        return opens_event(*place, "opens the first piece of evidence")
    if left_out:
        again = call(TOOL.name, session_id=session_id, include_failures=True, include_loops=True)
        return again.saying("shows every finding")
    if session.failed_calls:
        failed = call("search_event_previews", query="", session_id=session_id, failed=True, order="newest")
        return failed.saying("lists the calls that failed")
    return call("get_session_details", session_id=session_id).saying("shows its turns")


def _worst(analysis: Analysis) -> dict[str, Any]:
    """Return the analysis with as many of its worst findings as fit, and their total."""
    whole = {name: part for name, part in dump(analysis).items() if part != {}}
    if len(whole.get("agents", ())) > _AGENTS:
        whole = {**whole, "agents": whole["agents"][:_AGENTS], "total_agents": len(whole["agents"])}
    for most, events in _SIZES:
        insights = whole["insights"]
        shown = [{**insight, "evidence": insight["evidence"][:events]} for insight in insights[:most]]
        data = {**whole, "insights": shown} | ({"total_insights": len(insights)} if len(insights) > most else {})
        if len(orjson.dumps(data)) <= limits().size(_BYTES) - _AROUND:
            break
    return data


TOOL = Tool(
    "analyze_session",
    "Diagnose a session",
    "What went wrong in a session: a health score and findings (failures, tokens, time, ending, loops), each with "
    "its evidence. Next: get_event_details.",
    AnalyzeSession,
    (Analysis,),
    answer,
)
