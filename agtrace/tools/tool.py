"""A tool, its context, and what the tools share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agtrace_indexer.index.queries import turns, upkeep
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.model import Model
from agtrace_schema.reports import RequestMetrics
from agtrace_schema.status import Health
from msgspec import Struct
from msgspec.structs import replace

from agtrace.index.trouble import Freshness
from agtrace.problems import UnknownProject
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import resolved
from agtrace.shaping.cursors import Cursors
from agtrace.shaping.replies import Reply
from agtrace.text.next_call import NextCall, call
from agtrace.text.numbers import counted
from agtrace.times import Period, moment, period
from agtrace.tools.arguments import Arguments, arguments_of

if TYPE_CHECKING:
    from agtrace_schema.analysis import Analysis


class Context(Struct, frozen=True):
    """Everything a tool needs to answer."""

    connection: sqlite3.Connection
    """Inside one read transaction, so a tool reads the index as of one moment."""
    cursors: Cursors
    freshness: Freshness
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    search_seconds: float
    """How long a search may run before it is stopped."""
    health: Callable[[], Health]
    """Return the figures of the index and the server."""
    metrics: Callable[[int | None], RequestMetrics]
    """Return the figures of the requests since a time, in milliseconds since 1970 UTC."""
    sent: Mapping[tuple[str, int], str] = {}
    """What the reader has: (session, event) -> the call whose answer has it."""

    def analysis(self, session: Session) -> Analysis:
        """Return the health of a session, with every finding."""
        from agtrace.health.analysis import analyze  # no other answer needs it

        return analyze(self.connection, session, now=self.now, prices=self.prices)

    def projects(self, given: str | None) -> tuple[int, ...] | None:
        """Return the row ids of the folders of a project, or of several with commas between; None for none given.

        Raises `InvalidParameter` if none has that name; while the index is incomplete, nothing is found instead.
        """
        if given is None:
            return None
        try:
            return resolved(self.connection, given, several=True)
        except UnknownProject:
            if "," in given:
                return tuple(row for one in given.split(",") for row in self.projects(one.strip()) or ())
            if self.freshness.state == "ready":
                raise
            return ()

    def moment(self, field: str, text: str | None, *, end: bool = False) -> int | None:
        """Read a time argument as milliseconds since 1970 UTC; None stays None."""
        return None if text is None else moment(field, text, datetime.fromtimestamp(self.now), end=end)

    def period(self, since: str | None, until: str | None) -> Period:
        """Read two time arguments as a period. Raises `InvalidParameter` if it ends before it begins."""
        return period(since, until, datetime.fromtimestamp(self.now))


class Tool(Struct, frozen=True):
    """A tool as clients see it, and the function that answers."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    payloads: tuple[type[Model], ...]
    """What `data` is in its answers, by what was asked for."""
    answer: Callable[[Context, Any], Reply]


def unless_behind(summary: str, total: int, context: Context) -> str:
    """Return the summary; that there is nothing is never said of an incomplete index, nor without what isn't read."""
    state = context.freshness.state.replace("_", " ")
    if state == "ready":
        unread = [] if total else upkeep.unread(context.connection)
        return f"{summary}; {counted(len(unread), 'store')} can't be read: ax://health" if unread else summary
    files = context.freshness.files_behind
    behind = f"{state}{'' if files is None else f', {files} files behind'}"
    return f"{summary} so far (index {behind})" if total else f"Nothing found yet: the index is {behind}; try again"


def query_of(request: Arguments) -> dict[str, Any]:
    """Return the arguments that identify a query; what to look for in its texts changes no position in it."""
    given = arguments_of(request)
    return {name: value for name, value in given.items() if name != "context_focus_question"}


def up_to(most: int) -> str:
    """Return the size of an answer for a hint, where it can be large."""
    return f"(up to {-(-most // 1024)} KB)"


def opens_event(shown_id: str, event_index: int, says: str, after: str = ".") -> NextCall:
    """Return the call of get_event_details for an event."""
    return call("get_event_details", session_id=shown_id, event_index=event_index).saying(says, after=after)


def opens_turn(
    connection: sqlite3.Connection, session_row: int, shown_id: str, turn: int, says: str, level: str = "turns"
) -> NextCall:
    """Return the call of get_session_details for a turn at level turns or steps, with the size of its first page."""
    opened = call("get_session_details", session_id=shown_id, detail_level=level, turn_index=turn)
    (found,) = turns.several(connection, session_row, [turn])
    if level == "turns":
        return opened.saying(says, up_to(min(4_000 + 900 * found.step_count, 30_720)))
    return opened.saying(says, up_to(min(4_000 + 1_000 * (found.last_event - found.first_event + 1), 32_000)))


def moment_of(context: Context, since: str | None, until: str | None) -> int:
    """Return the moment that relative times count from, in milliseconds; 0 without any.

    All pages of a list keep that moment.
    """
    tomorrow = replace(context, now=context.now + 86_400)
    times = [("since", since), ("until", until)]
    moves = any(context.moment(field, text) != tomorrow.moment(field, text) for field, text in times)
    return int(context.now * 1000) if moves else 0
