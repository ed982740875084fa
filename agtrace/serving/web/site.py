"""The server of `agtrace open`: its pages by their addresses, behind its guard, on loopback."""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import stat
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace.answers.desk import Answers
from agtrace.answers.library_log import take_libraries
from agtrace.problems import Problem
from agtrace.report.page.document import chart_library
from agtrace.report.web import pages
from agtrace.serving.connections import listen, run
from agtrace.serving.ending import at_end
from agtrace.serving.web import views
from agtrace.serving.web.answering import Answering, Channel, of_list, of_session

ENTRANCE = "/enter"
"""Where a link leads: `/enter?key=KEY&to=/`."""

_POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types agtrace",
))  # fmt: skip
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), clipboard-read=(), clipboard-write=(self)",
    "cache-control": "no-store",
}
_OWN_SITES = frozenset({"same-origin", "none"})
_STRANGER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<h1>Use the link</h1>
<p>This page opens with the link that <code>agtrace open</code> printed, once. Run it again for a new one.</p>
"""
_ONWARD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<link rel="icon" href="/static/0/icon.svg"><meta http-equiv="refresh" content="0; url={to}">
"""


class Keys:
    """The keys of links that weren't used yet. Safe to use from several threads."""

    def __init__(self) -> None:
        self._unused: dict[str, Callable[[], None]] = {}

    def new(self, after_use: Callable[[], None]) -> str:
        """Return a new key; `after_use` is called once it was used."""
        key = secrets.token_urlsafe()
        self._unused[key] = after_use
        return key

    def use(self, key: str) -> bool:
        """Use a key, which is worth nothing from then on; False for one that is unknown or was used before."""
        after_use = self._unused.pop(key, None)
        if after_use is None:
            return False
        after_use()
        return True


class Guard:
    """Lets requests through that come from our own pages, or by a link. Safe to use from several threads.

    A link has a key that works once. The visit gets a cookie, with a value of its own, that scripts can't read and that
    other sites' pages can't send. Host and Origin must be ours, so that no web page reaches the server through a host
    name of its own (DNS rebinding). Whatever is answered says that nothing but our own scripts and styles may run,
    load, or frame it.
    """

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app, self._keys, self._visitor = app, keys, secrets.token_urlsafe()
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._cookie = f"agtrace-{port}"  # browsers give cookies to all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, _with_headers(send))

    def _answer(self, request: Request) -> Response | None:
        refused = self._refusal(request.headers)
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET is supported.\n", 405, {"Allow": "GET, HEAD"})
        is_known = hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._visitor.encode())
        if request.url.path == ENTRANCE:
            return self._entrance(request, is_known=is_known)
        return None if is_known else HTMLResponse(_STRANGER, 401)

    def _refusal(self, headers: Headers) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("Unknown host.\n", 421)
        if headers.get("origin") not in (None, *self._origins):
            return PlainTextResponse("Unknown origin.\n", 403)
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES and not is_visit:
            return PlainTextResponse("Only our own pages may ask.\n", 403)
        return None

    def _entrance(self, request: Request, *, is_known: bool) -> Response:
        """Use the key of the link, and go on to where it leads.

        The page that comes next is asked for by our own page, so that the cookie, which is for our site only, is sent
        however the link was opened. What only looks ahead (a browser while its user still types, a link checker) gets
        nothing and leaves the key unused.
        """
        if request.method == "HEAD" or "prefetch" in request.headers.get(
            "sec-purpose", request.headers.get("purpose", "")
        ):
            return PlainTextResponse("Only a visit opens this link.\n", 503)
        if not self._keys.use(request.query_params.get("key", "")) and not is_known:
            return HTMLResponse(_STRANGER, 401)
        to = escape(_place(request.query_params.get("to", "/")))
        answer = HTMLResponse(_ONWARD.format(to=to))
        answer.set_cookie(self._cookie, self._visitor, httponly=True, samesite="strict", path="/")
        return answer


def _place(given: str) -> str:
    """Return a place of ours; the first page for any other address."""
    try:
        parts = urlsplit(given)
    except ValueError:
        return "/"
    ours = not parts.scheme and not parts.netloc and given.startswith("/") and not given.startswith(("//", "/\\"))
    return given if ours and given.isprintable() else "/"


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sent


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


def site(desk: Answers, port: int, to: str, *, dollars: bool) -> Site:
    """Listen on loopback; port 0 means any free port. Raises `SettingError` if that isn't possible.

    `to` is the path of the first page; `dollars` tells whether costs are shown.
    """
    take_libraries()
    listening = listen(HOST, port)
    keys, port = Keys(), listening.getsockname()[1]
    application = _application(desk, keys, port, dollars=dollars)

    def link(after_use: Callable[[], None]) -> str:
        return pages.address(f"http://{HOST}:{port}{ENTRANCE}", key=keys.new(after_use), to=to)

    def serve() -> int:
        threading.Thread(target=_index, args=(desk,), daemon=True).start()
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


def _index(desk: Answers) -> None:
    """Begin to bring the index up to date; what is wrong with it, the first page says."""
    with suppress(Problem):
        desk.read(lambda context: None)


def _application(desk: Answers, keys: Keys, port: int, *, dollars: bool) -> Starlette:
    answering, analyses, channel = (
        Answering(desk, pages.Pages(dollars=dollars)),
        views.Analyses(dollars=dollars),
        Channel(),
    )
    page, value = answering.page, answering.value

    async def live(request: Request) -> Response:
        named = request.path_params.get("session")
        answer = channel.answer(of_list(desk) if named is None else of_session(desk, named))
        return answer or PlainTextResponse("Too many pages are open.\n", 503)

    def search(template: str, request: Request) -> Response:
        found = views.hits(desk, request)
        return page(template, lambda context, _: found)(request)

    def session(request: Request) -> Response:
        elsewhere = desk.read(lambda context: views.place_of_session(context, request))
        if elsewhere is not None:
            return RedirectResponse(request.url.replace(path=elsewhere))
        return page("session", views.whole_session)(request)

    def image(request: Request) -> Response:
        found = desk.read(lambda context: views.image(context, request))
        if found is None:
            raise HTTPException(404)
        return Response(found.data, media_type=found.kind)

    return Starlette(
        routes=[
            Route("/", page("sessions", views.listed)),
            Route("/more", page("rows", views.listed)),
            Route("/projects", page("projects", views.projects)),
            Route("/costs", page("costs", partial(views.costs, dollars=dollars))),
            Route("/search", partial(search, "search")),
            Route("/found", partial(search, "found")),
            Route("/live", live),
            Route("/static/{version}/{name}", _static),
            Route("/s/{session}", session),
            Route("/s/{session}/facts", page("facts", views.facts)),
            Route("/s/{session}/window/{number}", page("window", views.window)),
            Route("/s/{session}/outline", page("turns", views.outline)),
            Route("/s/{session}/failure", value(views.failure)),
            Route("/s/{session}/call/{event}", page("unfolded", views.call)),
            Route("/s/{session}/text/{event}", page("text", views.text)),
            Route("/s/{session}/image/{event}/{number}", image),
            Route("/s/{session}/health", value(analyses.health)),
            Route("/s/{session}/live", live),
        ],
        middleware=[Middleware(Guard, keys=keys, port=port)],
        exception_handlers={Problem: answering.problem, HTTPException: answering.missing},
    )


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
