"""OpenCode's database: tables `session`, `message`, `part`, since 2.0 `session_v2` and `session_message` (README.md).

A session of 1.x is in the newer tables as well once 2.0 has moved it: their rows that repeat messages are left out.

Rows are rewritten in place and deleted, so each message has a fingerprint: how many parts it has, their sizes, and when
they were last changed. Messages whose fingerprint is another one are read again as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os.path import basename
from typing import Any, NamedTuple

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import digest
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.foreign_database import Question, ask, columns_of
from agtrace_indexer.providers.opencode.parser import (
    HEAD,
    LONGEST,
    LONGEST_MESSAGE,
    followed,
    known_as,
    message_of,
    message_record,
    print_of,
    said_by,
    value_of,
    written,
)
from agtrace_indexer.providers.provider import LogInside, Row

_NEEDED = {
    "session": {"id", "directory", "version"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
"""The tables and columns of 1.x."""

_NEWER = {"id", "session_id", "type", "seq", "data"}
"""The columns of `session_message`, without which a database that lacks those of 1.x isn't OpenCode's."""

_FACTS = {
    "id": "id", "parent_id": "parentID", "directory": "directory", "title": "title", "version": "version",
    "agent": "agent", "fork_session_id": "forkID",
}  # fmt: skip
"""The columns of `session` and `session_v2` that say something, and their names in its JSON."""

_IMPORTED = ("external_import", "claude_import")
"""MiMo Code's tables of sessions that it copied from other agents, whose own logs are read."""

_RECENT = 64
"""The number of sessions, newest first, whose rows are looked at in each listing.

A session's row is written when a request begins and ends, but not whenever a part changes meanwhile. Looking at all
rows of a database of a gigabyte would take a second; counting them takes an index.
"""

_AT_ONCE = 400
"""The most messages that are read with one query."""

_BATCH = 4 * 1024 * 1024
"""Bytes of messages after which they are passed on."""


class _Message(NamedTuple):
    """A row that is to become a record."""

    table: str
    id: str
    number: int
    """Its rowid."""
    size: int
    """Of its data and those of its parts, in characters."""
    print: int
    """Its fingerprint."""
    followed: bool

    @property
    def known(self) -> str:
        """What it is called in states."""
        return known_as(self.id)


class _Tables:
    """The tables of a database, with their columns."""

    def __init__(self, path: str) -> None:
        self._columns = columns_of(path)
        missing = [table for table, needed in _NEEDED.items() if not needed <= self._columns[table]]
        moved = self.has("session_v2", "directory") or not (self.has("message") or self.has("part"))
        self.newer, self.older = self._columns["session_message"] >= _NEWER and (moved or not missing), not missing
        self.sessions = [table for table in ("session", "session_v2") if self.has(table, "directory")]
        if not self.sessions or not (self.newer or self.older):
            raise OSError(0, f"its tables aren't those of OpenCode 1.2 to 2.0 ({', '.join(missing)}): not read")
        self.messages = [*(("message", "part") if self.older else ()), *(("session_message",) if self.newer else ())]

    def has(self, table: str, column: str = "id") -> bool:
        """Whether there is a table with a column."""
        return column in self._columns[table]

    def column(self, table: str, name: str) -> str:
        """Return an expression for a column that not every version has."""
        return f"{table}.{name}" if self.has(table, name) else "0"

    @property
    def own(self) -> str:
        """A condition on `session`: those that weren't copied from another agent."""
        copied = [table for table in _IMPORTED if self.has(table, "session_id")]
        return " AND ".join(
            ["1", *(f"id NOT IN (SELECT session_id FROM {table} WHERE session_id IS NOT NULL)" for table in copied)]
        )


# --- which sessions there are ---


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session, which has changed if its row has, or if there are more rows, or fewer, or newer."""
    path = container.path
    tables = _Tables(path)
    found = ask(path, *_listing(tables))
    told: dict[str, list[Any]] = {}
    for rows in found[: len(tables.sessions)]:
        for session, *facts in rows:
            told.setdefault(str(session), []).append(facts)
    counts = {table: dict(rows) for table, rows in zip(tables.messages, found[len(tables.sessions) :], strict=False)}
    stamps: dict[str, list[Any]] = {}
    for rows in found[len(tables.sessions) + len(tables.messages) :]:
        for session, *newest in rows:
            stamps.setdefault(session, []).append(newest)
    size = sum(file.size for file in container.files)
    total = sum(sum(counted.values()) for counted in counts.values()) or 1
    for session, facts in told.items():
        own = [counted.get(session, 0) for counted in counts.values()]
        yield LogInside(session, digest(repr((facts, own, stamps.get(session)))), 1 + size * sum(own) // total)


def _listing(tables: _Tables) -> Iterator[Question]:
    for table in tables.sessions:
        facts = ", ".join(tables.column(table, name) for name in (*_FACTS, "time_updated"))
        yield f"SELECT id, {facts} FROM {table} WHERE {tables.own} AND id > '' AND id NOT LIKE '%/%'", ()
    for table in tables.messages:
        yield f"SELECT session_id, count(*) FROM {table} GROUP BY session_id", ()
    if tables.has("event_sequence", "aggregate_id"):
        yield "SELECT aggregate_id, seq FROM event_sequence", ()
    for table in tables.messages:
        sessions = tables.sessions[-1 if table == "session_message" else 0]
        if tables.has(sessions, "time_updated") and tables.has(table, "time_updated"):
            recent = f"SELECT id FROM {sessions} ORDER BY time_updated DESC LIMIT {_RECENT}"
            sums = "max(time_updated), sum(time_updated % 1000003)"
            yield f"SELECT session_id, {sums} FROM {table} WHERE session_id IN ({recent}) GROUP BY session_id", ()


# --- what is in one ---


def rows(found: Found, position: Any) -> Iterable[Row]:
    """Yield a record of the messages that vanished, one of the session, then the messages that changed, in order."""
    path, session = found.container, basename(found.path)
    tables = _Tables(path)
    questions = [
        (
            f"SELECT rowid, {', '.join(tables.column(table, name) for name in _FACTS)} FROM {table} WHERE id = ?",
            (session,),
        )
        for table in tables.sessions
    ]
    *heads, older, newer = ask(path, *questions, *_prints(tables, session))
    told = [row for rows in heads for row in rows][-1:]
    repeated = _repeated(path, session) if older and newer else set()
    messages = [*_messages("message", older)]
    messages += [message for message in _messages("session_message", newer) if message.id not in repeated]
    facts: str
    known: dict[str, int]
    facts, known = position or ("", {})
    present = {message.known for message in messages}
    gone = sorted(known.keys() - present)
    if gone:
        known = {id: print for id, print in known.items() if id in present}
        yield Row(0, written({"removed": gone}), (facts, known))
    for number, *values in told:
        record = dict(zip(_FACTS.values(), map(_plain, values), strict=True))
        if (now := digest(repr(record))) != facts:
            facts = now
            yield Row(number, written({"session": record}), (facts, known))
    for message, data in _read(path, [message for message in messages if known.get(message.known) != message.print]):
        known[message.known] = message.print
        yield Row(message.number, data, (facts, known))


def _prints(tables: _Tables, session: str) -> Iterator[Question]:
    """Return the queries for the fingerprints of messages of 1.x and since 2.0."""
    part, message = (tables.column(table, "time_updated") for table in ("part", "message"))
    created = tables.column("message", "time_created")
    older = (
        f"SELECT message.id, message.rowid, {message}, coalesce(length(message.data), 0), "
        'instr(message.data, \'"role":"assistant"\') > 0, coalesce(n, 0), coalesce(newest, 0), coalesce(size, 0) '
        f"FROM message LEFT JOIN (SELECT message_id, count(*) n, max({part}) newest, "
        "sum(coalesce(length(data), 0)) size FROM part WHERE session_id = :session GROUP BY message_id) "
        f"ON message_id = message.id WHERE session_id = :session ORDER BY {created}, message.id"
    )
    newer = (
        f"SELECT id, rowid, {tables.column('session_message', 'time_updated')}, coalesce(length(data), 0), "
        "type = 'assistant' FROM session_message WHERE session_id = :session ORDER BY seq"
    )
    yield older if tables.older else "SELECT 1 WHERE 0", {"session": session}
    yield newer if tables.newer else "SELECT 1 WHERE 0", {"session": session}


def _messages(table: str, listed: Sequence[tuple[Any, ...]]) -> Iterator[_Message]:
    later = followed(bool(row[4]) for row in listed)
    for (id, number, *told), past in zip(listed, later, strict=True):
        yield _Message(table, str(id), number, told[1] + told[-1], print_of(told, past), past)


def _repeated(path: str, session: str) -> set[str]:
    """Return the ids of rows that repeat messages of 1.x: by their id, or by who says what.

    What a session was moved with begins with its first message: without that, equal texts are said again.
    """
    older, parts, newer = ask(
        path,
        ("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)),
        ("SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY message_id, id", (session,)),
        ("SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq", (session,)),
    )
    held: dict[Any, list[Record]] = {}
    for message, id, data in parts:
        held.setdefault(message, []).append(value_of(_value(0, data)[0], id=id))
    ids = {str(id) for id, _ in older}
    said = [said_by(value_of(_value(0, data)[0]), held.get(id, [])) for id, data in older]
    told = {}
    for id, kind, data in newer:
        if (message := message_of({"id": id, "type": kind}, value_of(_value(0, data)[0]))) is not None:
            told[str(id)] = said_by(*message)
    left = Counter(said if said[:1] == [*told.values()][:1] else ())
    repeated = ids & told.keys()
    for id, what in told.items():
        if id not in ids and left[what] > 0:
            left[what] -= 1
            repeated.add(id)
    return repeated


def _read(path: str, messages: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    """Yield the records of rows, in order, a few megabytes at a time. A row that was deleted just now has none."""
    batch: list[_Message] = []
    size = 0
    for message in messages:
        if batch and (size + message.size > _BATCH or len(batch) == _AT_ONCE or message.table != batch[0].table):
            yield from _read_batch(path, batch)
            batch, size = [], 0
        batch.append(message)
        size += message.size
    if batch:
        yield from _read_batch(path, batch)


def _read_batch(path: str, batch: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    table = batch[0].table
    if table != "message":
        yield from _read_newer(path, batch)
        return
    ids = [message.id for message in batch]
    marks = ", ".join("?" * len(ids))
    data = f"length(data), substr(data, 1, {LONGEST})"
    infos, parts = ask(
        path,
        (f"SELECT id, {data} FROM message WHERE id IN ({marks})", ids),
        (f"SELECT message_id, id, {data} FROM part WHERE message_id IN ({marks}) ORDER BY message_id, id", ids),
    )
    heads = {id: value_of(*_value(*told), id=id) for id, *told in infos}
    held: dict[str, list[tuple[Any, ...]]] = {}
    for id, *told in parts:
        held.setdefault(id, []).append(tuple(told))
    for message in batch:
        if message.id in heads:
            info, own = heads[message.id], _parts(held.get(message.id, ()))
            yield message, message_record(info, own, followed=message.followed)


def _parts(found: Iterable[tuple[Any, ...]]) -> Iterator[Record]:
    left = LONGEST_MESSAGE
    for id, length, data in found:
        held, size = _value(length, data)
        left -= size
        yield value_of(held if left > 0 else held[:HEAD], size, id=id)


def _value(length: Any, data: Any) -> tuple[bytes, int]:
    """Return the bytes of a value, at most `LONGEST` characters, and its size: more than these if it was cut."""
    held = data if isinstance(data, bytes) else ("" if data is None else str(data)).encode("utf-8", "replace")
    return held, len(held) if (length or 0) <= LONGEST else max(int(length), len(held) + 1)


def _read_newer(path: str, batch: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    columns = f"rowid, id, type, time_created, length(data), substr(data, 1, {LONGEST})"
    marks = ", ".join("?" * len(batch))
    (found,) = ask(
        path, (f"SELECT {columns} FROM session_message WHERE rowid IN ({marks})", [message.number for message in batch])
    )
    held = {number: ({"id": id, "type": kind, "time_created": at}, told) for number, id, kind, at, *told in found}
    for message in batch:
        if message.number in held:
            row, told = held[message.number]
            yield (
                message,
                written(
                    {
                        "table": "session_message",
                        "row": row,
                        "data": value_of(*_value(*told)),
                        "followed": message.followed,
                    }
                ),
            )


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        return data[:LONGEST].decode("utf-8", "replace") if len(data) <= LONGEST else value_of(b"", len(data))
    return value
