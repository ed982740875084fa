"""`agtrace open`: read and search sessions in the browser."""

from __future__ import annotations

import sys
from threading import Thread
from typing import TYPE_CHECKING

import click

from agtrace.commands.asking import usable
from agtrace.commands.errors import tell
from agtrace.commands.options import settings_options

if TYPE_CHECKING:
    from agtrace.serving.web.site import Site


@click.command("open")
@click.argument("place", metavar="[SESSION[:EVENT]]", required=False)
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
    """
    from agtrace.answers.desk import Answers
    from agtrace.answers.log import silent
    from agtrace.serving.ending import end
    from agtrace.serving.web.answering import path_of
    from agtrace.serving.web.site import site
    from agtrace.sessions.prices import load as load_prices
    from agtrace.tools.arguments import parse_options

    settings = usable()
    load_prices(settings.prices)
    desk = Answers(settings, refresh_seconds=0.3, log=silent, read=parse_options)
    pages = site(desk, port, path_of(desk, place), dollars=not no_dollars)
    sys.stdout.write(f"{pages.link(lambda: None)}\n")
    sys.stdout.flush()
    if sys.stderr.isatty():
        tell("the link works once; Ctrl-C ends the server")
    if not no_browser:
        Thread(target=_visit, args=(pages,), daemon=True).start()  # some browsers run in the terminal until they end
    end(pages.serve())


def _visit(pages: Site) -> None:
    from agtrace.serving.web.site import visit

    if not visit(pages):
        tell("no browser could be started: open the link above")
