"""Finds what a request names: sessions by id or prefix, events by index."""

from __future__ import annotations

import sqlite3

from agtrace_indexer.index.questions import events, sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts

from agtrace.problems import AmbiguousSessionPrefix, InvalidEventIndex, SessionNotFound
from agtrace.sessions.references import session_in

SHORTEST_ID = 8
"""The fewest characters of an id that answers show."""

MATCHES_SHOWN = 10
_NEAREST = 3


LAST = "last"
"""What stands for the id of the session in which something happened last."""


def find_session(connection: sqlite3.Connection, given: str) -> Session:
    """Return the session with this id, unambiguous id prefix or `ax://` reference; `last` is the one active last.

    A prefix of an id that several logs share (`X`, `X~2`) means `X`, as it did before the second log appeared.

    Raises `SessionNotFound` or `AmbiguousSessionPrefix`.
    """
    prefix = session_in(given.strip())
    exact = sessions.with_id(connection, prefix)
    if exact is not None:
        return exact
    if prefix == LAST and (latest := sessions.latest(connection)) is not None:
        return latest
    found = sessions.with_prefix(connection, prefix, MATCHES_SHOWN)
    if not prefix or not found:
        raise SessionNotFound(given, _nearest_ids(connection, prefix))
    total = sessions.count_with_prefix(connection, prefix)
    if total > 1 + sessions.count_with_prefix(connection, f"{found[0].uid}~"):
        raise AmbiguousSessionPrefix(given, [short_id(connection, session.uid) for session in found], total)
    return found[0]


def short_id(connection: sqlite3.Connection, uid: str) -> str:
    """Return as many characters of an id as distinguish it from every other, at least 8."""
    shared = max(_shared_beginning(uid, other or "") for other in sessions.neighbours(connection, uid))
    return uid[: max(SHORTEST_ID, shared + 1)]


def find_event(connection: sqlite3.Connection, session: Session, event_index: int) -> StoredEvent:
    """Return one event of a session. Raises `InvalidEventIndex` before the first and after the last one."""
    event = events.at(connection, session.id, event_index)
    if event is None:
        last = events.last(connection, session.id)
        raise InvalidEventIndex(short_id(connection, session.uid), event_index, last or 0)
    return with_texts(connection, [event])[0]


def last_event_of(connection: sqlite3.Connection, session: Session) -> int:
    """Return the index of a session's newest event, which marks the snapshot for all pages; -1 if it has none."""
    last = events.last(connection, session.id)
    return -1 if last is None else last


def _shared_beginning(one: str, other: str) -> int:
    """Return the length of the common prefix of two ids."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _nearest_ids(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the ids with the longest common prefix; none if it is shorter than 3 characters."""
    for length in range(len(prefix) - 1, 2, -1):
        found = sessions.ids_with_prefix(connection, prefix[:length], _NEAREST)
        if found:
            return [short_id(connection, uid) for uid in found]
    return []
