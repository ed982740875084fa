"""Where a page is, for what a user names at the command line."""

from __future__ import annotations

from urllib.parse import quote

from agtrace_schema.patterns import later

from agtrace.answers.desk import Answers
from agtrace.sessions.query import find_event, find_session, short_id
from agtrace.tools.tool import Context

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
