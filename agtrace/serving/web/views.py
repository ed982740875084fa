"""The pages of `agtrace open`: of a session, its conversation in windows; of many, lists, costs and searches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from agtrace_indexer.index.questions import calls, events, sessions, upkeep
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.providers.registry import AGENTS as BY_NAME
from agtrace_indexer.reader.images import Image, images_of
from agtrace_schema.events import EventType
from starlette.requests import Request

from agtrace.answers.at_work import open_calls
from agtrace.answers.desk import Answers
from agtrace.answers.running import DAY_MS, asks
from agtrace.problems import InvalidEventIndex, SessionNotFound
from agtrace.report.conversation.telling import written
from agtrace.report.web import pages
from agtrace.report.web.calls import Calls, result_shown
from agtrace.report.web.conversation import WINDOW, window_of, windows
from agtrace.report.web.conversation import window as pages_window
from agtrace.report.web.pages import about, cleaner_for, examined, is_active, title
from agtrace.report.wording import AGENTS
from agtrace.serving.web.answering import PERIODS, Asked, behind, number
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_event, find_session, last_event_of, short_id
from agtrace.settings.limits import limits
from agtrace.text.lines import LABEL
from agtrace.tools.tool import Context

_FOUND = 20
"""The most hits of a search that are shown at once."""

_LONGEST_QUERY = 2_000

_TITLE = 100
"""The most characters of a session's title next to a hit."""


def projects(context: Context, request: Request) -> dict[str, Any]:
    """Return the list of projects."""
    return {"projects": pages.projects(context.connection, context.prices)}


def costs(context: Context, request: Request, *, dollars: bool) -> dict[str, Any]:
    """Return what was spent, by group."""
    asked = Asked.of(request.query_params)
    found = pages.ledger(context.connection, asked.selection(context), asked.group, context.prices, dollars=dollars)
    return {"ledger": found, "groups": pages.GROUPS, **_choices(context, asked)}


def hits(desk: Answers, request: Request) -> dict[str, Any]:
    """Return what the search tool answers, which is what agents and the command line get."""
    given = request.query_params
    query, cursor = given.get("q", "")[:_LONGEST_QUERY], given.get("cursor")
    order = "newest" if given.get("order") == "newest" else "best"
    shown: dict[str, Any] = {"query": query, "order": order, "session": given.get("session"), "answer": None}
    if not query.strip():
        return shown
    wanted = {
        "query": query, "order": order, "cursor": cursor, "session_id": given.get("session"),
        "limit": _FOUND if order == "newest" else None, "provider": given.get("agent"), "project": given.get("project"),
    }  # fmt: skip
    asked = {name: value for name, value in wanted.items() if value}
    answer = desk.ask("search_event_previews", asked).value
    return shown | {"answer": answer, "titles": desk.read(lambda context: _titles(context, answer))}


def _titles(context: Context, answer: dict[str, Any]) -> dict[str, str]:
    hits = answer.get("data", {}).get("matches") or []
    with suppress(SessionNotFound):  # one was forgotten since
        return {id: title(find_session(context.connection, id), _TITLE) for id in {hit["session_id"] for hit in hits}}
    return {}


def listed(context: Context, request: Request) -> dict[str, Any]:
    """Return the list of sessions, or the part of it after a place."""
    asked = Asked.of(request.query_params)
    page = pages.listed(
        context.connection, asked.filters(context), asked.order, behind(request.query_params), context.prices
    )
    shown = {"listed": page, "sorts": pages.SORTS, "asking": _asking(context, page)}
    return {**shown, **_choices(context, asked)}


def _asking(context: Context, page: pages.Listed) -> set[str]:
    """Return the ids of the sessions of a page that have asked the human something, as their logs here show."""
    if limits().settings.asked is not None:
        return set()  # the logs of a team's index are on other machines
    now, found = round(1000 * context.now), set()
    ends = sessions.ends(context.connection, (row for row, _ in page.rows_at))
    for row, id in page.rows_at:
        if now - ends.get(row, 0) < DAY_MS:
            (session,) = sessions.in_rows(context.connection, [row])
            if asks(context.connection, session, ends[row], now):
                found.add(id)
    return found


def _choices(context: Context, asked: Asked) -> dict[str, Any]:
    names = sorted(set(labels(context.connection).values()), key=str.lower)
    projects = [("", "All projects"), *((name, name) for name in names)]
    known = {one["provider"] for one in upkeep.providers(context.connection) if one["sessions"]} | {asked.agent}
    agents = {name: title for name, title in AGENTS.items() if name in known}
    return {"asked": asked, "periods": PERIODS, "agents": agents, "project_options": projects}


PART = 100_000
"""The characters of a long text that a page shows at once."""

_EXAMINED = 8
"""The most analyses that are kept."""

_GOOD_FOR_SECONDS = 600
"""The time for which it is uncertain whether a session is still at work."""


def whole_session(context: Context, request: Request) -> dict[str, Any]:
    """Return a session, with the window of an event."""
    session = _named(context, request)
    told = about(context.connection, session, now=context.now, prices=context.prices)
    count = windows(told.last_event)
    number = min(window_of(_number(request, "at")), count - 1)
    return {
        "about": told,
        "window": pages_window(context.connection, session, number, cleaner_for(session)),
        "windows": count,
        "size": WINDOW,
        "outline": pages.outline(context.connection, session, 0),
        "running": _running(context, session),
    }


def place_of_session(context: Context, request: Request) -> str | None:
    """Return where the page of a session is that is named otherwise: `last`, or by an id longer than needed."""
    known = _short(context, _named(context, request))
    return None if known == request.path_params["session"] else f"/s/{quote(known, safe='')}"


def facts(context: Context, request: Request) -> dict[str, Any]:
    """Return what the head of a session's page tells of it."""
    session = _named(context, request)
    return {"about": about(context.connection, session, now=context.now, prices=context.prices)}


def window(context: Context, request: Request) -> dict[str, Any]:
    """Return a window of a conversation."""
    wanted, session = number(request.path_params["number"], "window"), _named(context, request)
    found = pages_window(context.connection, session, wanted, cleaner_for(session))
    named = {"id": _short(context, session), "agent": AGENTS[session.provider]}
    return {"window": found, "running": _running(context, session), **named}


def outline(context: Context, request: Request) -> dict[str, Any]:
    """Return the turns of a session from one on."""
    first, session = _number(request, "from"), _named(context, request)
    return {"outline": pages.outline(context.connection, session, first), "id": _short(context, session)}


def failure(context: Context, request: Request) -> int | None:
    """Return the first failed call from an event on, or the last one before it."""
    backwards = "before" in request.query_params
    event = _number(request, "before" if backwards else "from")
    return calls.failed_next(context.connection, _named(context, request).id, event, backwards=backwards)


def call(context: Context, request: Request) -> dict[str, Any]:
    """Return what a call unfolds to."""
    index, session = number(request.path_params["event"], "event"), _named(context, request)
    row, shown = events.at(context.connection, session.id, index), _short(context, session)
    if row is None or row.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        raise InvalidEventIndex(shown, index, last_event_of(context.connection, session))
    found = Calls(context.connection, session, cleaner_for(session)).unfolded(row)
    return {"unfolded": found, "id": shown, "event_index": index}


def text(context: Context, request: Request) -> dict[str, Any]:
    """Return a part of the whole text of an event; of a call, of its arguments."""
    index, part = number(request.path_params["event"], "event"), _number(request, "part")
    session = _named(context, request)
    event, clean = find_event(context.connection, session, index), cleaner_for(session)
    is_call = event.type == EventType.TOOL_CALL
    text = written(clean.value(event.rest.get("arguments"))) if is_call else clean.text(event.text)
    shown = text[part * PART : (part + 1) * PART]
    return {
        "id": _short(context, session),
        "event": event,
        "name": clean.line(event.row.name or event.type, 2 * LABEL),
        "shown": result_shown(shown) if event.type == EventType.TOOL_RESULT else shown,
        "part": part,
        "last": max(len(text) - 1, 0) // PART,
        "chars": len(text),
    }


def image(context: Context, request: Request) -> Image | None:
    """Return an image of an event as its log has it; None if it can't be shown."""
    index, at = (number(request.path_params[name], name) for name in ("event", "number"))
    session, settings = _named(context, request), limits().settings
    event = find_event(context.connection, session, index)
    found = [] if settings.asked else images_of(settings.database, session.path, event)
    return found[at] if at < len(found) else None


class Analyses:
    """The last analyses of sessions, each kept until one of its logs grows. Safe to use from several threads."""

    def __init__(self, *, dollars: bool) -> None:
        self._dollars = dollars
        self._kept: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._keeping = threading.Lock()

    def health(self, context: Context, request: Request) -> dict[str, Any]:
        """Return the analysis of a session with its timeline."""
        session = _named(context, request)
        family = sessions.with_agents(context.connection, session.id)
        key = session.uid, session.event_count, family, int(context.now // _GOOD_FOR_SECONDS)
        with self._keeping:
            known = self._kept.get(key)
        if known is not None:
            return known
        found = examined(context.connection, session, now=context.now, prices=context.prices, dollars=self._dollars)
        with self._keeping:
            self._kept[key] = found
            while len(self._kept) > _EXAMINED:
                self._kept.popitem(last=False)
        return found


def _named(context: Context, request: Request) -> Session:
    """Return the session that the address names. Raises `SessionNotFound` or `AmbiguousSessionPrefix`."""
    return find_session(context.connection, request.path_params["session"])


def _running(context: Context, session: Session) -> set[int]:
    if not is_active(session, context.now):
        return set()
    latest = events.latest(context.connection, session.id, WINDOW)
    return {call.event_index for call in open_calls(latest, BY_NAME[session.provider].tools)}


def _short(context: Context, session: Session) -> str:
    return short_id(context.connection, session.uid)


def _number(request: Request, name: str) -> int:
    """Return a number of the query; 0 if it isn't given. Raises `InvalidParameter`."""
    return number(request.query_params.get(name, "0"), name)
