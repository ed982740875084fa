"""Overview: one session by its turns, or by their steps."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from agtrace import sessions, turns
from agtrace.arguments import Arguments, Cursor, SessionId
from agtrace.query import find_session, short_id
from agtrace.shape import Pages, Reply
from agtrace.tools.tool import LIST_BYTES, Context, Tool, dump, dump_all, query_of

_TURNS_BYTES = 30_720
_STEPS_READ = 400
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

    def cursor(self, turn: int, step: int) -> str:
        """The cursor that continues behind a step."""
        return self.context.cursors.make(TOOL.name, self.query, (turn, step, self.last_event))


def answer(context: Context, wanted: GetSessionDetails) -> Reply:
    """A session by its turns, at one of two levels (R-112)."""
    view = _view(context, wanted)
    session, first = view.session, wanted.cursor is None
    by_steps = wanted.detail_level == "turns"
    pages, hint = _by_steps(view) if by_steps else _by_turns(view)
    head = sessions.session_head(context.connection, session)
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
        turns.check_turn(session, wanted.turn_index)
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
    start = view.turn + 1 if only is None else only
    listed = turns.turn_overviews(view.context.connection, view.session, start, view.last_event)
    listed = listed if only is None else listed[:1]
    failing = next((item.turn_index for item in listed if item.failed_tools), start)
    pages = Pages(
        size=len(listed),
        build=lambda count: {"turns": dump_all(listed[:count])},
        cursor=lambda count: view.cursor(listed[count - 1].turn_index, _LAST_STEP),
        more=False,
        first=view.wanted.cursor is None,
        total=view.session["turn_count"] if only is None else len(listed),
    )
    call = f"get_session_details(session_id='{view.shown_id}', detail_level='turns', turn_index={failing})"
    return pages, f"{call} shows the steps of turn {failing} (1-30 KB)."


def _by_steps(view: _View) -> tuple[Pages, str]:
    """Every step, grouped by turns, and the call that opens the first failing one."""
    steps = turns.steps_of(
        view.context.connection,
        view.session,
        behind=(view.turn, view.step),
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
        include_reasoning=view.wanted.include_reasoning,
        most=_STEPS_READ + 1,
    )
    more, steps = len(steps) > _STEPS_READ, steps[:_STEPS_READ]
    detailed = turns.turn_details(view.context.connection, view.session, steps)

    def build(count: int) -> dict[str, Any]:
        kept: dict[int, list[Any]] = {}
        for item in steps[:count]:
            kept.setdefault(item.turn_index, []).extend([] if item.summary is None else [dump(item.summary)])
        return {
            "turns": [dump(turn) | {"steps": kept[turn.turn_index]} for turn in detailed if turn.turn_index in kept]
        }

    def cursor(count: int) -> str:
        return view.cursor(steps[count - 1].turn_index, steps[count - 1].step_index)

    summaries = [step.summary for step in steps if step.summary]
    failing = next((summary for summary in summaries if summary.failed_tools), None)
    example = failing or (summaries[0] if summaries else None)
    event = example.first_event if example else 0
    hint = f"get_event_details(session_id='{view.shown_id}', event_index={event}) opens a step's first event (1-5 KB)."
    return Pages(len(steps), build, cursor, more, view.wanted.cursor is None), hint


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
    ("session_id", "turns"),
)
