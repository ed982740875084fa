"""Conversations within a report's page: those of its worst sessions, each cut to a size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.analysis import ReportedSession

from agtrace.problems import Problem
from agtrace.report.conversation.as_page import turns
from agtrace.report.conversation.cleaning import Cleaner, home_in
from agtrace.report.conversation.telling import Execution, Item, Mark, Part, told
from agtrace.sessions.query import find_session, last_event_of

MOST_CONVERSATIONS = 10
"""The most conversations in a page; those of the sessions with the lowest scores."""

MOST_BYTES = 300_000
"""The largest size of one conversation in a page."""

_LONGEST = 4_000
"""Characters of a call's arguments, and of its result, that are shown."""


def conversations(connection: sqlite3.Connection, sessions: Sequence[ReportedSession], home: str) -> dict[str, str]:
    """Return the markup of the conversations of the worst sessions, by the sessions' ids; `home` is the user's folder.

    Sessions are given the worst first, and those without a score have none.
    """
    worst = [session for session in sessions if session.score is not None][:MOST_CONVERSATIONS]
    return {
        session.session_id: "".join(_told(connection, session.session_id, home, f"talk-{number}-"))
        for number, session in enumerate(worst)
    }


def _told(connection: sqlite3.Connection, session_id: str, home: str, prefix: str) -> Iterator[str]:
    try:
        session = find_session(connection, session_id)
    except Problem:
        return  # forgotten while the report was made
    cleaner = Cleaner((home, home_in(session.cwd), home_in(session.root_path)))
    items = told(connection, session, Part(0, last_event_of(connection, session), None), cleaner)
    yield from turns(AGENTS[session.provider].title, _within(items, session_id), prefix)


def _within(items: Iterator[Item], session_id: str) -> Iterator[Item]:
    """Yield items, their long texts cut, until together they are too large."""
    size = 0
    for item in items:
        shown = _cut(item) if isinstance(item, Execution) else item
        size += sum(len(value) for value in chain(shown) if isinstance(value, str))
        if size > MOST_BYTES:
            yield Mark(f"the rest was left out to keep this file small: agtrace show {session_id}")
            return
        yield shown


def _cut(item: Execution) -> Execution:
    return item._replace(given=_beginning(item.arguments), result=item.result and _beginning(item.result))


def _beginning(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]}\n... {left:,} more characters"
