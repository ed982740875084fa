"""`agtrace watch` shows the running sessions of all agents as they go; `agtrace open` shows sessions in the browser."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins
from msgspec.structs import replace

from agtrace.commands.asking import usable
from agtrace.commands.errors import tell
from agtrace.commands.options import plain_json, session_ids, settings_options
from agtrace.commands.printing import print_json

if TYPE_CHECKING:
    from agtrace.answers.activity_poller import ActivityPoller
    from agtrace.conversation.items import Followed
    from agtrace.web.site import Site


_ONCE_SECONDS = 10.0
"""How long a single look waits for changed logs to be indexed."""


@click.command()
@click.argument("session", required=False, shell_complete=session_ids)
@click.option("--within", default="30m", show_default=True, metavar="TIME",
              help="Sessions that were active within this time: 10m, 2h, 1d.")  # fmt: skip
@click.option("--once", is_flag=True, help="Print the sessions once instead.")
@plain_json
def watch(session: str | None, within: str, once: bool, as_json: bool) -> None:
    """Show the running sessions of all agents as they go: what each does now, and which wait for you.

    A session counts as running while its log grew within 30 minutes (--within); a question that it asked you is shown
    for a day.
    Enter follows one session, or start with its id. Whether a tool runs or waits for your permission is in hardly any
    log: such a session is shown as working, or asking permission, and as idle after ten minutes without a line.
    """
    from agtrace.answers.activity_poller import ActivityPoller
    from agtrace.sessions.prices import load as load_prices

    settings = usable()
    from agtrace.times import moment

    now = datetime.now()
    poller = ActivityPoller(
        settings, load_prices(settings.prices), within=max(now.timestamp() - moment("within", within, now) / 1000, 1)
    )
    with closing(poller):
        at_terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))  # it is drawn on stderr
        if once or as_json or not at_terminal:
            found = poller.look(_ONCE_SECONDS)
            if session is not None:
                uid = _uid(poller, session)
                found = replace(found, sessions=tuple(one for one in found.sessions if one.session_id == uid))
            if as_json:
                print_json(to_builtins(found))
            else:
                from agtrace.render.running import running

                running(found)
        else:
            from agtrace.render.tui import WatchApp

            if session is not None:
                poller.look()
            first = None if session is None else _uid(poller, session)
            app = WatchApp(_Source(poller), session=first)
            app.run()
            sys.exit(app.return_code or 0)


def _uid(poller: ActivityPoller, given: str) -> str:
    """Return the whole id of a session. Raises `SessionNotFound` or `AmbiguousSessionPrefix`."""
    from agtrace.sessions.query import find_session

    return poller.read(lambda connection: find_session(connection, given).uid)


class _Source:
    def __init__(self, poller: ActivityPoller) -> None:
        self._poller = poller
        self.look, self.wait, self.end = poller.look, poller.wait, poller.end

    def followed(self, uid: str, first_event: int | None) -> Followed | str:
        from agtrace.conversation.items import followed

        home = str(Path.home())
        return self._poller.tried(lambda connection: followed(connection, uid, first_event, home=home))


@click.command("open")
@click.argument("place", metavar="[SESSION[:EVENT]|FILE]", required=False)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port; by default any free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option("--no-dollars", is_flag=True, help="Only tokens, for those who pay by subscription.")
@settings_options
def open_(place: str | None, port: int, no_browser: bool, no_dollars: bool) -> None:
    """Open your sessions in the browser: read them as conversations, search as you type, follow a running one.

    The pages come from this machine and are for this machine: the server listens on loopback, answers only the browser
    that came by the link, loads nothing from the network and changes nothing. The link works once. Ctrl-C ends it.

    \b
      agtrace open
      agtrace open last
      agtrace open fb3cff44:812
      agtrace open src/store.py         who wrote each line, and for which request
    """
    from agtrace.answers.log import silent
    from agtrace.answers.service import Service
    from agtrace.serving.ending import end
    from agtrace.sessions.prices import load as load_prices
    from agtrace.tools.arguments import parse_options
    from agtrace.web.site import path_of, site

    settings = usable()
    load_prices(settings.prices)
    service = Service(settings, refresh_seconds=0.3, log=silent, read=parse_options)
    pages = site(service, port, path_of(service, place), dollars=not no_dollars)
    sys.stdout.write(f"{pages.link(lambda: None)}\n")
    sys.stdout.flush()
    if sys.stderr.isatty():
        tell("the link works once; Ctrl-C ends the server")
    if not no_browser:
        Thread(target=_visit, args=(pages,), daemon=True).start()  # some browsers run in the terminal until they end
    end(pages.serve())


def _visit(pages: Site) -> None:
    from agtrace.web.site import visit

    if not visit(pages):
        tell("no browser could be started: open the link above")
