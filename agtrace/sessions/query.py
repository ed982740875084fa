"""Reading rows of the index: sessions by id or prefix, events with their texts."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.texts.blocks import BlockText, unpack
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

from agtrace.problems import AmbiguousSessionPrefix, InvalidEventIndex, SessionNotFound
from agtrace.sessions.references import session_in

SHORTEST_ID = 8
"""Characters of an id that answers show at least."""

MATCHES_SHOWN = 10
_NEAREST = 3

EVENT = """
SELECT e.*, n.text AS name FROM event e LEFT JOIN name n ON n.id = e.name_id
"""
"""The rows of events (alias e), with their name (alias n)."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the index with its texts."""

    row: sqlite3.Row
    text: str
    rest: dict[str, Any]
    """What its text doesn't say."""

    @property
    def event_index(self) -> int:
        """Its place in the session."""
        return int(self.row["event_index"])

    @property
    def type(self) -> EventType:
        """Its type."""
        return EVENT_TYPE_CODES[int(self.row["type"])]

    @property
    def outcome(self) -> Outcome | None:
        """How the tool execution ended; None for what is no tool execution. A call without a result is unknown."""
        code = self.row["outcome"]
        if code is None:
            return Outcome.UNKNOWN if self.type == EventType.TOOL_CALL else None
        return OUTCOME_CODES[int(code)]


def find_session(connection: sqlite3.Connection, given: str) -> Session:
    """The session with this id or unambiguous prefix of an id, or the one that an `ax://` reference is about.

    A prefix of an id that several logs share (`X`, `X~2`) is one of `X`: so it was before the second log came.

    Raises `SessionNotFound` or `AmbiguousSessionPrefix`.
    """
    prefix = session_in(given.strip())
    exact = sessions.with_id(connection, prefix)
    if exact is not None:
        return exact
    found = sessions.with_prefix(connection, prefix, MATCHES_SHOWN)
    if not prefix or not found:
        raise SessionNotFound(given, _nearest_ids(connection, prefix))
    total = sessions.count_with_prefix(connection, prefix)
    if total > 1 + sessions.count_with_prefix(connection, f"{found[0].uid}~"):
        raise AmbiguousSessionPrefix(given, [short_id(connection, session.uid) for session in found], total)
    return found[0]


def short_id(connection: sqlite3.Connection, uid: str) -> str:
    """As many characters of an id as tell it apart from every other, at least 8."""
    shared = max(_shared_beginning(uid, other or "") for other in sessions.neighbours(connection, uid))
    return uid[: max(SHORTEST_ID, shared + 1)]


def find_event(connection: sqlite3.Connection, session: Session, event_index: int) -> StoredEvent:
    """One event of a session. Raises `InvalidEventIndex` before the first and beyond the last one."""
    row = connection.execute(
        f"{EVENT} WHERE e.session_id = ? AND e.event_index = ?", (session.id, event_index)
    ).fetchone()
    if row is None:
        last = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", (session.id,))
        raise InvalidEventIndex(short_id(connection, session.uid), event_index, last.fetchone()[0] or 0)
    return with_texts(connection, [row])[0]


def with_texts(connection: sqlite3.Connection, rows: list[sqlite3.Row]) -> list[StoredEvent]:
    """Add the texts to rows of `event` (with their name), opening each block once."""
    blocks: dict[int, tuple[int, BlockText, list[Any]]] = {}
    events = []
    for row in rows:
        block = connection.execute(
            "SELECT id, first_index FROM block WHERE session_id = ? AND first_index <= ? "
            "ORDER BY first_index DESC LIMIT 1",
            (row["session_id"], row["event_index"]),
        ).fetchone()
        if block["id"] not in blocks:
            ends, text, rest = connection.execute(
                "SELECT ends, text, payload FROM block_data WHERE block_id = ?", (block["id"],)
            ).fetchone()
            blocks[block["id"]] = (block["first_index"], BlockText.of(ends, text), orjson.loads(unpack(rest)))
        first, texts, rests = blocks[block["id"]]
        number = row["event_index"] - first
        events.append(StoredEvent(row, texts.text(number), rests[number] or {}))
    return events


def last_event_of(connection: sqlite3.Connection, session: Session) -> int:
    """The newest event of a session: its index is the snapshot of a walk; -1 where there is none."""
    found = connection.execute("SELECT max(event_index) FROM event WHERE session_id = ?", (session.id,)).fetchone()
    return -1 if found[0] is None else int(found[0])


def iso(milliseconds: int | None) -> str | None:
    """Write a time as ISO 8601 in UTC, to the second, its year of four digits; None and 0 are unknown."""
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None).isoformat() + "Z"
    except (OverflowError, ValueError, OSError):
        return None


def _shared_beginning(one: str, other: str) -> int:
    """How many characters two ids share from their beginning on."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _nearest_ids(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Ids that begin alike, longest common beginning first; none if not even 3 characters agree."""
    for length in range(len(prefix) - 1, 2, -1):
        found = sessions.ids_with_prefix(connection, prefix[:length], _NEAREST)
        if found:
            return [short_id(connection, uid) for uid in found]
    return []
