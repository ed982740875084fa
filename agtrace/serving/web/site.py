"""The pages of `agtrace open` by their addresses. Each request reads the index at one moment, on a thread."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

from agtrace_indexer.index.questions import events, sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.events import EventType
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from agtrace.answers.desk import Answers
from agtrace.answers.log import take_libraries
from agtrace.problems import IndexUnavailable, InvalidEventIndex, Problem, SessionNotFound
from agtrace.report.conversation.telling import written
from agtrace.report.page.document import chart_library
from agtrace.report.web import listing, pages
from agtrace.report.web.about import about, cleaner_for, outline
from agtrace.report.web.calls import Calls, result_shown
from agtrace.report.web.conversation import WINDOW, window, window_of, windows
from agtrace.report.web.examined import examined
from agtrace.report.wording import AGENTS
from agtrace.serving.connections import listen
from agtrace.serving.http_process import run
from agtrace.serving.web.asked import PERIODS, Asked, behind, number
from agtrace.serving.web.guard import ENTRANCE, Guard
from agtrace.serving.web.live import Channel, of_list, of_session
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_event, find_session, short_id
from agtrace.text.next_call import text_of
from agtrace.tools.tool import Context

HOST = "127.0.0.1"

CHUNK = 100_000
"""The characters of a long text that a page shows at once."""

_FOUND = 20
"""The most hits of a search that are shown at once."""

_EXAMINED = 8
_FEW = 3
"""Logs that the index may lack before a page says so: it is brought up to date while pages are read."""

_STATUS = {"session_not_found": 404, "invalid_event_index": 404, "index_unavailable": 503, "internal_error": 500}


class Opened(NamedTuple):
    """A server that is about to answer."""

    link: str
    """Where the browser begins; it has the token."""
    serve: Callable[[], int]
    """Answers until SIGTERM or SIGINT, and returns the exit code."""


def opened(desk: Answers, port: int, to: str, *, dollars: bool) -> Opened:
    """Listen on loopback; port 0 means any free port. Raises `SettingError` if that isn't possible."""
    take_libraries()
    listening = listen(HOST, port)
    token, port = secrets.token_urlsafe(), listening.getsockname()[1]
    link = pages.address(f"http://{HOST}:{port}{ENTRANCE}", key=token, to=to)
    application = Site(desk, dollars=dollars).application(token, port)

    def serve() -> int:
        threading.Thread(target=_index, args=(desk,), daemon=True).start()
        with listening:
            return run(application, listening)

    return Opened(link, serve)


def _index(desk: Answers) -> None:
    """Begin to bring the index up to date; what is wrong with it, the first page says."""
    with suppress(Problem):
        desk.read(lambda context: None)


class Site:
    """Answers requests for pages and their parts. Safe to use from several threads."""

    def __init__(self, desk: Answers, *, dollars: bool) -> None:
        self._desk, self._pages = desk, pages.Pages(dollars=dollars)
        self._channel = Channel()
        self._examined: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._keeping = threading.Lock()

    def application(self, token: str, port: int) -> Starlette:
        """Return the application, behind its door."""
        return Starlette(
            routes=[
                Route("/", self._sessions),
                Route("/more", self._more),
                Route("/projects", self._projects),
                Route("/costs", self._costs),
                Route("/search", self._search),
                Route("/found", self._found),
                Route("/live", self._live),
                Route("/static/{version}/{name}", _static),
                Route("/s/{session}", self._session),
                Route("/s/{session}/window/{number}", self._window),
                Route("/s/{session}/outline", self._outline),
                Route("/s/{session}/call/{event}", self._call),
                Route("/s/{session}/text/{event}", self._text),
                Route("/s/{session}/health", self._health),
                Route("/s/{session}/live", self._live),
            ],
            middleware=[Middleware(Guard, token=token, port=port)],
            exception_handlers={Problem: self._problem, HTTPException: self._missing},
        )

    # -- lists -------------------------------------------------------------------------------------

    def _sessions(self, request: Request) -> Response:
        return self._page("sessions", lambda context: self._listed(context, request))

    def _more(self, request: Request) -> Response:
        return self._page("rows", lambda context: self._listed(context, request))

    def _listed(self, context: Context, request: Request) -> dict[str, Any]:
        asked = Asked.of(request.query_params)
        after = behind(request.query_params)
        found = listing.listed(context.connection, asked.filters(context), asked.order, after, context.prices)
        return {
            "listed": found, "asked": asked, "sorts": listing.SORTS, "periods": PERIODS, "agents": AGENTS,
            "project_options": _project_options(context),
        }  # fmt: skip

    def _projects(self, request: Request) -> Response:
        return self._page(
            "projects", lambda context: {"projects": listing.projects(context.connection, context.prices)}
        )

    def _costs(self, request: Request) -> Response:
        asked = Asked.of(request.query_params)

        def made(context: Context) -> dict[str, Any]:
            spent = listing.ledger(
                context.connection, asked.selection(context), asked.group, context.prices, dollars=self._pages.dollars
            )
            return {
                "ledger": spent, "asked": asked, "groups": listing.GROUPS, "periods": PERIODS, "agents": AGENTS,
                "project_options": _project_options(context),
            }  # fmt: skip

        return self._page("costs", made)

    # -- search ------------------------------------------------------------------------------------

    def _search(self, request: Request) -> Response:
        found = self._hits(request)
        return self._page("search", lambda context: found)

    def _found(self, request: Request) -> Response:
        found = self._hits(request)
        return self._page("found", lambda context: found)

    def _hits(self, request: Request) -> dict[str, Any]:
        """Return what the search tool answers, which is what agents and the command line get."""
        given = request.query_params
        query, order = given.get("q", "")[:2_000], "newest" if given.get("order") == "newest" else "best"
        wanted: dict[str, Any] = {
            "query": query, "order": order, "limit": _FOUND, "cursor": given.get("cursor"),
            "session_id": given.get("session"), "provider": given.get("agent"), "project": given.get("project"),
        }  # fmt: skip
        if not query.strip():
            return {"query": query, "order": order, "session": given.get("session"), "answer": None}
        if wanted["cursor"]:
            wanted["order"] = "newest"
        answer = self._desk.ask("search_event_previews", {name: value for name, value in wanted.items() if value})
        return {"query": query, "order": order, "session": given.get("session"), "answer": answer.value}

    # -- a session ---------------------------------------------------------------------------------

    def _session(self, request: Request) -> Response:
        at = number(request.query_params.get("at", "0"), "at")
        given = request.path_params["session"]
        known = self._desk.read(lambda context: short_id(context.connection, self._named(context, request).uid))
        if given != known:  # `last`, and ids longer than needed
            return RedirectResponse(request.url.replace(path=f"/s/{quote(known, safe='')}"))

        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            told = about(context.connection, session, now=context.now, prices=context.prices)
            shown = min(window_of(at), windows(told.last_event) - 1)
            return {
                "about": told,
                "window": window(context.connection, session, shown, cleaner_for(session)),
                "windows": windows(told.last_event),
                "size": WINDOW,
                "outline": outline(context.connection, session, 0),
            }

        return self._page("session", made)

    def _window(self, request: Request) -> Response:
        wanted = number(request.path_params["number"], "window")

        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            found = window(context.connection, session, wanted, cleaner_for(session))
            return {
                "window": found,
                "id": short_id(context.connection, session.uid),
                "agent": AGENTS[session.provider],
            }

        return self._page("window", made)

    def _outline(self, request: Request) -> Response:
        first = number(request.query_params.get("from", "0"), "from")

        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            return {
                "outline": outline(context.connection, session, first),
                "id": short_id(context.connection, session.uid),
            }

        return self._page("turns", made)

    def _call(self, request: Request) -> Response:
        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            index = number(request.path_params["event"], "event")
            row = events.at(context.connection, session.id, index)
            if row is None or row.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
                raise InvalidEventIndex(request.path_params["session"], index, 0)
            found = Calls(context.connection, session, cleaner_for(session)).unfolded(row)
            return {"unfolded": found, "id": short_id(context.connection, session.uid), "event_index": index}

        return self._page("unfolded", made)

    def _text(self, request: Request) -> Response:
        part = number(request.query_params.get("part", "0"), "part")

        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            event = find_event(context.connection, session, number(request.path_params["event"], "event"))
            is_call = event.type == EventType.TOOL_CALL
            clean = cleaner_for(session)
            text = written(clean.value(event.rest.get("arguments"))) if is_call else clean.text(event.text)
            last = max(len(text) - 1, 0) // CHUNK
            shown = text[part * CHUNK : (part + 1) * CHUNK]
            return {
                "id": short_id(context.connection, session.uid),
                "event": event,
                "name": clean.line(event.row.name or event.type, 100),
                "shown": result_shown(shown) if event.type == EventType.TOOL_RESULT else shown,
                "part": part,
                "last": last,
                "chars": len(text),
            }

        return self._page("text", made)

    def _health(self, request: Request) -> Response:
        def made(context: Context) -> dict[str, Any]:
            session = self._named(context, request)
            family = sessions.with_agents(context.connection, session.id)
            key = session.id, session.uid, session.event_count, family, int(context.now // 600)
            with self._keeping:
                known = self._examined.get(key)
            if known is None:
                known = examined(
                    context.connection, session, now=context.now, prices=context.prices, dollars=self._pages.dollars
                )
                with self._keeping:
                    self._examined[key] = known
                    while len(self._examined) > _EXAMINED:
                        self._examined.popitem(last=False)
            return known

        return JSONResponse(self._desk.read(made))

    async def _live(self, request: Request) -> Response:
        named = request.path_params.get("session")
        answer = self._channel.answer(of_list(self._desk) if named is None else of_session(self._desk, named))
        return answer or PlainTextResponse("Too many pages are open.\n", 503)

    def _named(self, context: Context, request: Request) -> Session:
        return find_session(context.connection, request.path_params["session"])

    # -- answers -----------------------------------------------------------------------------------

    def _page(self, template: str, made: Callable[[Context], dict[str, Any]]) -> Response:
        """Return a page, or a part of one, made from the index at one moment."""

        def fill(context: Context) -> str:
            return self._pages.filled(
                template, **{"now": context.now, "lacking": _lacking(context), "asked": None, **made(context)}
            )

        return HTMLResponse(self._desk.read(fill))

    def _problem(self, request: Request, problem: Exception) -> Response:
        assert isinstance(problem, Problem)
        status = _STATUS.get(problem.code, 400)
        hint = (
            text_of(problem.hint) if problem.hint and isinstance(problem, (IndexUnavailable, SessionNotFound)) else ""
        )
        page = self._pages.filled(
            "problem", message=problem.message, hint=hint, status=status, now=0, lacking="", asked=None
        )
        return HTMLResponse(page, status)

    def _missing(self, request: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        page = self._pages.filled(
            "problem", message="There is no such page", hint="", status=problem.status_code, now=0, lacking="",
            asked=None,
        )  # fmt: skip
        return HTMLResponse(page, problem.status_code, problem.headers)


def _project_options(context: Context) -> list[tuple[str, str]]:
    """Return what a choice of projects offers: the name that filters take, and what is shown."""
    names = sorted(set(labels(context.connection).values()), key=str.lower)
    return [("", "All projects"), *((name, name) for name in names)]


def _lacking(context: Context) -> str:
    """Say what the index doesn't have yet; empty if that is nothing to speak of."""
    fresh = context.freshness
    if fresh.problem is not None:
        return f"{fresh.problem}; only what was indexed before is shown"
    if fresh.state == "building" or (fresh.files_behind or 0) > _FEW:
        return f"Indexing: {fresh.files_behind:,} files to go" if fresh.files_behind else "Indexing your logs"
    return ""


_STATIC: dict[str, tuple[Callable[[], str], str]] = {
    "style.css": (pages.styles, "text/css"),
    "script.js": (pages.script, "text/javascript"),
    "theme.js": (pages.theme_script, "text/javascript"),
    "charts.js": (chart_library, "text/javascript"),
    "icon.svg": (pages.icon, "image/svg+xml"),
}
"""What pages load, by name: each a file of ours, and its type."""


def _static(request: Request) -> Response:
    found = _STATIC.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    load, kind = found
    return Response(load(), media_type=kind)
