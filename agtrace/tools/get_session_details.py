"""Overview to everything: one session by its turns, its steps, their parts, or as one text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import Field

from agtrace import parts, sessions, steps, transcript, turns
from agtrace.arguments import Arguments, Cursor, SessionId
from agtrace.cutting import LINES_PER_CHUNK
from agtrace.query import find_session, last_event_of, short_id
from agtrace.replies import Entry, Pages, Reply, Stream
from agtrace.settings import ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES
from agtrace.tools.tool import LIST_BYTES, Context, Tool, dump, dump_all, query_of

_BYTES = {
    "summary": (LIST_BYTES, 15_360),
    "turns": (30_720, 30_720),
    "steps": (32_000, ABSOLUTE_MAX_BYTES),
    "full": (32_000, ABSOLUTE_MAX_BYTES),
}  # by default, and at most

_TURN_BYTES = 120  # that a turn takes at least
_TURNS_READ = _BYTES["summary"][1] // _TURN_BYTES


class GetSessionDetails(Arguments):
    """Arguments of get_session_details."""

    session_id: SessionId
    detail_level: Annotated[
        Literal["summary", "turns", "steps", "full"],
        Field(
            description="summary: one line a turn; turns: one line a step; steps: the first 500 characters of every "
            "thought, message, argument and output; full: everything, verbatim."
        ),
    ] = "summary"
    turn_index: Annotated[int | None, Field(ge=0, le=2**53, description="Only this turn.")] = None
    include_reasoning: Annotated[bool, Field(description="Quote the thinking (level turns).")] = False
    cursor: Cursor = None
    max_bytes: Annotated[
        int | None,
        Field(
            ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES, description="Bytes of an answer; default 32000 (steps, full)."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class _View:
    """What is asked of a session, and where the page begins."""

    context: Context
    wanted: GetSessionDetails
    session: sqlite3.Row
    shown_id: str
    last_event: int
    """The newest event of the snapshot."""
    position: tuple[int, ...]
    """What lies behind the page before, as each level counts; empty on the first page."""
    top: dict[str, Any]
    """What stands above the turns."""

    @property
    def budget(self) -> int:
        """The bytes that the answer may take."""
        default, most = _BYTES[self.wanted.detail_level]
        return min(self.wanted.max_bytes or default, most)

    def cursor(self, *position: int) -> str:
        """The cursor that continues behind a position."""
        query = {**query_of(self.wanted), "session_id": self.session["uid"]}
        return self.context.cursors.make(TOOL.name, query, (self.last_event, *position))

    def pages(
        self,
        size: int,
        build: Callable[[int], list[dict[str, Any]]],
        cursor: Callable[[int], str],
        *,
        more: bool,
        total: int | None = None,
        essential: Callable[[int], list[dict[str, Any]]] | None = None,
    ) -> Pages:
        """Pages of turns, or of what turns are made of."""
        smallest = essential or build
        return Pages(
            size=size,
            build=lambda count: {**self.top, "turns": build(count)},
            cursor=cursor,
            more=more,
            first=not self.position,
            total=total,
            essential=lambda count: {"session_id": self.session["uid"], "turns": smallest(count)},
        )

    def hint(self, level: str, turn_index: int, what: str) -> str:
        """The call that opens a turn at a level."""
        call = f"get_session_details(session_id={self.shown_id!r}, detail_level={level!r}, turn_index={turn_index})"
        return f"{call} {what}."

    def event_hint(self, event_index: int, what: str) -> str:
        """The call that opens an event."""
        return f"get_event_details(session_id={self.shown_id!r}, event_index={event_index}) opens {what} (1-5 KB)."


def answer(context: Context, wanted: GetSessionDetails) -> Reply:
    """A session at one of four levels (R-112, R-027, R-028)."""
    view = _view(context, wanted)
    session = view.session
    data, hint = _LEVELS[wanted.detail_level](view)
    return Reply(
        summary=_headline(view),
        data=data,
        budget=view.budget,
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
    connection = context.connection
    session = find_session(connection, wanted.session_id)
    if wanted.turn_index is not None:
        turns.check_turn(connection, session, wanted.turn_index)
    shown_id, last_event = short_id(connection, session["uid"]), last_event_of(connection, session)
    if wanted.cursor is None:
        top = dump(sessions.session_head(connection, session, context.prices))
        return _View(context, wanted, session, shown_id, last_event, (), top)
    query = {**query_of(wanted), "session_id": session["uid"]}
    last_event, *position = context.cursors.read(TOOL.name, query, wanted.cursor)
    return _View(context, wanted, session, shown_id, last_event, tuple(position), {"session_id": session["uid"]})


def _headline(view: _View) -> str:
    session = view.session
    failed, calls = session["failed_calls"], session["tool_calls"]
    state = f"{failed} of {calls} tool calls failed" if failed else "no failed tool calls"
    size = f"{session['event_count']} events, {session['turn_count']} turns"
    start, end = session["started_at"], session["ended_at"]
    lasted = "" if start is None or end is None else f"{(end - start) // 1000} s, "
    return f"Session {view.shown_id}: {state} ({lasted}{size})"


def _level_summary(view: _View) -> tuple[Pages, str]:
    """Level summary: one line a turn, and the call that opens the first turn with a failure."""
    only, (behind,) = view.wanted.turn_index, view.position or (-1,)
    start, most = (behind + 1, _TURNS_READ) if only is None else (only, 1)
    listed = turns.turn_overviews(view.context.connection, view.session, start, view.last_event, most + 1)
    more, listed = only is None and len(listed) > most, listed[:most]
    pages = view.pages(
        len(listed),
        lambda count: dump_all(listed[:count]),
        lambda count: view.cursor(listed[count - 1].turn_index),
        more=more,
        total=view.session["turn_count"] + view.session["copied_turns"] if only is None else len(listed),
    )
    failing = next((item for item in listed if item.failed_tools), listed[0] if listed else None)
    if failing is None:
        return pages, view.event_hint(0, "its first event")
    return pages, view.hint("turns", failing.turn_index, f"shows the steps of turn {failing.turn_index} (1-30 KB)")


def _level_turns(view: _View) -> tuple[Pages, str]:
    """Level turns: every step, grouped by turns, and the call that opens the first turn with a failing one."""
    connection, session = view.context.connection, view.session
    turn, step = view.position or (-1, -1)
    found = steps.steps_of(
        connection,
        session,
        behind=(turn, step),
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
        include_reasoning=view.wanted.include_reasoning,
    )
    listed, more = _fitting(found, lambda item: _size(item.summary) if item.summary else _TURN_BYTES, view.budget)
    heads = [dump(turn) for turn in turns.turn_details(connection, session, listed)]
    pages = view.pages(
        len(listed),
        lambda count: _grouped(heads, listed[:count]),
        lambda count: view.cursor(listed[count - 1].turn_index, listed[count - 1].step_index),
        more=more,
    )
    failing = next(
        (item for item in listed if item.summary and item.summary.failed_tools), listed[0] if listed else None
    )
    if failing is None:
        return pages, view.event_hint(0, "its first event")
    return pages, view.hint("steps", failing.turn_index, "shows what its tools were given and gave back (2-32 KB)")


def _level_steps(view: _View) -> tuple[Pages, str]:
    """Level steps: every part of every step, and the call that opens the first failed execution."""
    (behind,) = view.position or (-1,)
    found = parts.parts_of(
        view.context.connection,
        view.session,
        behind=behind,
        last_event=view.last_event,
        turn_index=view.wanted.turn_index,
    )
    listed, more = _fitting(found, lambda part: _size(part.shown), view.budget)
    pages = view.pages(
        len(listed),
        lambda count: dump_all(parts.by_turns(listed[:count])),
        lambda count: view.cursor(listed[count - 1].event_index),
        more=more,
        essential=lambda count: dump_all(parts.by_turns(part.without_texts for part in listed[:count])),
    )
    failure = next((part.failure for part in listed if part.failure is not None), None)
    if failure is not None:
        return pages, view.event_hint(failure, "the first failure whole")
    return pages, view.event_hint(listed[0].event_index if listed else 0, "the first of these events whole")


def _level_full(view: _View) -> tuple[Stream, str]:
    """Level full: the canonical text of the session, and the call that opens the event at its beginning."""
    event, offset, line, chunk = view.position or (0, 0, 0, 0)
    found = transcript.entries(view.context.connection, view.session, event, view.last_event, view.wanted.turn_index)
    entries, more = _fitting(found, lambda entry: _filled(entry, event, offset, view.budget), view.budget)
    stream = Stream(
        entries=entries,
        more=more,
        frame=view.top,
        key="text",
        cursor=view.cursor,
        essential={"session_id": view.session["uid"]},
        event=event,
        offset=offset,
        line=line,
        chunk=chunk,
    )
    return stream, view.event_hint(entries[0].event_index if entries else 0, "the first of these events with its links")


_LEVELS: dict[str, Callable[[_View], tuple[Pages | Stream, str]]] = {
    "summary": _level_summary,
    "turns": _level_turns,
    "steps": _level_steps,
    "full": _level_full,
}

Item = TypeVar("Item")


def _fitting(found: Iterable[Item], size: Callable[[Item], int], budget: int) -> tuple[list[Item], bool]:
    """Take more items than fit into a budget, and whether there are others: nothing is read for nothing."""
    taken: list[Item] = []
    total = 0
    for item in found:
        if total > budget:
            return taken, True
        taken.append(item)
        total += size(item)
    return taken, False


def _size(model: Any) -> int:
    """At least so many bytes does it take in an answer."""
    return len(orjson.dumps(model, default=lambda part: part.model_dump(exclude_none=True)))


def _filled(entry: Entry, event: int, offset: int, budget: int) -> int:
    """How much of a chunk the rest of an entry fills: the lines of a chunk are limited, too."""
    text = entry.text[offset if entry.event_index == event else 0 :]
    return max(len(text), text.count("\n") * budget // LINES_PER_CHUNK)


def _grouped(heads: list[dict[str, Any]], listed: list[steps.Step]) -> list[dict[str, Any]]:
    """The turns that these steps belong to, each with them alone."""
    kept: dict[int, list[Any]] = {}
    for step in listed:
        kept.setdefault(step.turn_index, []).extend([] if step.summary is None else [dump(step.summary)])
    return [head | {"steps": kept[head["turn_index"]]} for head in heads if head["turn_index"] in kept]


TOOL = Tool(
    "get_session_details",
    "Open a session",
    "One session, from overview to everything: by its turns, its steps, their parts, or as one text. Start with "
    "level summary, go deeper with turn_index. Next: get_event_details with an event index.",
    GetSessionDetails,
    answer,
)
