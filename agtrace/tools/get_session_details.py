"""Overview: one session by its turns, or by their steps."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from agtrace import sessions, steps, turns
from agtrace.arguments import Arguments, Cursor, SessionId
from agtrace.query import find_session, short_id
from agtrace.shape import Pages, Reply
from agtrace.tools.tool import LIST_BYTES, Context, Tool, dump, dump_all, query_of

_TURNS_BYTES = 30_720
_STEPS_READ = 400
_TURNS_READ = 400
_LAST_STEP = 1 << 40  # behind every step of a turn


class GetSessionDetails(Arguments):
    """Arguments of get_session_details."""

    session_id: SessionId
    detail_level: Annotated[
        Literal["summary", "turns"], Field(description="summary: one line a turn; turns: every step with its tools.")
    ] = "summary"
    turn_index: Annotated[int | None, Field(ge=0, le=2**53, description="Only this turn.")] = None
    include_reasoning: Annotated[bool, Field(description="Quote the thinking (level turns).")] = False
    cursor: Cursor = None


@dataclass(frozen=True, slots=True)
class _View:
    """What is asked of a session, and where the page begins."""

    context: Context
    wanted: GetSessionDetails
    session: sqlite3.Row
    query: dict[str, Any]
    turn: int
    step: int
    last_event: int
    """The newest event of the snapshot."""

    @property
    def shown_id(self) -> str:
        return short_id(self.context.connection, self.session["uid"])

    def event_hint(self, event_index: int, what: str) -> str:
        """The call that opens an event."""
        return f"get_event_details(session_id={self.shown_id!r}, event_index={event_index}) opens {what} (1-5 KB)."

    def cursor(self, turn: int, step: int) -> str:
        """The cursor that continues behind a step."""
        return self.context.cursors.make(TOOL.name, self.query, (turn, step, self.last_event))


def answer(context: Context, wanted: GetSessionDetails) -> Reply:
    """A session by its turns, at one of two levels (R-112)."""
    view = _view(context, wanted)
    session, first = view.session, wanted.cursor is None
    by_steps = wanted.detail_level == "turns"
    pages, hint = _by_steps(view) if by_steps else _by_turns(view)
    head = sessions.session_head(context.connection, session, context.prices)
    top = dump(head) if first else {"session_id": session["uid"]}
    return Reply(
        summary=_summary(view, head.stats.duration_seconds),
        data=replace(pages, build=lambda count: {**top, **pages.build(count)}),
        budget=_TURNS_BYTES if by_steps else LIST_BYTES,
        hint=hint,
        reference=f"ax://session/{view.shown_id}",
        untrusted=True,
        counts={
            "total_turns": session["turn_count"],
            "tool_calls": session["tool_calls"],
            "failed_calls": session["failed_calls"],
        },
    )


def _view(context: Context, wanted: GetSessionDetails) -> _View:
    session = find_session(context.connection, wanted.session_id)
    if wanted.turn_index is not None:
        turns.check_turn(context.connection, session, wanted.turn_index)
    query = {**query_of(wanted), "session_id": session["uid"]}
    place: tuple[int, ...] = (-1, _LAST_STEP, _last_event(context.connection, session))
    if wanted.cursor is not None:
        place = context.cursors.read(TOOL.name, query, wanted.cursor)
    return _View(context, wanted, session, query, *place)


def _summary(view: _View, duration: int | None) -> str:
    session = view.session
    failed, calls = session["failed_calls"], session["tool_calls"]
    state = f"{failed} of {calls} tool calls failed" if failed else "no failed tool calls"
    size = f"{session['event_count']} events, {session['turn_count']} turns"
    lasted = "" if duration is None else f"{duration} s, "
    return f"Session {view.shown_id}: {state} ({lasted}{size})"


def _by_turns(view: _View) -> tuple[Pages, str]:
    """One line a turn, and the call that opens the first turn with a failure."""
    only = view.wanted.turn_index
    start, most = (view.turn + 1, _TURNS_READ) if only is None else (only, 1)
    listed = turns.turn_overviews(view.context.connection, view.session, start, view.last_event, most + 1)
    more, listed = only is None and len(listed) > most, listed[:most]
    pages = Pages(
        size=len(listed),
        build=lambda count: {"turns": dump_all(listed[:count])},
        cursor=lambda count: view.cursor(listed[count - 1].turn_index, _LAST_STEP),
        more=more,
        first=view.wanted.cursor is None,
        total=view.session["turn_count"] if only is None else len(listed),
    )
    failing = next((item for item in listed if item.failed_tools), listed[0] if listed else None)
    if failing is None:
        return pages, view.event_hint(0, "its first event")
    call = f"get_session_details(session_id={view.shown_id!r}, detail_level='turns', turn_index={failing.turn_index})"
    return pages, f"{call} shows the steps of turn {failing.turn_index} (1-30 KB)."


def _by_steps(view: _View) -> tuple[Pages, str]:
    """Every step, grouped by turns, and the call that opens the first failing one."""
    listed = steps.steps_of(
        view.context.connection,
        view.session,
        behind=(view.turn, view.step),
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
        include_reasoning=view.wanted.include_reasoning,
        most=_STEPS_READ + 1,
    )
    more, listed = len(listed) > _STEPS_READ, listed[:_STEPS_READ]
    heads = [dump(turn) for turn in turns.turn_details(view.context.connection, view.session, listed)]
    pages = Pages(
        size=len(listed),
        build=lambda count: {"turns": _grouped(heads, listed[:count])},
        cursor=lambda count: view.cursor(listed[count - 1].turn_index, listed[count - 1].step_index),
        more=more,
        first=view.wanted.cursor is None,
    )
    summaries = [step.summary for step in listed if step.summary]
    example = next((summary for summary in summaries if summary.failed_tools), summaries[0] if summaries else None)
    return pages, view.event_hint(example.first_event if example else 0, "a step's first event")


def _grouped(heads: list[dict[str, Any]], listed: list[steps.Step]) -> list[dict[str, Any]]:
    """The turns that these steps belong to, each with them alone."""
    kept: dict[int, list[Any]] = {}
    for step in listed:
        kept.setdefault(step.turn_index, []).extend([] if step.summary is None else [dump(step.summary)])
    return [head | {"steps": kept[head["turn_index"]]} for head in heads if head["turn_index"] in kept]


def _last_event(connection: sqlite3.Connection, session: sqlite3.Row) -> int:
    found = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", (session["id"],)).fetchone()
    return -1 if found[0] is None else int(found[0])


TOOL = Tool(
    "get_session_details",
    "Open a session",
    "One session. Level summary: facts and one line a turn. Level turns: every step with its tool calls and "
    "how they ended; turn_index opens one turn. Next: get_event_details with an event index.",
    GetSessionDetails,
    answer,
)
