"""Search: the events whose searchable text contains the query, newest first.

A hit is a case-insensitive substring (A to Z are folded, other letters are not), in the redacted
text of an event. The blocks are scanned from the newest on, and the scan stops when no older block
can hold a newer hit: the result equals a scan of all stored events, ordered by (time, event id).
"""

from __future__ import annotations

import heapq
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from agtrace_indexer.blocks import BlockText
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace.problems import SearchTimeout
from agtrace.query import PROJECTS_BY_HASH

TIMEOUT_SECONDS = 30.0
"""A search is stopped after this (R-119)."""

_END_OF_TIME = 1 << 62

_BLOCKS = """
SELECT b.session_id, b.first_index, b.event_count, b.t1, d.ends, d.text
FROM block b JOIN block_data d ON d.block_id = b.id
WHERE b.t0 <= :newest AND b.t1 >= :since {sessions}
ORDER BY b.t1 DESC, b.id DESC
"""

_EVENTS = """
SELECT e.id, e.session_id, e.event_index, e.ts
FROM event e
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last
  AND e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by > :snapshot)
  AND e.ts BETWEEN :since AND :until {filters}
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """What restricts a search; None restricts nothing. Times are milliseconds since 1970 UTC."""

    session_row: int | None = None
    provider: str | None = None
    project_hash: str | None = None
    """The beginning of the hash."""
    event_type: EventType | None = None
    tool: str | None = None
    failed: bool | None = None
    since: int | None = None
    until: int | None = None


class Place(NamedTuple):
    """Where a page ends: behind the event with this time and id."""

    ts: int
    event_id: int


@dataclass(frozen=True, slots=True)
class Hit:
    """An event that contains the query."""

    session_row: int
    event_index: int
    event_id: int
    ts: int

    @property
    def place(self) -> Place:
        """Its place in the order of results."""
        return Place(self.ts, self.event_id)


@dataclass(frozen=True, slots=True)
class Hits:
    """A page of hits, newest first."""

    hits: list[Hit]
    more: bool
    found: int
    """Hits behind the given place that the scan has seen."""
    complete: bool
    """Whether `found` counts all of them."""


def snapshot_of(connection: sqlite3.Connection) -> int:
    """The mark of what the index holds now: the newest event's id."""
    return connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0]  # type: ignore[no-any-return]


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters,
    limit: int,
    *,
    snapshot: int,
    behind: Place | None = None,
    deadline: float | None = None,
) -> Hits:
    """Find the newest `limit` events of the snapshot that contain the query, behind a place.

    An empty query finds every event that passes the filters. `deadline` is on the monotonic clock;
    raises `SearchTimeout` when it passes.
    """
    scan = _Scan(connection, fold(query), filters, snapshot, behind or Place(_END_OF_TIME, 0))
    stop = time.monotonic() + TIMEOUT_SECONDS if deadline is None else deadline
    newest: list[tuple[int, int, int, int]] = []
    found, complete = 0, True
    for block in scan.blocks():
        if len(newest) > limit and newest[0][0] > block["t1"]:
            complete = False
            break
        if time.monotonic() > stop:
            raise SearchTimeout(TIMEOUT_SECONDS)
        for row in scan.hits(block):
            found += 1
            hit = (row["ts"], row["id"], row["session_id"], row["event_index"])
            heapq.heappush(newest, hit) if len(newest) <= limit else heapq.heappushpop(newest, hit)
    page = [Hit(session, index, event_id, ts) for ts, event_id, session, index in sorted(newest, reverse=True)]
    return Hits(page[:limit], len(page) > limit, found, complete)


def fold(query: str) -> bytes:
    """A query as it is compared: UTF-8, A to Z as a to z, NUL by its symbol as in the stored texts."""
    return query.replace("\x00", "\u2400").encode("utf-8", "replace").lower()


@dataclass(slots=True)
class _Scan:
    connection: sqlite3.Connection
    query: bytes
    filters: Filters
    snapshot: int
    behind: Place

    def blocks(self) -> Iterator[sqlite3.Row]:
        """The blocks that can hold hits, newest first."""
        condition, arguments = self._sessions()
        newest = min(self.behind.ts, self._until)
        named = {"newest": newest, "since": self._since, **arguments}
        return self.connection.execute(_BLOCKS.format(sessions=condition), named)

    def hits(self, block: sqlite3.Row) -> list[sqlite3.Row]:
        """The events of a block that contain the query, pass the filters and lie behind the place."""
        numbers = set(matching(BlockText.of(block["ends"], block["text"]), self.query))
        if not numbers:
            return []
        first = block["first_index"]
        condition, arguments = self._events()
        named = {
            "session": block["session_id"],
            "first": first + min(numbers),
            "last": first + max(numbers),
            "snapshot": self.snapshot,
            "since": self._since,
            "until": min(self._until, self.behind.ts),
            **arguments,
        }
        rows = self.connection.execute(_EVENTS.format(filters=condition), named)
        return [row for row in rows if row["event_index"] - first in numbers and (row["ts"], row["id"]) < self.behind]

    @property
    def _since(self) -> int:
        return -_END_OF_TIME if self.filters.since is None else self.filters.since

    @property
    def _until(self) -> int:
        return _END_OF_TIME if self.filters.until is None else self.filters.until

    def _sessions(self) -> tuple[str, dict[str, Any]]:
        wanted = self.filters
        conditions: list[str] = []
        arguments: dict[str, Any] = {}
        if wanted.session_row is not None:
            conditions.append("s.id = :session_row")
            arguments["session_row"] = wanted.session_row
        if wanted.provider is not None:
            conditions.append("s.provider = :provider")
            arguments["provider"] = wanted.provider
        if wanted.project_hash is not None:
            conditions.append(f"s.project_id IN ({PROJECTS_BY_HASH})")
            arguments["hash"] = wanted.project_hash.lower()
        if not conditions:
            return "", {}
        return f"AND b.session_id IN (SELECT id FROM session s WHERE {' AND '.join(conditions)})", arguments

    def _events(self) -> tuple[str, dict[str, Any]]:
        wanted = self.filters
        conditions: list[str] = []
        arguments: dict[str, Any] = {}
        if wanted.event_type is not None:
            conditions.append("AND e.type = :type")
            arguments["type"] = TYPE_CODE[wanted.event_type]
        if wanted.tool is not None:
            conditions.append(
                "AND e.type IN (:call, :result) "
                "AND e.name_id IN (SELECT id FROM name WHERE text = :tool COLLATE NOCASE)"
            )
            arguments |= {
                "tool": wanted.tool,
                "call": TYPE_CODE[EventType.TOOL_CALL],
                "result": TYPE_CODE[EventType.TOOL_RESULT],
            }
        if wanted.failed is not None:
            conditions.append("AND e.outcome IS " + (":failed" if wanted.failed else "NOT :failed"))
            arguments["failed"] = OUTCOME_CODE[Outcome.FAILED]
        return " ".join(conditions), arguments


def matching(block: BlockText, query: bytes) -> Iterator[int]:
    """The numbers of the events of a block whose text contains the folded query."""
    if not query:
        yield from range(len(block.ends))
        return
    data = block.data.lower()
    position = data.find(query)
    while position >= 0:
        number = block.event_at(position)
        yield number
        position = data.find(query, block.ends[number])
