"""Finding the damage in an index: in tables that only the logs can bring back, or in what is derived from these.

Everything is examined: for a gigabyte of logs this takes 2 s. A changed figure in an otherwise intact row can't be
detected, as SQLite has no checksums of its pages; texts and the word index have checksums of ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import NamedTuple, ParamSpec, TypeVar

import orjson
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODE, TYPE_CODE
from agtrace_schema.database import VERSION
from agtrace_schema.events import EventType
from agtrace_schema.patterns import later

from agtrace_indexer.index import checksum
from agtrace_indexer.index.catalog import make_tables
from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.index.table_roles import Role, of_role, pointers
from agtrace_indexer.index.turn_sums import MAKE_A_TURN
from agtrace_indexer.texts.blocks import BlockText, unpack

Asked = ParamSpec("Asked")
Seen = TypeVar("Seen")

_MOST_TOLD = 20

_DERIVED = frozenset({*of_role(Role.DERIVED, Role.JOINED), "sqlite_stat1", "sqlite_stat4"})
"""Tables derived from others, as are the tables of the word index."""

_OF_WORDS = later(rf"(?:{'|'.join(of_role(Role.WORDS))})(?:_(?:config|content|data|docsize|idx))?")
"""Tables of the word index, and the tables in which FTS5 stores them."""

_WHOLE_NUMBERS = ("session_id", "event_index", "type", "ts", "line", "offset", "length")
_OR_UNKNOWN = (
    "turn_index", "step_index", "name_id", "outcome", "link", "superseded_by", "identity", "copy_of", "duration_ms",
    "own", "program_id",
)  # fmt: skip
EVENT_IS_SOUND = " AND ".join(
    (
        *(f"typeof({column}) = 'integer'" for column in _WHOLE_NUMBERS),
        *(f"typeof({column}) IN ('integer', 'null')" for column in _OR_UNKNOWN),
        f"type BETWEEN 0 AND {len(EVENT_TYPE_CODES) - 1}",
        f"coalesce(outcome, 0) BETWEEN 0 AND {max(OUTCOME_CODE.values())}",
    )
)
"""SQL: whether a row of `event` has only possible values."""

_UNEVEN_BLOCKS = """
SELECT count(*) FROM block b WHERE event_count != (SELECT count(*) FROM event e WHERE e.session_id = b.session_id
  AND e.event_index >= b.first_index AND e.event_index < b.first_index + b.event_count)
"""

# Sessions that were read to their end and whose sums aren't those of their events.
_UNEVEN_SUMS = """
SELECT count(*) FROM session s JOIN file f ON f.id = s.file_id WHERE f.stamp != '' AND s.event_count !=
  (SELECT count(*) FROM event e WHERE e.session_id = s.id AND e.superseded_by IS NULL AND e.copy_of IS NULL)
"""


_ITS_EVENTS = """FROM event e WHERE e.session_id = b.session_id AND e.event_index >= b.first_index
  AND e.event_index < b.first_index + b.event_count"""

_USAGE = TYPE_CODE[EventType.TOKEN_USAGE]

EVENTS_WITHOUT_FIGURES = f"""FROM event e WHERE e.type = {_USAGE} AND NOT EXISTS
  (SELECT 1 FROM token_usage u WHERE u.session_id = e.session_id AND u.event_index = e.event_index)"""
"""Token usage events that have lost their figures."""

OF_ITS_EVENTS = f"(SELECT min(ts), max(ts), sum(DISTINCT 1 << type) {_ITS_EVENTS})"
"""SQL: `t0`, `t1`, `types` of a row of `block` b, as its events say."""

OTHER_THAN_EVENTS = f"FROM block b WHERE (t0, t1, types) != {OF_ITS_EVENTS}"
"""Blocks whose times or types aren't those of their events."""

IMPOSSIBLE_ACCESS = "FROM touched WHERE access NOT IN ('read', 'write')"

_MISFITS = {
    "{} blocks have times that aren't those of their events": f"SELECT count(*) {OTHER_THAN_EVENTS}",
    "{} token figures have no event":
        f"SELECT count(*) FROM token_usage u WHERE NOT EXISTS (SELECT 1 FROM event e "
        f"WHERE e.session_id = u.session_id AND e.event_index = u.event_index AND e.type = {_USAGE})",
    "{} events have lost their token figures":
        f"SELECT count(*) {EVENTS_WITHOUT_FIGURES}",
    "{} events are linked to missing events": "SELECT count(*) FROM event e WHERE link IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM event o WHERE o.session_id = e.session_id AND o.event_index = e.link)",
    "{} uses of files are neither reads nor writes": f"SELECT count(*) {IMPOSSIBLE_ACCESS}",
}  # fmt: skip
"""Rows that must agree with others: sentence -> query for the number that don't."""

_UNEVEN_TURNS = {
    "{} sessions have turns that don't match their count":
        "SELECT count(*) FROM session s JOIN file f ON f.id = s.file_id WHERE f.stamp != '' "
        "AND turn_count + copied_turns != (SELECT count(*) FROM turn t WHERE t.session_id = s.id)",
    "{} turns with events are missing":
        "SELECT count(*) FROM (SELECT session_id, turn_index FROM event LEFT JOIN request r "
        "USING (session_id, event_index) WHERE turn_index IS NOT NULL AND superseded_by IS NULL GROUP BY 1, 2 "
        f"HAVING {MAKE_A_TURN.format('', 'r.')}) e "
        "WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_id = e.session_id AND t.turn_index = e.turn_index)",
    "{} sessions have responses that don't match those of their models":
        "SELECT count(*) FROM session s JOIN file f ON f.id = s.file_id WHERE f.stamp != '' AND responses != "
        "(SELECT coalesce(sum(responses), 0) FROM model_usage m WHERE m.session_id = s.id)",
}  # fmt: skip
"""The same for what is derived from events."""


class Damage(NamedTuple):
    """The damage found, as sentences; both empty if the index is sound."""

    tables: tuple[str, ...] = ()
    """Damage in tables that only the logs can bring back."""
    derived: tuple[str, ...] = ()
    """Damage in what is derived from these: indexes, sums, the word index."""

    def __bool__(self) -> bool:
        return bool(self.tables or self.derived)

    def __str__(self) -> str:
        return "; ".join((*self.tables, *self.derived))


def look(connection: sqlite3.Connection) -> Damage:
    """Examine the whole index in one transaction. Raises `sqlite3.Error` only if it is busy or not an index at all."""
    inside = connection.in_transaction
    if not inside:
        connection.execute("BEGIN")
    try:
        found = [*_structure(connection), *_lost_tables(connection)]
        if not any(not derived for derived, _ in found):
            found += _tried(_contents, connection, derived=False)
        if not any(derived for derived, _ in found):
            found += _tried(_made_of_tables, connection, derived=True)
    finally:
        if not inside:
            with suppress(sqlite3.Error):  # SQLite itself may have ended it
                connection.rollback()
    told = dict.fromkeys(found)
    return Damage(
        tuple(text for derived, text in told if not derived),
        tuple(text for derived, text in told if derived and (False, text) not in told),
    )


Finding = tuple[bool, str]
"""Whether it concerns something derived, and the sentence."""


def _tried(
    looked: Callable[[sqlite3.Connection], Iterator[str]], connection: sqlite3.Connection, *, derived: bool
) -> list[Finding]:
    """Return what an examination finds; its failure is a finding, too."""
    found: list[Finding] = []
    try:
        found.extend((derived, text) for text in looked(connection))
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        found.append((derived, str(error)))
    except ValueError as error:
        found.append((derived, str(error)))
    return found


def _structure(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Yield SQLite's own findings about pages, trees and indexes."""
    whole = _checked(connection, f"PRAGMA integrity_check({_MOST_TOLD})")
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    found = [
        (False, line)  # also if a row and an index differ: either may be right
        for name in (["sqlite_master", *(name for (name,) in tables if not _is_derived(name))] if whole else ())
        for line in _checked(connection, f"PRAGMA integrity_check([{name}])")
    ]
    yield from found or ((True, line) for line in whole)


def _checked(connection: sqlite3.Connection, pragma: str) -> list[str]:
    """Return the findings of a check, even if it breaks off.

    From version 3.44 on, SQLite examines full-text indexes as well; where one lacks a table that ends in a plain error.
    """
    lines: list[str] = []
    try:
        for (said,) in connection.execute(pragma):
            lines += said.splitlines()
    except sqlite3.DatabaseError as error:
        if not (is_damage(error) or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR):
            raise
        lines.append(str(error))
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]


def _is_derived(table: str) -> bool:
    return table in _DERIVED or _OF_WORDS.fullmatch(table) is not None


def _lost_tables(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Yield the tables, columns and indexes that are missing."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        yield False, f"its version number is wrong: {version}"
    there = _columns_of(connection)
    for name, columns in _expected().items():
        if name not in there:
            yield _is_derived(name) or columns[0] == "index", f"{name} is missing"
        elif missing := [column for column in columns if column not in there[name]]:
            yield False, f"{name} is another index" if columns[0] == "index" else f"{name} lacks {', '.join(missing)}"


@cache
def _expected() -> Mapping[str, list[str]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection)
    return _columns_of(connection)


def _columns_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each table; of an index 'index' and its definition."""
    found: dict[str, list[str]] = {}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind == "index":
            found[name] = ["index", " ".join((sql or "").split())]
        elif kind == "table" and not _OF_WORDS.fullmatch(name) and not name.startswith("_"):
            found[name] = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    return found


def _contents(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield findings about the values in rows, and whether rows fit together."""
    yield from _unreadable_blocks(connection)
    checks = {
        "{} events have impossible values": f"SELECT count(*) FROM event WHERE NOT ({EVENT_IS_SOUND})",
        "{} blocks have events that don't match their count": _UNEVEN_BLOCKS,
        "{} events are in no block": "SELECT (SELECT count(*) FROM event) - (SELECT sum(event_count) FROM block)",
        "{} blocks have no text": "SELECT count(*) FROM block WHERE id NOT IN (SELECT block_id FROM block_data)",
    }
    for table, column, other in pointers():
        key = "rowid" if table == "block_data" or other != "session" else "id"
        checks[f"{{}} rows of {table} refer to a missing {other}"] = (
            f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT {key} FROM {other})"
        )
    yield from _counted(connection, checks | _MISFITS)
    for table in ("meta", "root", "file", "project", "session", "name", "path", "request", "naming", "agent_start"):
        for _ in connection.execute(f"SELECT * FROM {table}"):
            pass  # texts that aren't UTF-8 can't be read


def _counted(connection: sqlite3.Connection, checks: dict[str, str]) -> Iterator[str]:
    """Yield the sentences whose query counts anything: sentence -> query."""
    for text, query in checks.items():
        count = connection.execute(query).fetchone()[0]
        if count:
            yield text.format(count)


def _unreadable_blocks(connection: sqlite3.Connection) -> Iterator[str]:
    unreadable = 0
    blocks = connection.execute(
        "SELECT b.event_count, d.ends, d.text, d.payload FROM block b JOIN block_data d ON d.block_id = b.id"
    )
    for row in blocks:
        unreadable += not holds_all_texts(*row)
    if unreadable:
        yield f"{unreadable} blocks of texts can't be read"


def holds_all_texts(event_count: int, ends: bytes, text: bytes, payload: bytes) -> bool:
    """Whether a row of `block_data` has the texts and the payloads of this many events."""
    try:
        block = BlockText.of(ends, text)
        payloads = orjson.loads(unpack(payload))
    except (sqlite3.DatabaseError, ValueError, TypeError):
        return False
    ends_of = block.ends
    return (
        isinstance(payloads, list)
        and len(ends_of) == len(payloads) == event_count
        and all(payload is None or isinstance(payload, dict) for payload in payloads)
        and len(block.data) == ends_of[-1] + 1
        and all(map(int.__lt__, ends_of[:-1], ends_of[1:]))
    )


def _made_of_tables(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield findings about sums and words that aren't those of the rows."""
    yield from _counted(
        connection, {"{} sessions have sums that don't match their events": _UNEVEN_SUMS} | _UNEVEN_TURNS
    )
    words = {name for (name,) in connection.execute("SELECT name FROM sqlite_master") if _OF_WORDS.fullmatch(name)}
    if not words:
        return
    if "trigram" not in words:
        yield "tables of the word index are missing"
        return
    if not checksum.is_unbroken(connection):
        yield "the word index doesn't match its checksum"
        return
    for _ in connection.execute("SELECT 1 FROM word"):
        pass  # reads the whole word index
    for (packed,) in connection.execute("SELECT words FROM vocabulary"):
        unpack(packed)


def afresh(look: Callable[Asked, Seen], *asked: Asked.args, **named: Asked.kwargs) -> Seen:
    """Return what a function returns in a thread of its own, with an unused decompressor. Raises what it raises."""
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(look, *asked, **named).result()
