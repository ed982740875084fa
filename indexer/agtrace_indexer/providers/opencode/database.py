"""OpenCode's sessions in its database: tables `session`, `message`, `part` (README.md).

Rows are rewritten in place and deleted, so each message has a fingerprint: how many parts it has, their sizes, and when
they were last changed. Messages whose fingerprint is another one are read again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os.path import basename
from typing import Any, NamedTuple

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import digest
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.foreign_database import Question, ask
from agtrace_indexer.providers.opencode.parser import (
    HEAD,
    LONGEST,
    LONGEST_MESSAGE,
    followed,
    known_as,
    message_record,
    print_of,
    value_of,
    written,
)
from agtrace_indexer.providers.provider import LogInside, Row

_NEEDED = {
    "session": {"id", "directory", "version"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
"""The tables and columns without which a database isn't OpenCode's, or is of a version that we don't know."""

_FACTS = {
    "id": "id", "parent_id": "parentID", "directory": "directory", "title": "title", "version": "version",
    "agent": "agent",
}  # fmt: skip
"""The columns of `session` that say something, and their names in its JSON."""

_ELSEWHERE = {"session_message": "data", "session_input": "prompt"}
"""Tables in which newer versions may write, with the columns that have the content. They were empty until 1.18."""

_IMPORTED = ("external_import", "claude_import")
"""MiMo Code's tables of sessions that it copied from other agents, whose own logs are read."""

_COLUMNS = (
    "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p "
    "WHERE m.type = 'table' AND m.name IN ({})"
)

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
        names = (*_NEEDED, *_ELSEWHERE, *_IMPORTED, "event_sequence")
        (columns,) = ask(path, (_COLUMNS.format(", ".join("?" * len(names))), names))
        self._columns: dict[str, set[str]] = {}
        for table, column in columns:
            self._columns.setdefault(table, set()).add(column)
        missing = [table for table, needed in _NEEDED.items() if not needed <= self._columns.get(table, set())]
        if missing:
            raise OSError(0, f"its tables aren't those of OpenCode 1.2 to 1.18 ({', '.join(missing)}): not read")

    def has(self, table: str, column: str = "id") -> bool:
        """Whether there is a table with a column."""
        return column in self._columns.get(table, ())

    def column(self, table: str, name: str) -> str:
        """Return an expression for a column that not every version has."""
        return f"{table}.{name}" if self.has(table, name) else "0"

    @property
    def elsewhere(self) -> list[str]:
        """The tables in which only newer versions write."""
        return [
            table for table, column in _ELSEWHERE.items() if {"session_id", column} <= self._columns.get(table, set())
        ]

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
    sessions, *found = ask(path, *_listing(tables))
    counts = {table: dict(rows) for table, rows in zip(("message", "part", *tables.elsewhere), found, strict=False)}
    newest: dict[Any, list[Any]] = {}
    for rows in found[len(counts) :]:
        for session, *stamps in rows:
            newest.setdefault(session, []).append(stamps)
    total = sum(counts["part"].values()) or 1
    size = sum(file.size for file in container.files)
    for session, *told in sessions:
        own = [counted.get(session, 0) for counted in counts.values()]
        stamp = digest(repr((told, own, newest.get(session))))
        yield LogInside(str(session), stamp, 1 + size * counts["part"].get(session, 0) // total)


def _listing(tables: _Tables) -> Iterator[Question]:
    facts = ", ".join(tables.column("session", name) for name in (*_FACTS, "time_updated"))
    yield f"SELECT id, {facts} FROM session WHERE {tables.own} AND id > '' AND id NOT LIKE '%/%'", ()
    for table in ("message", "part", *tables.elsewhere):
        yield f"SELECT session_id, count(*) FROM {table} GROUP BY session_id", ()
    if tables.has("event_sequence", "aggregate_id"):
        yield "SELECT aggregate_id, seq FROM event_sequence", ()
    if tables.has("session", "time_updated"):
        recent = f"SELECT id FROM session ORDER BY time_updated DESC LIMIT {_RECENT}"
        for table in filter(lambda name: tables.has(name, "time_updated"), ("message", "part")):
            yield (
                (
                    f"SELECT session_id, max(time_updated), sum(time_updated % 1000003) FROM {table} "
                    f"WHERE session_id IN ({recent}) GROUP BY session_id"
                ),
                (),
            )


# --- what is in one ---


def rows(found: Found, position: Any) -> Iterable[Row]:
    """Yield a record of the messages that vanished, one of the session, then the messages that changed, in order."""
    path, session = found.container, basename(found.path)
    tables = _Tables(path)
    told, *listed = ask(path, _session(tables, session), *_prints(tables, session))
    messages = [*_messages(listed[0]), *_rows_elsewhere(tables, listed[1:])]
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


def _session(tables: _Tables, session: str) -> Question:
    facts = ", ".join(tables.column("session", name) for name in _FACTS)
    return f"SELECT rowid, {facts} FROM session WHERE id = ?", (session,)


def _prints(tables: _Tables, session: str) -> Iterator[Question]:
    """Return the queries for the fingerprints of messages, and of the rows in tables of newer versions."""
    part, message = (tables.column(table, "time_updated") for table in ("part", "message"))
    created = tables.column("message", "time_created")
    yield (
        (
            f"SELECT message.id, message.rowid, {message}, coalesce(length(message.data), 0), "
            'instr(message.data, \'"role":"assistant"\') > 0, coalesce(n, 0), coalesce(newest, 0), coalesce(size, 0) '
            f"FROM message LEFT JOIN (SELECT message_id, count(*) n, max({part}) newest, "
            "sum(coalesce(length(data), 0)) size FROM part WHERE session_id = ? GROUP BY message_id) "
            f"ON message_id = message.id WHERE session_id = ? ORDER BY {created}, message.id"
        ),
        (session, session),
    )
    for table in tables.elsewhere:
        changed = tables.column(table, "time_updated")
        yield (
            (
                f"SELECT '{table}/' || id, rowid, {changed}, coalesce(length({_ELSEWHERE[table]}), 0) "
                f"FROM {table} WHERE session_id = ? ORDER BY rowid"
            ),
            (session,),
        )


def _messages(listed: Sequence[tuple[Any, ...]]) -> Iterator[_Message]:
    later = followed(bool(row[4]) for row in listed)
    for (id, number, *told), past in zip(listed, later, strict=True):
        yield _Message("message", str(id), number, told[1] + told[-1], print_of(told, past), past)


def _rows_elsewhere(tables: _Tables, listed: Iterable[Sequence[tuple[Any, ...]]]) -> Iterator[_Message]:
    for table, found in zip(tables.elsewhere, listed, strict=True):
        for id, number, *told in found:
            yield _Message(table, str(id), number, told[-1], print_of(told), False)


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
        yield from _read_elsewhere(path, table, batch)
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


def _read_elsewhere(path: str, table: str, batch: Sequence[_Message]) -> Iterator[tuple[_Message, bytes]]:
    """Yield rows that aren't understood, as they are."""
    numbers = [message.number for message in batch]
    (found,) = ask(path, (f"SELECT rowid, * FROM {table} WHERE rowid IN ({', '.join('?' * len(numbers))})", numbers))
    (names,) = ask(path, ("SELECT name FROM pragma_table_info(?)", (table,)))
    held = {
        number: dict(zip((name for (name,) in names), map(_plain, values), strict=False)) for number, *values in found
    }
    for message in batch:
        if message.number in held:
            yield message, written({"table": table, "row": held[message.number]})


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        return data[:LONGEST].decode("utf-8", "replace") if len(data) <= LONGEST else value_of(b"", len(data))
    return value
