"""Running queries, whatever the connection's row factory; and the parts that queries of several topics share.

These are SQL conditions over `event` e, `landmark` l, `session` s, and codes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, TypeAlias, TypeVar

from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType

Row = TypeVar("Row")

Arguments: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Arguments by position or by name."""

GIVEN = "(SELECT value FROM json_each(?))"
FILES = "(SELECT value FROM json_each(:files))"
"""The ids that a query is about, passed as `as_json`."""


COUNTED = "e.superseded_by IS NULL AND e.copy_of IS NULL"
"""The events that count in their session: neither replaced nor copied from an older one."""

LIVE = "(e.superseded_by IS NULL OR abs(e.superseded_by) > :newest)"
"""The events that none had replaced at the moment of a snapshot, whose newest event has the row id :newest."""

FOUND = "e.id <= :snapshot AND (e.superseded_by IS NULL OR e.superseded_by < 0 OR e.superseded_by > :snapshot)"
"""The events that a search finds, as in a snapshot: also those that were rolled back."""

OWN_THEN = f"e.session_id = :session AND e.event_index <= :last AND e.copy_of IS NULL AND {LIVE}"
"""The events that counted in their session at the moment of a snapshot."""

OF_STEP = """
e.session_id = :session AND e.event_index BETWEEN :first_event AND :last_event
AND e.turn_index = :turn_index AND e.step_index = :step_index AND e.superseded_by IS NULL
"""
"""The events of a `turns.Step`."""

OF_PROJECTS = "s.project_id IN (SELECT value FROM json_each(:projects))"
"""The sessions whose folders have these row ids."""

BELOW = "(s.kind = 'subagent' AND s.parent_session IS NOT NULL)"
"""The sessions that are part of another one in the index, which started them; all others count as sessions."""

HAS_PATH = r"instr(replace(lower({}), '\', '/'), replace(lower(:path), '\', '/'))"
"""Whether a text of a path is in it, with either slash."""

REPOSITORY = """
coalesce((SELECT f.repository_id FROM repository_folder f WHERE f.project_id = s.project_id), s.project_id)
"""
"""The repository of a session; its folder, until a run has found out. Both have the same numbers."""

LAST = "'\U0010ffff'"
"""The text after all others that go on differently, as SQL: `:prefix || LAST` is the end of those that begin so."""

# A hash may be given in full and stored abbreviated, or the other way round.
IS_COMMIT = f"""
(l.kind = 'commit' AND (:commit = 'any' OR l.name >= :commit AND l.name < :commit || {LAST}
  OR substr(:commit, 1, length(l.name)) = l.name
  OR ltrim(lower(:commit), '0123456789abcdef') != '' AND instr(lower(l.detail), lower(:commit))))
"""
"""The landmarks that are a commit, given its hash or the beginning of it, or any; what can't be a hash is a text in its
subject."""

IS_PULL_REQUEST = "(l.kind = 'pull_request' AND :pr IN ('any', l.name, l.detail))"
"""Those that are about a pull request, given its number or address, or any."""

CODES: dict[str, int] = {
    "user": TYPE_CODE[EventType.USER],
    "message": TYPE_CODE[EventType.MESSAGE],
    "reasoning": TYPE_CODE[EventType.REASONING],
    "call": TYPE_CODE[EventType.TOOL_CALL],
    "result": TYPE_CODE[EventType.TOOL_RESULT],
    "notification": TYPE_CODE[EventType.NOTIFICATION],
    **{outcome.value: code for outcome, code in OUTCOME_CODE.items()},
}
"""The codes of `event.type` and `event.outcome`, by their names in queries: `e.type = :call`."""


def is_team(connection: sqlite3.Connection) -> bool:
    """Whether this stands for a connection to a team's index, on PostgreSQL, and isn't one to a file of SQLite."""
    return not isinstance(connection, sqlite3.Connection)


def rows(
    connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()
) -> Iterator[Row]:
    """Yield `form` of the columns of each row; rows are read on demand."""
    return starmap(form, _run(connection, sql, arguments))


def tuples(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> Iterator[Any]:
    """Yield the rows as tuples, read on demand."""
    return iter(_run(connection, sql, arguments))


def first(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row | None:
    """Return `form` of the first row's columns; None if there is no row."""
    row = _run(connection, sql, arguments).fetchone()
    return None if row is None else form(*row)


def only(connection: sqlite3.Connection, form: Callable[..., Row], sql: str, arguments: Arguments = ()) -> Row:
    """Return `form` of the only row's columns. Raise `KeyError` if there is no row."""
    row = _run(connection, sql, arguments).fetchone()
    if row is None:
        raise KeyError("the index has no such row")
    return form(*row)


def value(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> Any:
    """Return the first column of the first row; None if there is no row."""
    row = _run(connection, sql, arguments).fetchone()
    return None if row is None else row[0]


def values(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> list[Any]:
    """Return the first column of all rows."""
    return [row[0] for row in _run(connection, sql, arguments)]


def pairs(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> dict[Any, Any]:
    """Return a mapping from the first column of all rows to the second."""
    return dict(_run(connection, sql, arguments).fetchall())


def dicts(connection: sqlite3.Connection, sql: str, arguments: Arguments = ()) -> list[dict[str, Any]]:
    """Return all rows as mappings from the names of their columns."""
    found = _run(connection, sql, arguments)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def as_json(ids: Iterable[int]) -> str:
    """Return ids as the JSON array that SQLite's `json_each` reads."""
    return f"[{', '.join(map(str, ids))}]"


def conditions(*wanted: tuple[str, str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return those of some conditions (SQL, name of its argument, value) that have a value, and the arguments."""
    given = [one for one in wanted if one[2] is not None]
    return [condition for condition, _, _ in given], {name: value for _, name, value in given}


def _run(connection: sqlite3.Connection, sql: str, arguments: Arguments) -> sqlite3.Cursor:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, arguments)


_DAY = 24 * 3600
_FIRST = 40 * 365 * _DAY
"""A time before any log, in seconds since 1970 UTC."""


def local_day() -> str:
    """Return, as SQL, the day of event e in the machine's zone, counted from 1970-01-01; NULL if the log has no time.

    The changes of the zone's clock until now are told one by one, the newest first.
    """
    step = 14 * _DAY
    changes = []
    for start in range(_FIRST, int(time.time()) + step, step):
        low, high = start, start + step
        if _offset(low) == _offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(middle) == _offset(start) else (low, middle)
        changes.append(f"WHEN e.ts >= {1000 * high} THEN {1000 * _offset(high)}")
    offset = " ".join(["CASE WHEN e.ts = 0 THEN NULL", *reversed(changes), f"ELSE {1000 * _offset(_FIRST)} END"])
    return f"(e.ts + {offset}) / {1000 * _DAY}"


def _offset(second: int) -> int:
    """Return how many seconds the machine's zone is ahead of UTC at a time."""
    return time.localtime(second).tm_gmtoff
