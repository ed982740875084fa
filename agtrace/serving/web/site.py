"""The server of `agtrace open`: its pages by their addresses, behind its door, on loopback."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agtrace.answers.desk import Answers
from agtrace.answers.library_log import take_libraries
from agtrace.problems import Problem
from agtrace.report.page.document import chart_library
from agtrace.report.web import pages
from agtrace.serving.connections import listen
from agtrace.serving.http_process import run
from agtrace.serving.web.answering import Answering
from agtrace.serving.web.conversations import Conversations
from agtrace.serving.web.guard import ENTRANCE, Guard
from agtrace.serving.web.lists import Lists
from agtrace.serving.web.live import Channel, of_list, of_session

HOST = "127.0.0.1"


class Opened(NamedTuple):
    """A server that is about to answer."""

    link: str
    """Where the browser begins; it has the token."""
    serve: Callable[[], int]
    """Answers until SIGTERM or SIGINT, and returns the exit code."""


def opened(desk: Answers, port: int, to: str, *, dollars: bool) -> Opened:
    """Listen on loopback; port 0 means any free port. Raises `SettingError` if that isn't possible.

    `to` is the path of the first page; `dollars` tells whether costs are shown.
    """
    take_libraries()
    listening = listen(HOST, port)
    token, port = secrets.token_urlsafe(), listening.getsockname()[1]
    link = pages.address(f"http://{HOST}:{port}{ENTRANCE}", key=token, to=to)
    application = _application(desk, token, port, dollars=dollars)

    def serve() -> int:
        threading.Thread(target=_index, args=(desk,), daemon=True).start()
        with listening:
            return run(application, listening)

    return Opened(link, serve)


def _index(desk: Answers) -> None:
    """Begin to bring the index up to date; what is wrong with it, the first page says."""
    with suppress(Problem):
        desk.read(lambda context: None)


def _application(desk: Answers, token: str, port: int, *, dollars: bool) -> Starlette:
    answering = Answering(desk, pages.Pages(dollars=dollars))
    lists, session, channel = Lists(answering), Conversations(answering), Channel()

    async def live(request: Request) -> Response:
        named = request.path_params.get("session")
        answer = channel.answer(of_list(desk) if named is None else of_session(desk, named))
        return answer or PlainTextResponse("Too many pages are open.\n", 503)

    return Starlette(
        routes=[
            Route("/", lists.sessions),
            Route("/more", lists.more),
            Route("/projects", lists.projects),
            Route("/costs", lists.costs),
            Route("/search", lists.search),
            Route("/found", lists.found),
            Route("/live", live),
            Route("/static/{version}/{name}", _static),
            Route("/s/{session}", session.session),
            Route("/s/{session}/facts", session.facts),
            Route("/s/{session}/window/{number}", session.window),
            Route("/s/{session}/outline", session.outline),
            Route("/s/{session}/failure", session.failure),
            Route("/s/{session}/call/{event}", session.call),
            Route("/s/{session}/text/{event}", session.text),
            Route("/s/{session}/health", session.health),
            Route("/s/{session}/live", live),
        ],
        middleware=[Middleware(Guard, token=token, port=port)],
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
