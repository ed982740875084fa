"""Search: the events whose searchable text answers the query, newest first.

The newest blocks are read first: what is common fills its page there. Then the word index names the blocks that may
hold the text, and those are read, newest first; without it all are. Reading stops when no older block can hold a newer
hit. The result equals a scan of all stored events, ordered by (time, event id).
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

from agtrace_indexer.blocks import BlockText
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome

from agtrace.candidates import Places, candidates
from agtrace.deadline import Deadline
from agtrace.matching import Contains, Matcher
from agtrace.query import PROJECTS_BY_HASH

_PROBED = 16
"""Blocks that are read before words are asked for: common texts fill their page there, in 2 ms."""

_READ_ON = 256
"""Blocks that are read without asking for words if the hits come so often that the page is full by then: 20 ms."""

_WORTH_A_SECOND_LOOK = 1_000
"""Blocks to be read from which on it is quicker to ask the word index thoroughly, which takes up to 100 ms."""

_FEW = 64
"""Blocks, beyond those, that are read without asking for words where there are no more."""

_COUNTED_ON = 32
"""Blocks that are read beyond a full page where that makes the count of hits exact."""

_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 50_000
"""Of SQLite's virtual machine: about 1 ms."""

_END_OF_TIME = 1 << 62

_BLOCKS = """
SELECT b.id, b.session_id, b.first_index, b.event_count, b.t1
FROM block b {index}
WHERE b.t0 <= :newest AND b.t1 >= :since {conditions}
ORDER BY b.t1 DESC, b.id DESC
"""

_EVENTS = """
SELECT e.id, e.session_id, e.event_index, e.ts
FROM event e
WHERE e.session_id = :session AND e.event_index BETWEEN :first AND :last
  AND e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by > :snapshot)
  AND e.ts BETWEEN :since AND :until {conditions}
"""

_OF_PROJECT = f"b.session_id IN (SELECT id FROM session WHERE project_id IN ({PROJECTS_BY_HASH}))"
_OF_PROVIDER = "b.session_id IN (SELECT id FROM session WHERE provider = :provider)"
_NAMED = "IN (SELECT id FROM name WHERE text = :tool COLLATE NOCASE)"
_HAS_TOOL = f"EXISTS (SELECT 1 FROM block_tool t WHERE t.block_id = b.id AND t.name_id {_NAMED})"
_IS_OF_TOOL = f"e.name_id {_NAMED} AND e.type IN ({TYPE_CODE[EventType.TOOL_CALL]}, {TYPE_CODE[EventType.TOOL_RESULT]})"
_FAILED = f"e.outcome = {OUTCOME_CODE[Outcome.FAILED]}"
_HAS_FAILED = (
    "EXISTS (SELECT 1 FROM event e WHERE e.session_id = b.session_id AND e.event_index >= b.first_index "
    f"AND e.event_index < b.first_index + b.event_count AND {_FAILED})"
)


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

    def of_blocks(self) -> tuple[list[str], dict[str, Any]]:
        """What blocks with such events fulfil, as SQL over `block` b, with its arguments."""
        return _given(
            (self.session_row, "b.session_id = :session_row", {"session_row": self.session_row}),
            (self.provider, _OF_PROVIDER, {"provider": self.provider}),
            (self.project_hash, _OF_PROJECT, {"hash": (self.project_hash or "").lower()}),
            (self.event_type, "b.types & :type", {"type": 1 << TYPE_CODE[self.event_type] if self.event_type else 0}),
            (self.tool, _HAS_TOOL, {"tool": self.tool}),
            (self.failed or None, _HAS_FAILED, {}),
        )

    def of_events(self) -> tuple[list[str], dict[str, Any]]:
        """What such events fulfil beyond that, as SQL over `event` e, with its arguments."""
        return _given(
            (self.event_type, "e.type = :type", {"type": TYPE_CODE[self.event_type] if self.event_type else 0}),
            (self.tool, _IS_OF_TOOL, {"tool": self.tool}),
            (self.failed, _FAILED if self.failed else f"({_FAILED}) IS NOT 1", {}),
        )


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
    query: str | Matcher,
    filters: Filters,
    limit: int,
    *,
    snapshot: int,
    behind: Place | None = None,
    deadline: Deadline | None = None,
) -> Hits:
    """Find the newest `limit` events of the snapshot that answer the query, behind a place.

    A text is looked for as it stands; an empty one finds every event that passes the filters. To be called within
    one read transaction. Raises `SearchTimeout` when the deadline passes.
    """
    matcher = Contains(query) if isinstance(query, str) else query
    deadline = deadline or Deadline()
    newest = _Newest(limit + 1)
    scan = _Scan(connection, matcher, filters, snapshot, behind or Place(_END_OF_TIME, 0), deadline, newest)
    with _interrupted(connection, deadline):
        for block, left in scan.blocks():
            if newest.full and newest.oldest > block["t1"] and (left is None or left > _COUNTED_ON):
                newest.complete = False
                break
            deadline.check()
            newest.add(scan.hits(block))
    hits = newest.hits
    return Hits(hits[:limit], len(hits) > limit, newest.found, newest.complete)


@contextmanager
def _interrupted(connection: sqlite3.Connection, deadline: Deadline) -> Iterator[None]:
    """Let SQLite give up at a deadline, wherever it is. Raises `SearchTimeout` then."""
    connection.set_progress_handler(lambda: deadline.passed, _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK)
    try:
        yield
    except sqlite3.OperationalError:
        deadline.check()
        raise
    finally:
        connection.set_progress_handler(None, 0)


class _Newest:
    """The newest hits of those that were seen."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._heap: list[tuple[int, int, int, int]] = []
        self.found = 0
        self.complete = True

    def add(self, rows: list[sqlite3.Row]) -> None:
        """Take up hits."""
        for row in rows:
            hit = (row["ts"], row["id"], row["session_id"], row["event_index"])
            heapq.heappush(self._heap, hit) if not self.full else heapq.heappushpop(self._heap, hit)
        self.found += len(rows)

    @property
    def full(self) -> bool:
        """Whether only newer hits are still of use."""
        return len(self._heap) == self.most

    @property
    def oldest(self) -> int:
        """The time of the oldest of them."""
        return self._heap[0][0]

    @property
    def hits(self) -> list[Hit]:
        """All of them, newest first."""
        return [Hit(session, index, event, ts) for ts, event, session, index in sorted(self._heap, reverse=True)]


@dataclass(slots=True)
class _Scan:
    connection: sqlite3.Connection
    matcher: Matcher
    filters: Filters
    snapshot: int
    behind: Place
    deadline: Deadline
    page: _Newest
    """The hits so far: how often they come tells how to go on."""
    places: Places = field(default_factory=dict)
    """Where in which blocks the query can stand, if the word index was asked."""

    def blocks(self) -> Iterator[tuple[sqlite3.Row, int | None]]:
        """The blocks that can hold hits, newest first, and how many of them are left, where that is known."""
        newest = self._select(self._way)
        first = newest.fetchmany(_PROBED + _FEW)
        if len(first) < _PROBED + _FEW:
            yield from ((block, len(first) - number) for number, block in enumerate(first))
            return
        rest = chain(first, newest)
        seen: set[int] = set()
        while (count := self._to_probe(len(seen))) and (probed := list(islice(rest, count))):
            seen.update(block["id"] for block in probed)
            yield from ((block, None) for block in probed)
        for thorough in (False, True) if self.matcher.literal else ():
            places = candidates(self.connection, self.matcher.literal, thorough=thorough)
            if places is None:
                break
            self.places = {block: where for block, where in places.items() if block not in seen}
            chosen = self._select("NOT INDEXED", list(self.places)).fetchall()
            for number, block in enumerate(chosen):
                if not thorough and number == _READ_ON and self._to_read(number, len(chosen)) > _WORTH_A_SECOND_LOOK:
                    break
                seen.add(block["id"])
                yield block, len(chosen) - number
            else:
                return
        yield from ((block, None) for block in rest)

    def hits(self, block: sqlite3.Row) -> list[sqlite3.Row]:
        """The events of a block that answer the query, pass the filters and lie behind the place."""
        first, last = block["first_index"], block["first_index"] + block["event_count"] - 1
        conditions, arguments = self.filters.of_events()
        rows = self._events(block, first, last, conditions, arguments) if conditions else None
        if rows == []:
            return []  # before the block is opened
        numbers = self._matching(block)
        if not numbers:
            return []
        if rows is None:
            rows = self._events(block, first + min(numbers), first + max(numbers), [], {})
        return [row for row in rows if row["event_index"] - first in numbers and (row["ts"], row["id"]) < self.behind]

    def _to_read(self, read: int, blocks: int) -> int:
        """How many blocks more will probably be read until the page is full."""
        return min(read * self.page.most // self.page.found if self.page.found else blocks, blocks) - read

    def _to_probe(self, probed: int) -> int:
        """How many blocks more are worth reading before words are asked for."""
        if not probed:
            return _PROBED
        more = self._to_read(probed, _READ_ON)
        return max(more, _PROBED) if probed + more < _READ_ON else 0

    def _select(self, way: str, chosen: list[int] | None = None) -> sqlite3.Cursor:
        """The blocks that pass the filters, newest first."""
        conditions, arguments = self.filters.of_blocks()
        arguments |= {"newest": min(self.behind.ts, self._until), "since": self._since, "chosen": json.dumps(chosen)}
        if chosen is not None:
            conditions.append("b.id IN (SELECT value FROM json_each(:chosen))")
        return self.connection.execute(_BLOCKS.format(index=way, conditions=_and(conditions)), arguments)

    def _matching(self, block: sqlite3.Row) -> set[int]:
        """The numbers of the events of a block that answer the query."""
        row = self.connection.execute("SELECT ends, text FROM block_data WHERE block_id = ?", (block["id"],)).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("the index is damaged: a block has no text")
        return self.matcher.numbers(BlockText.of(*row), self.places.get(block["id"]), self.deadline)

    def _events(
        self, block: sqlite3.Row, first: int, last: int, conditions: list[str], arguments: dict[str, Any]
    ) -> list[sqlite3.Row]:
        named = {
            "session": block["session_id"],
            "first": first,
            "last": last,
            "snapshot": self.snapshot,
            "since": self._since,
            "until": min(self._until, self.behind.ts),
            **arguments,
        }
        return self.connection.execute(_EVENTS.format(conditions=_and(conditions)), named).fetchall()

    @property
    def _way(self) -> str:
        """How SQLite is to go through the blocks: by their time, unless one session's are few."""
        return "INDEXED BY block_newest" if self.filters.session_row is None else "INDEXED BY block_place"

    @property
    def _since(self) -> int:
        return -_END_OF_TIME if self.filters.since is None else self.filters.since

    @property
    def _until(self) -> int:
        return _END_OF_TIME if self.filters.until is None else self.filters.until


def _and(conditions: list[str]) -> str:
    return "".join(f" AND {condition}" for condition in conditions)


def _given(*wanted: tuple[Any, str, dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """The conditions with their arguments that belong to a value, where there is one."""
    conditions: list[str] = []
    arguments: dict[str, Any] = {}
    for value, condition, named in wanted:
        if value is not None:
            conditions.append(condition)
            arguments |= named
    return conditions, arguments
