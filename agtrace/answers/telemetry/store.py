"""The telemetry file: a SQLite database of its own next to the index, which can be deleted at any time.

This is the only module that knows its table. Nothing here raises anything but `sqlite3.Error` and `OSError`.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

import orjson
from agtrace_indexer.index.opening import is_damage
from agtrace_indexer.redact import redact
from agtrace_schema.reports import AbComparison, ArmFigures, Percentiles, RequestFigures, RequestMetrics
from agtrace_schema.requests import RequestOutcome, RequestsBy
from msgspec import Struct

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


class RequestFilter(Struct, frozen=True):
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
    errors: Mapping[str, int]
    values: Sequence[Sequence[float]]
    """Milliseconds, bytes and tokens of each."""


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
_VALUES = "json_group_array(ms), json_group_array(bytes), json_group_array(tokens)"
"""Much faster than a row for each request."""

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


def _grouped(connection: sqlite3.Connection, request: RequestFilter) -> dict[str, Group]:
    """Return requests by group: by name, or all as one without a name."""
    chosen, given = _chosen(request, at="at" if request.since else "+at")  # of all, a scan is faster
    group = _GROUPS[request.by]
    errors: dict[Any, dict[str, int]] = defaultdict(dict)
    failed = f"SELECT {group}, outcome, count(*) {chosen} AND outcome != 'ok' GROUP BY 1, 2 ORDER BY 2"
    for name, outcome, number in connection.execute(failed, given):
        errors[name][outcome] = number
    groups = {}
    for name, *row in connection.execute(f"SELECT {group}, {_SUMS}, {_VALUES} {chosen} GROUP BY 1", given):
        groups[name] = Group(Sums(*row[:-3]), errors[name], [*map(orjson.loads, row[-3:])])
    if request.by not in _TIMES:
        return groups
    length, form = _TIMES[request.by]
    begun = {number: datetime.fromtimestamp(number * length / 1000, UTC) for number in groups}
    return {begun[number].strftime(form): one for number, one in groups.items()}


def _chosen(request: RequestFilter, at: str = "at") -> tuple[str, tuple[int | str | None, ...]]:
    """Return which requests of the table are wanted, and the values in that."""
    until = _END_OF_TIME if request.until is None else request.until
    condition = f"{at} BETWEEN ? AND ? AND (?3 IS NULL OR tool = ?3) AND {_OUTCOMES[request.outcome]}"
    return f"FROM request WHERE {condition}", (request.since or 0, until, request.tool)


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


def metrics(path: Path, request: RequestFilter, dropped: int | None = None) -> RequestMetrics:
    """Return the figures of the requests in a telemetry file. Raises `TelemetryUnavailable`."""
    groups: dict[str, Group] = {}
    ends: Sequence[int | None] = (None, None)
    recorded = 0
    with _reading(path) as connection:
        if connection is not None:
            connection.execute("BEGIN")  # all queries see the same requests
            (recorded,) = connection.execute("SELECT count(*) FROM request").fetchone()
            chosen, given = _chosen(request)
            ends = connection.execute(f"SELECT min(at), max(at) {chosen}", given).fetchone()
            groups = _grouped(connection, request)
    names = sorted(groups)
    if request.by not in _TIMES:
        names.sort(key=lambda name: -groups[name].sums.requests)
    shown = [(redact(name) if request.by == "client" else name, groups[name]) for name in names if request.by]
    return RequestMetrics(
        since=iso(request.since),
        until=iso(request.until),
        first=iso(ends[0]),
        last=iso(ends[1]),
        total=_figures(_together(groups.values())),
        groups=[_figures(group, name) for name, group in shown],
        recorded=recorded,
        dropped=dropped,
    )


def comparison(path: Path, request: RequestFilter) -> AbComparison:
    """Return the two sides of a comparison. Raises `TelemetryUnavailable`."""
    chosen, given = _chosen(request)
    counts = "count(DISTINCT coalesce(connection, '')), count(*), sum(outcome != 'ok')"
    query = f"SELECT arm, {counts}, {_VALUES} {chosen} AND arm IS NOT NULL GROUP BY 1 ORDER BY 1"
    with _reading(path) as connection:
        rows = [] if connection is None else connection.execute(query, given).fetchall()
    return AbComparison(since=iso(request.since), until=iso(request.until), arms=[_side(*row) for row in rows])


def _side(arm: str, connections: int, requests: int, errors: int, *values: str) -> ArmFigures:
    _, sizes, tokens = (_percentiles(orjson.loads(each)) for each in values)
    return ArmFigures(
        arm=arm,
        connections=connections,
        requests=requests,
        requests_per_connection=round(requests / connections, 2),
        errors=errors,
        error_share=round(errors / requests, 4),
        bytes=sizes,
        tokens=tokens,
    )


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the file as `_opened` does. Raises `TelemetryUnavailable`."""
    try:
        with _opened(path) as connection:
            yield connection
    except sqlite3.Error:
        raise TelemetryUnavailable(path) from None


def _together(groups: Collection[Group]) -> Group:
    sums = Sums(*map(sum, zip(*(group.sums for group in groups), strict=True))) if groups else NOTHING
    errors: Counter[str] = Counter()
    for group in groups:
        errors.update(group.errors)
    return Group(sums, errors, [[value for group in groups for value in group.values[place]] for place in range(3)])


def _figures(group: Group, name: str | None = None) -> RequestFigures:
    sums, errors = group.sums, group.errors
    ms, sizes, tokens = (_percentiles(values) if values else None for values in group.values)

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
