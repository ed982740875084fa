"""Bare `agtrace` at a terminal: a picker of sessions, which leads to the commands that show, resume and open one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agtrace.commands.asking import usable

if TYPE_CHECKING:
    from agtrace.answers.service import Service
    from agtrace.conversation.items import Followed
    from agtrace.render.picker import Row

_LISTED = 50
"""Sessions in the list."""


def pick(context: click.Context) -> None:
    """Let a person pick a session and what to do with it, or print the help where there is no terminal."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        click.echo(context.get_help())
        context.exit(2)
    from agtrace.answers.log import silent
    from agtrace.answers.service import Service
    from agtrace.render.picker import Picker
    from agtrace.sessions.prices import load as load_prices
    from agtrace.tools.arguments import parse_options

    settings = usable()
    load_prices(settings.prices)
    source = _Source(Service(settings, refresh_seconds=0.3, log=silent, read=parse_options))
    chosen = Picker(source).run()
    if chosen is None:
        return
    from agtrace.commands.export import resume
    from agtrace.commands.watch import open_

    if chosen.command == "resume":
        context.invoke(resume, session=chosen.session_id, run=True, as_json=False)
    elif chosen.command == "open":
        open_.main([chosen.session_id], prog_name="agtrace open", standalone_mode=False)
    else:
        source.show(chosen.session_id)


class _Source:
    """What the picker shows, by the answers that the tools give."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def sessions(self, query: str) -> Sequence[Row] | str:
        from agtrace.render.lists import preview_text
        from agtrace.render.picker import row_of

        tool, given = (
            ("search_event_previews", {"query": query, "limit": _LISTED})
            if query
            else ("list_sessions", {"limit": _LISTED})
        )
        answer = self._service.ask(tool, given)
        if answer.is_error:
            return str(answer.value["error"]["message"])
        data = answer.value["data"]
        if not query:
            return [row_of(session) for session in data["sessions"]]
        about = {session["session_id"]: session for session in data.get("sessions", [])}
        rows: dict[str, Row] = {}
        for match in data["matches"]:
            uid = match["session_id"]
            session = about.get(uid, {"session_id": uid})
            rows.setdefault(uid, row_of(session, preview_text(match["preview"]), match.get("timestamp")))
        return [*rows.values()]

    def show(self, session_id: str) -> None:
        from agtrace.commands.show import show_conversation
        from agtrace.problems import Problem
        from agtrace.settings.environment import pager

        with suppress(Problem):  # it was forgotten since
            asked = dict.fromkeys(("tools", "everything", "thinking", "turns", "no_pager"))
            show_conversation(session_id, None, asked, stays=True)
        if pager()[0] in ("", "cat"):
            click.pause("Press any key to go back to the list.")

    def conversation(self, session_id: str) -> Followed | None:
        from agtrace.conversation.items import followed
        from agtrace.problems import Problem
        from agtrace.sessions.query import find_session

        with suppress(Problem):
            return self._service.read(
                lambda context: followed(
                    context.connection, find_session(context.connection, session_id).uid, None, home=str(Path.home())
                )
            )
        return None
