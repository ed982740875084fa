"""The telemetry file: a SQLite database of its own next to the index, which can be deleted at any time.

This is the only module that knows its table. Nothing here raises anything but `sqlite3.Error` and `OSError`.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import NamedTuple, get_args, get_type_hints

import orjson
from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.redact import redact
from agtrace_schema.reports import AbComparison, ArmFigures, Percentiles, RequestFigures, RequestMetrics
from agtrace_schema.requests import RequestOutcome, RequestsBy
from msgspec import Struct

from agtrace.answers.telemetry import store
from agtrace.problems import TelemetryUnavailable
from agtrace.times import iso


class Request(NamedTuple):
    """A request and the figures of its answer; the fields are the columns of the telemetry file."""

    at: int
    """Milliseconds since 1970 UTC, when it was answered."""
    tool: str
    request_id: str
    """The id that the server's log has for it, too; made at random."""
    client: str | None
    client_version: str | None
    protocol: str | None
    transport: str
    outcome: str
    """`ok`, or the code of the error."""
    ms: float
    """From the request to its answer."""
    tokens: int
    """Estimated, of the answer."""
    asked_bytes: int
    """The size of the answer as it was asked for; equal to `bytes` if that fit."""
    bytes: int
    """The size of the answer that was sent."""
    items: int | None
    """The items of a list."""
    attempt: int
    """The number of the form that fit: 1 is as asked, or a page, which is fitted before."""
    paginated: bool
    chunked: bool
    summarized: bool
    """Whether a digest of a text was asked for, or data were condensed to fit."""
    pruned: bool
    """Whether only the lines that a question is about were given."""
    cut: bool
    """Whether parts are missing that no cursor continues."""
    index_state: str
    """ready, catching_up or building."""
    connection: str | None = None
    """12 characters that the requests of a connection have in common, and no others."""
    arm: str | None = None
    """The side of a comparison with answers without protection: protected or unprotected."""
    arguments: str | None = None
    """The arguments as JSON, without secrets; None unless the user wants them recorded."""


_HOUR = 3600 * 1000
_DAY = 24 * _HOUR
_LOCAL = "1000 * CAST(strftime('%s', at / 1000, 'unixepoch', 'localtime') AS INTEGER)"
_PATIENCE, _READING_PATIENCE = 1.0, 0.2
"""Seconds to wait for another process that writes: in the thread that records, and in one that answers."""

_END_OF_TIME = 1 << 62
_VERSION = 3
"""Kept in the file as `user_version`; raised whenever the fields of `Request` change."""
_INSERT = f"INSERT INTO request ({', '.join(Request._fields)}) VALUES ({', '.join('?' * len(Request._fields))})"


def append(path: Path, requests: Sequence[Request]) -> bool:
    """Append requests to the file, which is made if it isn't there; return whether a damaged one was replaced."""
    try:
        _append(path, requests)
        return False
    except sqlite3.DatabaseError as error:
        if not is_damage(error):  # locked, read-only, full: not the file's fault
            raise
        for name in (path.name, f"{path.name}-journal"):
            path.with_name(name).unlink(missing_ok=True)
        _append(path, requests)
        return True


def _append(path: Path, requests: Sequence[Request]) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # lost figures are no loss; a damaged file is replaced
        connection.execute("BEGIN IMMEDIATE")  # of two processes that find no table, one makes it
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise sqlite3.OperationalError("a newer version of agtrace made this file")
        if version < _VERSION:
            _make_table(connection)
        connection.executemany(_INSERT, requests)
        connection.execute("COMMIT")


def _make_table(connection: sqlite3.Connection) -> None:
    """Make the table, or fit an older one to the fields of `Request`: its rows keep what they have."""
    from sqlite_utils import Database  # takes 0.3 s

    types = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(Request).items()}
    needed = {name for name, of in types.items() if NoneType not in of}
    table = Database(connection, execute_plugins=False).table("request")
    table.create({name: of[0] for name, of in types.items()}, not_null=needed, transform=True)
    table.create_index(["at"], "request_at", if_not_exists=True)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def expire(path: Path, now: float, days: int) -> None:
    """Delete what is older than so many days, and give its room back."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as connection:
        if connection.execute("DELETE FROM request WHERE at < ?", (round(1000 * now) - days * _DAY,)).rowcount:
            connection.execute("VACUUM")


def count(path: Path) -> int:
    """Return the number of recorded requests."""
    with _opened(path) as connection:
        rows: int = 0 if connection is None else connection.execute("SELECT count(*) FROM request").fetchone()[0]
    return rows


class Wanted(Struct, frozen=True):
    """Which requests, and in which groups."""

    since: int | None = None
    """Milliseconds since 1970 UTC, as is `until`; both are included."""
    until: int | None = None
    tool: str | None = None
    outcome: RequestOutcome | None = None
    by: RequestsBy | None = None


class Sums(NamedTuple):
    """How many of some requests are of a kind, and their sizes added up."""

    requests: int
    bytes: int
    tokens: int
    paginated: int
    chunked: int
    summarized: int
    pruned: int
    cut: int
    oversized: int
    oversized_asked_bytes: int
    oversized_bytes: int
    stale: int


NOTHING = Sums(*[0] * 12)


class Group(NamedTuple):
    """The requests that have a tool, the name of a client, a day or an hour in common."""

    sums: Sums
    errors: dict[str, int]
    values: tuple[list[float], list[float], list[float]]
    """Milliseconds, bytes and tokens of each."""


class Found(NamedTuple):
    """The requests that were looked for."""

    groups: dict[str, Group]
    """By name; without groups, all as one without a name."""
    first: int | None
    """When the first and the last one were answered, in milliseconds since 1970 UTC; None if there are none."""
    last: int | None
    recorded: int
    """All requests in the file."""


_OVERSIZED = "asked_bytes > bytes"
_OUTCOMES: dict[RequestOutcome | None, str] = {
    None: "1",
    "ok": "outcome = 'ok'",
    "error": "outcome != 'ok'",
    "oversized": _OVERSIZED,
    **{kind: kind for kind in ("paginated", "chunked", "summarized", "pruned", "cut")},
}
_GROUPS: dict[RequestsBy | None, str] = {
    None: "''",
    "tool": "tool",
    "client": "coalesce(client, 'unknown')",
    "day": f"{_LOCAL} / {_DAY}",
    "hour": f"{_LOCAL} / {_HOUR}",
}
_TIMES: dict[RequestsBy | None, tuple[int, str]] = {"day": (_DAY, "%Y-%m-%d"), "hour": (_HOUR, "%Y-%m-%dT%H:00")}
"""For groups that are numbers of days or hours: their lengths, and how their beginnings are written."""
_MARKS = "paginated + 2 * chunked + 4 * summarized + 8 * pruned + 16 * cut + 32 * (index_state != 'ready')"
_VALUES = f"json_group_array(ms), json_group_array(bytes), json_group_array(tokens), json_group_array({_MARKS})"
"""Much faster than a row for each request, and than sums beside them: SQLite sorts by group what it adds up."""

_SUMS = f"""
count(*), sum(bytes), sum(tokens), sum(paginated), sum(chunked), sum(summarized), sum(pruned), sum(cut),
sum({_OVERSIZED}),
sum(iif({_OVERSIZED}, asked_bytes, 0)), sum(iif({_OVERSIZED}, bytes, 0)), sum(index_state != 'ready')
"""


def sums_since(path: Path, since: int) -> Sums:
    """Return the sums of all requests since a time, without looking at each."""
    with _opened(path) as connection:
        if connection is None:
            return NOTHING
        row = connection.execute(f"SELECT {_SUMS} FROM request WHERE at >= ?", (since,)).fetchone()
    return Sums(*(number or 0 for number in row))


def grouped(path: Path, wanted: Wanted) -> Found:
    """Return requests by group."""
    with _opened(path) as connection:
        if connection is None:
            return Found({}, None, None, 0)
        connection.execute("BEGIN")  # all queries see the same requests
        recorded = connection.execute("SELECT count(*) FROM request").fetchone()[0]
        chosen, given = _chosen(wanted)
        ends = (f"SELECT at {chosen} ORDER BY at {order} LIMIT 1" for order in ("", "DESC"))
        first, last = (connection.execute(end, given).fetchone() or (None,) for end in ends)
        if wanted.since is None:
            chosen, given = _chosen(wanted, at="+at")  # of all, a scan is faster
        group = _GROUPS[wanted.by]
        groups = {
            name: _group(*map(orjson.loads, values))
            for name, *values in connection.execute(f"SELECT {group}, {_VALUES} {chosen} GROUP BY 1", given)
        }
        unusual = (
            f"SELECT {group}, outcome, count(*), sum({_OVERSIZED}), "
            f"sum(iif({_OVERSIZED}, asked_bytes, 0)), sum(iif({_OVERSIZED}, bytes, 0)) "
            f"{chosen} AND (outcome != 'ok' OR {_OVERSIZED}) GROUP BY 1, 2"
        )
        for name, outcome, number, *oversized in connection.execute(unusual, given):
            groups[name] = _with_unusual(groups[name], outcome, number, oversized)
    if wanted.by in _TIMES:
        length, form = _TIMES[wanted.by]
        begun = {number: datetime.fromtimestamp(number * length / 1000, UTC) for number in groups}
        groups = {begun[number].strftime(form): group for number, group in groups.items()}
    return Found(groups, first[0], last[0], recorded)


def _chosen(wanted: Wanted, at: str = "at") -> tuple[str, tuple[int | str | None, ...]]:
    """Return which requests of the table are wanted, and the values in that."""
    until = _END_OF_TIME if wanted.until is None else wanted.until
    condition = f"{at} BETWEEN ? AND ? AND (?3 IS NULL OR tool = ?3) AND {_OUTCOMES[wanted.outcome]}"
    return f"FROM request WHERE {condition}", (wanted.since or 0, until, wanted.tool)


def _group(ms: list[float], sizes: list[float], tokens: list[float], marks: list[int]) -> Group:
    counts = Counter(marks)
    paginated, chunked, summarized, pruned, cut, stale = (
        sum(number for mark, number in counts.items() if mark & 1 << place) for place in range(6)
    )
    sums = NOTHING._replace(
        requests=len(ms),
        bytes=round(sum(sizes)),
        tokens=round(sum(tokens)),
        paginated=paginated,
        chunked=chunked,
        summarized=summarized,
        pruned=pruned,
        cut=cut,
        stale=stale,
    )
    return Group(sums, {}, (ms, sizes, tokens))


def _with_unusual(group: Group, outcome: str, number: int, oversized: Sequence[int]) -> Group:
    """Add requests that failed or didn't fit: how many didn't, and their sizes as asked for and as sent."""
    sums, (count, asked_bytes, sent_bytes) = group.sums, oversized
    return group._replace(
        sums=sums._replace(
            oversized=sums.oversized + count,
            oversized_asked_bytes=sums.oversized_asked_bytes + asked_bytes,
            oversized_bytes=sums.oversized_bytes + sent_bytes,
        ),
        errors=group.errors if outcome == "ok" else {**group.errors, outcome: number},
    )


class Compared(Struct, frozen=True):
    """A request on a side of a comparison."""

    arm: str
    connection: str
    outcome: str
    bytes: int
    tokens: int


def compared(path: Path, wanted: Wanted) -> list[Compared]:
    """Return the requests on any side of a comparison."""
    with _opened(path) as connection:
        if connection is None:
            return []
        chosen, given = _chosen(wanted)
        columns = "arm, coalesce(connection, ''), outcome, bytes, tokens"
        rows = connection.execute(f"SELECT {columns} {chosen} AND arm IS NOT NULL", given)
        return [Compared(*row) for row in rows]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the file for reading; None if there is none, or none of this version."""
    if not path.exists():
        yield None
        return
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_READING_PATIENCE)
    ) as connection:
        yield connection if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION else None


# -- figures ------------------------------------------------------------------------------------------


def metrics(path: Path, wanted: Wanted, dropped: int | None = None) -> RequestMetrics:
    """Return the figures of the requests in a telemetry file. Raises `TelemetryUnavailable`."""
    try:
        found = store.grouped(path, wanted)
    except sqlite3.Error:
        raise TelemetryUnavailable(path) from None
    groups = found.groups
    names = sorted(groups)
    if wanted.by not in ("day", "hour"):
        names.sort(key=lambda name: -groups[name].sums.requests)
    return RequestMetrics(
        since=iso(wanted.since),
        until=iso(wanted.until),
        first=iso(found.first),
        last=iso(found.last),
        total=_figures(_together(groups.values())),
        groups=[]
        if wanted.by is None
        else [_figures(groups[name], redact(name) if wanted.by == "client" else name) for name in names],
        recorded=found.recorded,
        dropped=dropped,
    )


def comparison(path: Path, wanted: Wanted) -> AbComparison:
    """Return the two sides of a comparison. Raises `TelemetryUnavailable`."""
    try:
        found = store.compared(path, wanted)
    except sqlite3.Error:
        raise TelemetryUnavailable(path) from None
    arms = sorted({one.arm for one in found})
    sides = [_side(arm, [one for one in found if one.arm == arm]) for arm in arms]
    return AbComparison(since=iso(wanted.since), until=iso(wanted.until), arms=sides)


def _side(arm: str, found: Sequence[Compared]) -> ArmFigures:
    connections = len({one.connection for one in found})
    errors = sum(one.outcome != "ok" for one in found)
    return ArmFigures(
        arm=arm,
        connections=connections,
        requests=len(found),
        requests_per_connection=round(len(found) / connections, 2),
        errors=errors,
        error_share=round(errors / len(found), 4),
        bytes=_percentiles([one.bytes for one in found]),
        tokens=_percentiles([one.tokens for one in found]),
    )


def _together(groups: Collection[Group]) -> Group:
    if len(groups) == 1:
        return next(iter(groups))
    sums = Sums(*map(sum, zip(*(group.sums for group in groups), strict=True))) if groups else NOTHING
    errors: Counter[str] = Counter()
    for group in groups:
        errors.update(group.errors)
    ms, sizes, tokens = ([value for group in groups for value in group.values[place]] for place in range(3))
    return Group(sums, errors, (ms, sizes, tokens))


def _figures(found: Group, name: str | None = None) -> RequestFigures:
    sums, errors = found.sums, found.errors
    ms, sizes, tokens = (_percentiles(values) if values else None for values in found.values)

    def share(part: int) -> float:
        return round(part / sums.requests, 4) if sums.requests else 0.0

    return RequestFigures(
        group=name,
        requests=sums.requests,
        errors=sum(errors.values()),
        error_codes=dict(sorted(errors.items())),
        milliseconds=ms,
        bytes=sizes,
        tokens=tokens,
        total_tokens=sums.tokens,
        paginated_share=share(sums.paginated),
        chunked_share=share(sums.chunked),
        summarized_share=share(sums.summarized),
        pruned_share=share(sums.pruned),
        cut_share=share(sums.cut),
        oversized=sums.oversized,
        oversized_asked_bytes=sums.oversized_asked_bytes,
        oversized_bytes=sums.oversized_bytes,
        stale=sums.stale,
    )


def _percentiles(values: Sequence[float]) -> Percentiles:
    """Return percentiles by nearest rank: each is a value that occurred."""
    ordered = sorted(values)
    p50, p95, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99))
    return Percentiles(p50=p50, p95=p95, p99=p99, largest=ordered[-1])
