"""The end of a session, and what comes after it, for somebody who follows it as it goes."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions import events, sessions

from agtrace.problems import SessionNotFound
from agtrace.report.conversation.cleaning import Cleaner
from agtrace.report.conversation.telling import Folded, Item, Part, Passed, told
from agtrace.sessions.query import short_id

_EVENTS = 400
"""The events at the end of a session with which following begins."""

_KEPT = 1_500
"""The most events that are told; the first of them are then left out."""


class Followed(NamedTuple):
    """The end of a session."""

    session_id: str
    first_event: int
    """The first event that is told."""
    items: tuple[Item, ...]
    """Turns, requests, messages, calls and marks, in file order."""
    log_gone: bool


def followed(connection: sqlite3.Connection, uid: str, first_event: int | None, *, home: str) -> Followed:
    """Return a session from an event on; None begins some hundred events before its end. `home` is
    the user's home folder.

    What the agent's program added, and the model's thinking, is left out. Raises `SessionNotFound`.
    """
    session = sessions.with_id(connection, uid)
    if session is None:
        raise SessionNotFound(uid, [])
    last = events.last(connection, session.id)
    last = -1 if last is None else last
    if first_event is None or last - first_event > _KEPT:
        first_event = max(last + 1 - _EVENTS, 0)
    part = Part(first_event, last, None)
    items = told(connection, session, part, Cleaner((home,)))
    shown = tuple(item for item in items if not isinstance(item, (Passed, Folded)))
    return Followed(short_id(connection, uid), first_event, shown, bool(session.gone))
