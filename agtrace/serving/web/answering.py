"""What `agtrace open` answers: pages and parts of them, each made from the index at one moment; and what is wrong.

An address asks for filters of lists, periods, pages; what can't be meant raises `Problem`. An open page is told of
changes by server-sent events.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, cast
from urllib.parse import quote

import anyio
import anyio.to_thread
from agtrace_indexer.index.questions import events
from agtrace_indexer.index.questions.sessions import SessionFilters
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.patterns import later
from agtrace_schema.requests import CostBy
from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from agtrace.answers.desk import Answers
from agtrace.problems import IndexUnavailable, InvalidParameter, Problem
from agtrace.report.selection import Selection
from agtrace.report.web.pages import GROUPS, SORTS, Behind, Pages, behind_in
from agtrace.sessions.query import find_event, find_session, short_id
from agtrace.sessions.usage import Order, snapshot_now
from agtrace.text.lines import repeated
from agtrace.text.next_call import text_of
from agtrace.tools.tool import Context

PERIODS = {
    "": "any time", "today": "today", "yesterday": "since yesterday", "7d": "7 days", "30d": "30 days",
    "90d": "90 days", "365d": "a year",
}  # fmt: skip
"""The periods that filters offer, as a time understood by `--since`."""

_LONGEST = 200


class Asked(Struct, frozen=True):
    """The filters in an address, as typed; empty for none."""

    agent: str = ""
    project: str = ""
    since: str = ""
    until: str = ""
    query: str = ""
    failures: str = ""
    kind: str = ""
    sort: str = ""
    by: str = ""

    @classmethod
    def of(cls, given: QueryParams) -> Asked:
        """Read the query of an address. Raises `InvalidParameter` for an agent, order or group that doesn't exist."""
        found = cls(**{name: given.get(name, "").strip()[:_LONGEST] for name in cls.__struct_fields__})
        for name, value, allowed in (
            ("agent", found.agent, [*AGENTS]), ("sort", found.sort, [*SORTS]), ("by", found.by, [*GROUPS]),
            ("kind", found.kind, ["main", "subagent", "all"]),
        ):  # fmt: skip
            if value and value not in allowed:
                raise InvalidParameter(
                    name, f"{name}: expected one of {', '.join(allowed)}, got {repeated(value, 60)!r}"
                )
        return found

    @property
    def given(self) -> dict[str, str]:
        """The filters that aren't empty, as an address has them."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}

    @property
    def filtering(self) -> int:
        """How many of them leave something out."""
        return len(self.given.keys() - {"sort", "by"})

    @property
    def order(self) -> Order:
        """The order of the sessions."""
        return cast(Order, self.sort or "active")

    @property
    def group(self) -> CostBy:
        """The groups of what was spent."""
        return cast(CostBy, self.by or "day")

    def filters(self, context: Context) -> SessionFilters:
        """Return the filters of a list of sessions. Raises `Problem` for a project or a time that isn't understood."""
        kind = self.kind or "main"
        period = context.period(self.since or None, self.until or None)
        return SessionFilters(
            provider=self.agent or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
            query=self.query or None,
            kind=None if kind == "all" else kind,
            has_failures=True if self.failures else None,
        )

    def selection(self, context: Context) -> Selection:
        """Return the sessions and the period whose costs are meant. Raises `Problem` as `filters` does."""
        period = context.period(self.since or None, self.until or None)
        return Selection(
            provider=self.agent or None,
            project=self.project or None,
            projects=context.projects(self.project or None),
            since=period.since,
            until=period.until,
        )


def behind(given: QueryParams) -> Behind | None:
    """Return where the page before ended; None on the first one. Raises `InvalidParameter`."""
    written = given.get("after", "")
    found = behind_in(written)
    if written and found is None:
        raise InvalidParameter("after", "after: not a place in this list")
    return found


def number(given: str, name: str) -> int:
    """Read a number that isn't negative. Raises `InvalidParameter`."""
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidParameter(name, f"{name}: expected a number, got {repeated(given, 60)!r}")
    return int(given)


_EVENT = later(r"(?P<session>.+):(?P<event>[0-9]{1,15})")
_SECONDS = 10
"""Seconds that changed logs are indexed before a session is looked for."""


def path_of(desk: Answers, place: str | None) -> str:
    """Return the path of the page of SESSION or SESSION:EVENT; of the first page for none. Raises `Problem`."""
    if place is None:
        return "/"
    parts = _EVENT.fullmatch(place)
    given, event = (place, None) if parts is None else (parts["session"], int(parts["event"]))

    def look(context: Context) -> str:
        session = find_session(context.connection, given)
        if event is not None:
            find_event(context.connection, session, event)
        path = f"/s/{quote(short_id(context.connection, session.uid), safe='')}"
        return path if event is None else f"{path}?at={event}#e{event}"

    return desk.read(look, seconds=_SECONDS)


MOST = 64
"""The most pages that are told of changes at a time."""

_PAUSE = 0.7
"""Seconds between two looks. A look at logs that didn't change takes next to nothing."""

_SIGN_OF_LIFE = 15.0
"""Seconds after which an empty comment is sent, so that a closed page is noticed."""

State = dict[str, Any]


def of_session(desk: Answers, session_id: str) -> Callable[[], State | None]:
    """Return what looks at a session: its last event, and how many it has; None while the index can't be read."""

    def look(context: Context) -> State:
        session = find_session(context.connection, session_id)
        last = events.last(context.connection, session.id)
        return {"last": -1 if last is None else last, "events": session.event_count, "turns": session.turn_count}

    return lambda: _looked(desk, look)


def of_list(desk: Answers) -> Callable[[], State | None]:
    """Return what looks at all sessions: the newest session and event, as `Listed.state` has them; None while the
    index can't be read."""
    return lambda: _looked(desk, lambda context: snapshot_now(context.connection)._asdict())


def _looked(desk: Answers, look: Callable[[Context], State]) -> State | None:
    try:
        return desk.read(look)
    except Problem:
        return None


class Channel:
    """Tells open pages what changes. Used by the thread of the event loop only."""

    def __init__(self) -> None:
        self._open = 0

    def answer(self, look: Callable[[], State | None]) -> StreamingResponse | None:
        """Return an answer that goes on until its page is closed; None if too many are open."""
        if self._open >= MOST:
            return None
        return StreamingResponse(self._changes(look), media_type="text/event-stream")

    async def _changes(self, look: Callable[[], State | None]) -> AsyncIterator[str]:
        self._open += 1
        try:
            seen = await anyio.to_thread.run_sync(look)
            yield _event("state", seen)
            sent = time.monotonic()
            while True:
                await anyio.sleep(_PAUSE)
                found = await anyio.to_thread.run_sync(look)
                if found is not None and found != seen:
                    seen, sent = found, time.monotonic()
                    yield _event("changed", found)
                elif time.monotonic() - sent > _SIGN_OF_LIFE:
                    sent = time.monotonic()
                    yield ": still here\n\n"
        finally:
            self._open -= 1


def _event(name: str, value: State | None) -> str:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


_STATUS = {"session_not_found": 404, "invalid_event_index": 404, "index_unavailable": 503, "internal_error": 500}
_FEW = 3
"""Logs that the index may lack before a page says so: it is brought up to date while pages are read."""


class Answering:
    """Answers with pages. Safe to use from several threads."""

    def __init__(self, desk: Answers, pages: Pages) -> None:
        self.desk, self.pages = desk, pages

    def page(self, template: str, made: Callable[[Context, Request], dict[str, Any]]) -> Callable[[Request], Response]:
        """Return what answers with a template filled in with what is found in the index at one moment.

        What it returns raises `Problem`.
        """

        def page(request: Request) -> Response:
            def fill(context: Context) -> str:
                values = {"now": context.now, "lacking": _lacking(context), "asked": None, **made(context, request)}
                return self.pages.filled(template, **values)

            return HTMLResponse(self.desk.read(fill))

        return page

    def value(self, found: Callable[[Context, Request], Any]) -> Callable[[Request], Response]:
        """Return what answers with JSON. What it returns raises `Problem`."""
        return lambda request: JSONResponse(self.desk.read(lambda context: found(context, request)))

    def problem(self, request: Request, problem: Exception) -> Response:
        """Return a page that says why a request can't be answered, and what to do next."""
        assert isinstance(problem, Problem)
        hint = text_of(problem.hint) if problem.hint and isinstance(problem, IndexUnavailable) else ""
        return self._said(problem.message, _STATUS.get(problem.code, 400), hint)

    def missing(self, request: Request, problem: Exception) -> Response:
        """Return a page that says that there is no such page."""
        assert isinstance(problem, HTTPException)
        return self._said("There is no such page", problem.status_code)

    def _said(self, message: str, status: int, hint: str = "") -> Response:
        page = self.pages.filled("problem", message=message, hint=hint, status=status, lacking="", asked=None)
        return HTMLResponse(page, status)


def _lacking(context: Context) -> str:
    """Say what the index doesn't have yet; empty if that is nothing to speak of."""
    fresh = context.freshness
    if fresh.problem is not None:
        return f"{fresh.problem}; only what was indexed before is shown"
    if fresh.state == "building" or (fresh.files_behind or 0) > _FEW:
        return f"Indexing: {fresh.files_behind:,} files to go" if fresh.files_behind else "Indexing your logs"
    return ""
