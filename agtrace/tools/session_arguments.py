"""A request for a session and the start of its page, as shared by the levels and the sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.answers import TurnOverview
from agtrace_schema.model import dump, dump_all
from agtrace_schema.requests import Level, Section
from msgspec import Meta, Struct
from msgspec.structs import replace

from agtrace.problems import InvalidParameter
from agtrace.sessions import listing, turns
from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.query import find_session, last_event_of, short_id
from agtrace.sessions.said import last_message, open_call
from agtrace.settings import ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Pages
from agtrace.text.next_call import NextCall, call
from agtrace.tools.arguments import Arguments, Cursor, Fields, FocusQuestion, SessionId, TurnIndex
from agtrace.tools.long_text import QUESTION, check_question
from agtrace.tools.tool import Context, event_kilobytes, kilobytes, query_of, turn_kilobytes

NAME = "get_session_details"

_BYTES = {
    "summary": (10_240, 15_360),
    "turns": (30_720, 30_720),
    "steps": (32_000, ABSOLUTE_MAX_BYTES),
    "full": (32_000, ABSOLUTE_MAX_BYTES),
}  # the default, and the maximum

_LANDMARKS = 1_024
"""Bytes of a page of landmarks."""

WITH_MORE = 4_096
"""The smallest answer in which an overview shows landmarks, its last message and what each turn came to; in a smaller
one the turns need the room."""

_MANY_FAILURES = 3
"""With this many failed calls, a diagnosis says more than the first of them."""

LARGEST_OVERVIEW = _BYTES["summary"][1]
"""The most bytes that level summary or a section may take."""


class GetSessionDetails(Arguments):
    """Arguments of get_session_details."""

    session_id: SessionId
    detail_level: Annotated[
        Level,
        Meta(
            description="summary: a line per turn; turns: a line per step; steps: 500 characters of every thought, "
            "message, call and output; full: verbatim."
        ),
    ] = "summary"
    sections: Annotated[list[Section], Meta(min_length=1, description="Only these, in full.")] | None = None
    fields: Annotated[Fields, Meta(description="Only these: title, stats.cost_usd, turns.outcome")] = None
    turn_index: TurnIndex = None
    include_reasoning: Annotated[bool, Meta(description="Quote the thinking (level turns).")] = False
    context_focus_question: FocusQuestion = None
    cursor: Cursor = None
    max_bytes: Annotated[
        Annotated[int, Meta(ge=SMALLEST_MAX_BYTES, le=ABSOLUTE_MAX_BYTES)] | None,
        Meta(description="Default 32000 (steps, full)."),
    ] = None


class View(Struct, frozen=True):
    """A request for a session, and where its page begins."""

    context: Context
    wanted: GetSessionDetails
    session: Session
    shown_id: str
    last_event: int
    """The newest event of the snapshot."""
    position: tuple[int, ...]
    """Where the previous page ended, as each level counts; empty on the first page."""
    top: dict[str, Any]
    """The fields above the turns."""

    @property
    def budget(self) -> int:
        """The bytes that the answer may take."""
        default, most = _BYTES[self.wanted.detail_level]
        if self.wanted.sections == ["landmarks"]:
            default = _LANDMARKS
        if self.wanted.max_bytes:
            return min(self.wanted.max_bytes, most)
        return limits().size(default)

    @property
    def most_read(self) -> int:
        """The bytes of a page that nothing read for it may exceed by much."""
        return max(self.budget, LARGEST_OVERVIEW)

    def cursor(self, *position: int) -> str:
        """Return the cursor that continues after a position."""
        query = {**query_of(self.wanted), "session_id": self.session.uid}
        return self.context.cursors.make(NAME, query, (self.last_event, *position))

    def pages(
        self,
        size: int,
        build: Callable[[int], list[dict[str, Any]]],
        cursor: Callable[[int], str],
        *,
        more: bool,
        total: int | None = None,
        essential: Callable[[int], list[dict[str, Any]]] | None = None,
        key: str = "turns",
    ) -> Pages:
        """Return pages of turns, of parts of turns, or of another list."""
        smallest = essential or build
        return Pages(
            size=size,
            build=lambda count: {**self.top, key: build(count)},
            cursor=cursor,
            more=more,
            first=not self.position,
            total=total,
            essential=lambda count: {"session_id": self.session.uid, key: smallest(count)},
        )

    def hint(self, level: str, turn_index: int, what: str, *, after: str = ".") -> NextCall:
        """Return the call that opens a turn at a level."""
        opening = call(NAME, session_id=self.shown_id, detail_level=level, turn_index=turn_index)
        size = turn_kilobytes(self.context.connection, self.session.id, turn_index, level)
        return opening.saying(what, size, after=after)

    def event_hint(self, event_index: int, what: str) -> NextCall:
        """Return the call that opens an event."""
        opening = call("get_event_details", session_id=self.shown_id, event_index=event_index)
        size = event_kilobytes(self.context.connection, self.session.id, event_index)
        return opening.saying(f"opens {what}", size)

    def lines_hint(self, event_index: int, first: int, last: int) -> NextCall:
        """Return the call that opens lines of an event that a question is not about."""
        opened = call(
            "get_event_details", session_id=self.shown_id, event_index=event_index, start_line=first, end_line=last
        )
        size = event_kilobytes(self.context.connection, self.session.id, event_index)
        return opened.saying("opens lines left out of it", size, after="; likewise any others.")

    def onward_hint(self, turn_index: int | None) -> NextCall:
        """Return the call to make after a turn without failures: the next turn, or else the thinking."""
        following = turns.turn_behind(self.context.connection, self.session, turn_index, self.last_event)
        if following is not None:
            return self.hint("turns", following, "shows the next turn")
        opening = call("get_reasoning_chain", session_id=self.shown_id, turn_index=turn_index)
        return opening.saying("shows why it was done", kilobytes(0, limits().usual))

    def diagnosis_hint(self) -> NextCall:
        """Return the call that diagnoses the session."""
        opening = call("analyze_session", session_id=self.shown_id, include_loops=True)
        return opening.saying("shows what went wrong and where", kilobytes(0, 5_120))

    def failing_turn_hint(self, listed: list[TurnOverview]) -> NextCall:
        """Return the diagnosis of a session with many failures; else the first turn with a failure, or the first."""
        if self.session.failed_calls >= _MANY_FAILURES and not self.position and self.wanted.turn_index is None:
            return self.diagnosis_hint()
        with_failures = turns.failing_turns(self.context.connection, self.session, self.last_event)
        of_all = with_failures.turns[0] if with_failures else None
        first = next((item.turn_index for item in listed if item.failed_tools), of_all)
        opened = first if first is not None or not listed else listed[0].turn_index
        if opened is None:
            return self.event_hint(0, "its first event")
        several = with_failures is not None and with_failures.total > 1
        after = ". sections=['failures'] lists every failure." if several else "."
        return self.hint("turns", opened, f"shows the steps of turn {opened}", after=after)


def view_of(context: Context, wanted: GetSessionDetails) -> View:
    """Find the session and the start of the page. Raises what `find_session`, `check_turn` and `Cursors.read` raise."""
    connection = context.connection
    _check_sections(wanted)
    _check_question(wanted)
    session = find_session(connection, wanted.session_id)
    if wanted.turn_index is not None:
        turns.check_turn(connection, session, wanted.turn_index)
    shown_id, last_event = short_id(connection, session.uid), last_event_of(connection, session)
    if wanted.cursor is None:
        head = listing.session_head(connection, session, context.prices)
        if wanted.detail_level == "summary":
            head = replace(head, failing_turns=turns.failing_turns(connection, session, last_event))
        inside = wanted.turn_index is not None and wanted.detail_level != "summary" and not wanted.fields
        top = {"session_id": session.uid} if inside else dump(head)
        if _has_room_for_more(wanted):
            told = telling_landmarks(connection, session.id, last_event)
            top |= {"landmarks": dump_all(told.items)} if told.items else {}
            top |= {"total_landmarks": told.total} if told.items and told.total > len(told.items) else {}
            ended = last_message(connection, session, last_event)
            top |= {"last_message": ended} if ended else {}
            left_open = open_call(connection, session, last_event)
            top |= {"open_call": left_open} if left_open else {}
        return View(context, wanted, session, shown_id, last_event, (), top)
    query = {**query_of(wanted), "session_id": session.uid}
    last_event, *position = context.cursors.read(NAME, query, wanted.cursor)
    return View(context, wanted, session, shown_id, last_event, tuple(position), {"session_id": session.uid})


def _has_room_for_more(wanted: GetSessionDetails) -> bool:
    if wanted.detail_level != "summary" or wanted.sections or wanted.turn_index is not None:
        return False
    return wanted.max_bytes is None or wanted.max_bytes >= WITH_MORE


def _check_sections(wanted: GetSessionDetails) -> None:
    """Raise `InvalidParameter` for sections with a level or a turn: they cover the whole session."""
    if wanted.sections is None:
        return
    if wanted.detail_level != "summary":
        message = f"sections: leave out detail_level={wanted.detail_level!r}; sections work with level summary only"
        raise InvalidParameter("sections", message, "detail_level='summary'")
    if wanted.turn_index is not None:
        raise InvalidParameter("sections", "sections: leave out turn_index; sections cover the whole session")


def _check_question(wanted: GetSessionDetails) -> None:
    """Raise `InvalidParameter` for a question at a level without long texts, or with the cursor of a single text."""
    if wanted.context_focus_question is None:
        return
    if wanted.detail_level not in ("steps", "full"):
        given = "sections" if wanted.sections else f"detail_level={wanted.detail_level!r}"
        message = f"{QUESTION}: there are no long texts in {given}; it works with detail_level 'steps' and 'full'"
        raise InvalidParameter(QUESTION, message, "detail_level='steps' or 'full'", "full")
    if wanted.detail_level == "full":
        check_question(cursor=wanted.cursor)
