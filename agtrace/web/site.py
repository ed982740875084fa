"""The server of `agtrace open`: its pages by their addresses, on loopback; open ones are told of changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
from agtrace_indexer.index.queries import events
from agtrace_schema.patterns import later
from jinja2 import ChainableUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from agtrace.answers.log import capture_library_logs
from agtrace.answers.service import Service
from agtrace.conversation import html
from agtrace.conversation.document import as_script, bundled, chart_library, environment, scripts, style
from agtrace.problems import IndexUnavailable, Problem
from agtrace.report import wording
from agtrace.report.page.page import FACTS
from agtrace.serving.connections import listen, run
from agtrace.serving.ending import at_end
from agtrace.sessions.query import find_event, find_session, short_id
from agtrace.sessions.quotes import line_of
from agtrace.sessions.usage import snapshot_now
from agtrace.text.next_call import text_of
from agtrace.text.numbers import counted, percent, seconds, short
from agtrace.tools.tool import Context
from agtrace.web import lists, session
from agtrace.web.auth import ENTRANCE, Auth, Keys

# -- templates ---------------------------------------------------------------------------------------

_HERE = Path(__file__).parent
_REPORT_STYLES = ("colours", "page", "session", "timeline")
_STYLES = ("frame", "lists", "conversation", "narrow")
_SCRIPTS = (
    *scripts("dom", "words", "look", "unpack", "charts", "scale"),
    _HERE / "scripts" / "references.js", *scripts("timeline", "session", "pressing"),
    *(_HERE / "scripts" / f"{name}.js" for name in (
        "fetching", "copying", "lists", "finding", "calls", "windows", "outline", "health", "live", "keys", "main")),
)  # fmt: skip
_UNITS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400 * 7, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))


class Pages:
    """Fills in templates. Safe to use from several threads.

    `dollars`: whether costs are shown, which mean little to those who pay by subscription.
    """

    def __init__(self, *, dollars: bool) -> None:
        self.dollars = dollars
        self._templates = environment(_HERE / "templates", html.HERE / "templates")
        self._templates.undefined = ChainableUndefined  # answers leave out what isn't known
        self._templates.filters |= {
            "short": short, "number": wording.plain, "dollars": wording.shown_dollars, "percent": percent,
            "duration": seconds, "clock": clock, "weekday": lambda moment: f"{_local(moment):%a}",
            "when": date_and_time, "moment": _moment,
            "path": lambda text: quote(str(text), safe=""), "unmarked": html.unmarked, "as_line": line_of,
        }  # fmt: skip
        self._templates.globals |= {
            "counted": counted, "ago": ago, "address": address, "with_dollars": dollars, "version": static_version(),
            "why_at_least": wording.why_at_least, "facts": as_script({**FACTS, "charts": [], "dollars": dollars}),
        }  # fmt: skip

    def filled(self, template: str, **values: Any) -> str:
        """Return a template filled in with these values."""
        return self._templates.get_template(f"{template}.html").render(values)


# -- addresses and times ---------------------------------------------------------------------------


def address(path: str, given: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return an address of ours with a query: what was given, with what replaces it; empty values are left out."""
    query = {name: value for name, value in {**(given or {}), **more}.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(query)}" if query else path


def clock(moment: int) -> str:
    """Return the local time of day of a moment in milliseconds since 1970 UTC; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%H:%M}"


def date_and_time(moment: int) -> str:
    """Return a moment in milliseconds since 1970 UTC as local date and time; empty if it is unknown."""
    local = _local(moment)
    return "" if local is None else f"{local:%Y-%m-%d %H:%M}"


def _local(moment: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(moment / 1000) if moment else None
    except (OverflowError, ValueError, OSError):
        return None


def _moment(iso: str | None) -> int:
    """Return an ISO time as milliseconds since 1970 UTC; 0 for none."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000) if iso else 0


def ago(moment: int, now: float) -> str:
    """Return how long ago a moment in milliseconds since 1970 UTC is: `now`, `5 min ago`; empty if it is unknown."""
    if not moment:
        return ""
    passed = now - moment / 1000
    return next((f"{int(passed // size)} {unit} ago" for size, unit in _UNITS if passed >= size), "now")


# -- what pages load -------------------------------------------------------------------------------


@cache
def _static_files() -> Mapping[str, tuple[str, str]]:
    """Return what pages load, by name: each a file of ours, and its type."""
    sheets = {name: (_HERE / "styles" / f"{name}.css").read_text(encoding="utf-8") for name in _STYLES}
    styles = [*map(style, _REPORT_STYLES), sheets.pop("frame"), sheets.pop("lists"), html.entry_styles()]
    theme = (_HERE / "scripts" / "theme.js").read_text(encoding="utf-8")
    return {
        "style.css": ("\n".join([*styles, *sheets.values()]), "text/css"),
        "script.js": (bundled(_SCRIPTS), "text/javascript"),
        "theme.js": (theme, "text/javascript"),
        "charts.js": (chart_library(), "text/javascript"),
        "icon.svg": ((_HERE / "styles" / "icon.svg").read_text(encoding="utf-8"), "image/svg+xml"),
    }


@cache
def static_version() -> str:
    """Return what changes with any of these files."""
    whole = "\0".join(text for text, _ in _static_files().values())
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


# -- answers ---------------------------------------------------------------------------------------

_STATUS = {"session_not_found": 404, "invalid_event_index": 404, "index_unavailable": 503, "internal_error": 500}
_FEW = 3
"""Logs that the index may lack before a page says so: it is brought up to date while pages are read."""


class Answering:
    """Answers with pages. Safe to use from several threads."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self.service, self.pages = service, pages

    def page(self, template: str, made: Callable[[Context, Request], dict[str, Any]]) -> Callable[[Request], Response]:
        """Return what answers with a template filled in with what is found in the index at one moment.

        What it returns raises `Problem`.
        """

        def page(request: Request) -> Response:
            def fill(context: Context) -> str:
                values = {
                    "now": context.now,
                    "lacking": _missing_in_index(context),
                    "asked": None,
                    **made(context, request),
                }
                return self.pages.filled(template, **values)

            return HTMLResponse(self.service.read(fill))

        return page

    def value(self, found: Callable[[Context, Request], Any]) -> Callable[[Request], Response]:
        """Return what answers with JSON. What it returns raises `Problem`."""
        return lambda request: JSONResponse(self.service.read(lambda context: found(context, request)))

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


def _missing_in_index(context: Context) -> str:
    """Say what the index doesn't have yet; empty if that is nothing to speak of."""
    fresh = context.freshness
    if fresh.problem is not None:
        return f"{fresh.problem}; only what was indexed before is shown"
    if fresh.state == "building" or (fresh.files_behind or 0) > _FEW:
        return f"Indexing: {fresh.files_behind:,} files to go" if fresh.files_behind else "Indexing your logs"
    return ""


# -- changes ---------------------------------------------------------------------------------------

MOST = 64
"""The most pages that are told of changes at a time."""

_PAUSE = 0.7
"""Seconds between two looks. A look at logs that didn't change takes next to nothing."""

_SIGN_OF_LIFE = 15.0
"""Seconds after which an empty comment is sent, so that a closed page is noticed."""

State = dict[str, Any]


def of_session(service: Service, session_id: str) -> Callable[[], State | None]:
    """Return what looks at a session: its last event, and how many it has; None while the index can't be read."""

    def look(context: Context) -> State:
        session = find_session(context.connection, session_id)
        last = events.last(context.connection, session.id)
        return {"last": -1 if last is None else last, "events": session.event_count, "turns": session.turn_count}

    return lambda: _looked(service, look)


def of_list(service: Service) -> Callable[[], State | None]:
    """Return what looks at all sessions: the newest session and event, as `Listed.state` has them; None while the
    index can't be read."""
    return lambda: _looked(service, lambda context: snapshot_now(context.connection)._asdict())


def _looked(service: Service, look: Callable[[Context], State]) -> State | None:
    try:
        return service.read(look)
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


# -- the server ------------------------------------------------------------------------------------

_EVENT = later(r"(?P<session>.+):(?P<event>[0-9]{1,15})")
_SECONDS = 10
"""Seconds that changed logs are indexed before a session is looked for."""


def path_of(service: Service, place: str | None) -> str:
    """Return the path of the page of SESSION, SESSION:EVENT or FILE; of the worklog for none. Raises `Problem`."""
    if place is None:
        return "/work"
    if os.path.isfile(place):
        return address("/why", file=os.path.abspath(place))
    parts = _EVENT.fullmatch(place)
    given, event = (place, None) if parts is None else (parts["session"], int(parts["event"]))

    def look(context: Context) -> str:
        session = find_session(context.connection, given)
        if event is not None:
            find_event(context.connection, session, event)
        path = f"/s/{quote(short_id(context.connection, session.uid), safe='')}"
        return path if event is None else f"{path}?at={event}#e{event}"

    return service.read(look, seconds=_SECONDS)


HOST = "127.0.0.1"
_OURS = "agtrace-open-"
_REDIRECT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={link}">
"""


class Site(NamedTuple):
    """A server that is about to answer."""

    link: Callable[[Callable[[], None]], str]
    """Returns a link to the first page, which opens it once; what it is given is called once it was used."""
    serve: Callable[[], int]
    """Answers until SIGTERM or SIGINT, and returns the exit code."""


def site(service: Service, port: int, to: str, *, dollars: bool) -> Site:
    """Listen on loopback; port 0 means any free port. Raises `SettingError` if that isn't possible.

    `to` is the path of the first page; `dollars` tells whether costs are shown.
    """
    capture_library_logs()
    listening = listen(HOST, port)
    keys, port = Keys(), listening.getsockname()[1]
    application = _application(service, keys, port, dollars=dollars)

    def link(after_use: Callable[[], None]) -> str:
        return address(f"http://{HOST}:{port}{ENTRANCE}", key=keys.new(after_use), to=to)

    def serve() -> int:
        threading.Thread(target=_index, args=(service,), daemon=True).start()
        with listening:
            return run(application, listening)

    return Site(link, serve)


def visit(opened: Site) -> bool:
    """Start the browser with a file that leads to a link of its own; return whether it started.

    The arguments of a process are no place for a link: every user of the machine can read them.
    """
    folder = _new_folder()
    if folder is None:
        return False

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    at_end.add(remove)
    file = folder / "open.html"
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as written:
        written.write(_REDIRECT.format(link=escape(opened.link(remove))))
    if webbrowser.open(file.as_uri()):
        return True
    remove()
    return False


def _new_folder() -> Path | None:
    """Make a folder that only its owner can enter; None if none can be made.

    A browser from a Flatpak sees only ~/Downloads of all folders, and one from a snap neither hidden folders nor /tmp.
    """
    visible = (Path.home() / "Downloads", Path.home()) if sys.platform == "linux" else ()
    parents = (*visible, Path(tempfile.gettempdir()))
    if os.name == "posix":
        _remove_stale(parents)
    for parent in parents:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=f"{_OURS}{os.getpid()}-", dir=parent))
    return None


def _remove_stale(parents: Iterable[Path]) -> None:
    """Remove what servers of this user left that were killed: their numbers are in the names of the folders."""
    for folder in (folder for parent in parents for folder in parent.glob(f"{_OURS}*-*")):
        with suppress(OSError, ValueError):
            status, number = folder.lstat(), int(folder.name.removeprefix(_OURS).partition("-")[0])
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                try:
                    os.kill(number, 0)
                except ProcessLookupError:
                    shutil.rmtree(folder, ignore_errors=True)


def _index(service: Service) -> None:
    """Begin to bring the index up to date; what is wrong with it, the first page says."""
    with suppress(Problem):
        service.read(lambda context: None)


def _application(service: Service, keys: Keys, port: int, *, dollars: bool) -> Starlette:
    answering, channel = Answering(service, Pages(dollars=dollars)), Channel()
    page, value = answering.page, answering.value

    async def live(request: Request) -> Response:
        named = request.path_params.get("session")
        answer = channel.answer(of_list(service) if named is None else of_session(service, named))
        return answer or PlainTextResponse("Too many pages are open.\n", 503)

    def search(template: str, request: Request) -> Response:
        found = lists.hits(service, request)
        return page(template, lambda context, _: found)(request)

    def session_page(request: Request) -> Response:
        elsewhere = service.read(lambda context: session.place_of_session(context, request))
        if elsewhere is not None:
            return RedirectResponse(request.url.replace(path=elsewhere))
        return page("session", session.session_page)(request)

    def image(request: Request) -> Response:
        found = service.read(lambda context: session.image(context, request))
        if found is None:
            raise HTTPException(404)
        return Response(found.data, media_type=found.kind)

    return Starlette(
        routes=[
            Route("/", page("sessions", lists.sessions_page)),
            Route("/work", page("work", lists.work_page)),
            Route("/why", page("why", lists.why_page)),
            Route("/more", page("rows", lists.sessions_page)),
            Route("/projects", page("projects", lists.projects_page)),
            Route("/costs", page("costs", partial(lists.costs_page, dollars=dollars))),
            Route("/search", partial(search, "search")),
            Route("/found", partial(search, "found")),
            Route("/live", live),
            Route("/static/{version}/{name}", _static),
            Route("/s/{session}", session_page),
            Route("/s/{session}/facts", page("facts", session.facts_page)),
            Route("/s/{session}/window/{number}", page("window", session.window_page)),
            Route("/s/{session}/outline", page("turns", session.outline_page)),
            Route("/s/{session}/failure", value(session.failure)),
            Route("/s/{session}/call/{event}", page("unfolded", session.call_page)),
            Route("/s/{session}/text/{event}", page("text", session.text_page)),
            Route("/s/{session}/image/{event}/{number}", image),
            Route("/s/{session}/health", value(partial(session.health, dollars=dollars))),
            Route("/s/{session}/live", live),
        ],
        middleware=[Middleware(Auth, keys=keys, port=port)],
        exception_handlers={Problem: answering.problem, HTTPException: answering.missing},
    )


def _static(request: Request) -> Response:
    found = _static_files().get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    text, kind = found
    return Response(text, media_type=kind)
