"""The server of `agtrace open`: its pages by their addresses, behind its guard, on loopback."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from html import escape
from pathlib import Path
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
from agtrace.serving.ending import at_end
from agtrace.serving.http_process import run
from agtrace.serving.web.answering import Answering
from agtrace.serving.web.conversations import Conversations
from agtrace.serving.web.guard import ENTRANCE, Guard, Keys
from agtrace.serving.web.lists import Lists
from agtrace.serving.web.live import Channel, of_list, of_session

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
