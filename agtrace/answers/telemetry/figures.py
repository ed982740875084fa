"""The figures of recorded requests: how many, how fast, how large, how they were made to fit, which errors."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agtrace_indexer.redact import redact
from agtrace_schema.metrics import Percentiles, RequestFigures, RequestMetrics
from agtrace_schema.requests import RequestOutcome, RequestsBy

from agtrace.answers.telemetry import store
from agtrace.answers.telemetry.request import Request
from agtrace.problems import TelemetryUnavailable
from agtrace.sessions.query import iso

_OUTCOMES: dict[RequestOutcome, Callable[[Request], bool]] = {
    "ok": lambda request: request.outcome == "ok",
    "error": lambda request: request.outcome != "ok",
    "paginated": lambda request: request.paginated,
    "chunked": lambda request: request.chunked,
    "summarized": lambda request: request.summarized,
    "pruned": lambda request: request.pruned,
    "cut": lambda request: request.cut,
    "oversized": lambda request: request.asked_bytes > request.bytes,
}

_GROUPS: dict[RequestsBy, Callable[[Request], str]] = {
    "tool": lambda request: request.tool,
    "client": lambda request: " ".join(filter(None, (request.client or "unknown", request.client_version))),
    "day": lambda request: _time(request.at)[:10],
    "hour": lambda request: _time(request.at)[:13] + ":00",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which requests, and in which groups."""

    since: int | None = None
    """Milliseconds since 1970 UTC, as is `until`."""
    until: int | None = None
    tool: str | None = None
    outcome: RequestOutcome | None = None
    by: RequestsBy | None = None


def metrics(path: Path, wanted: Wanted, dropped: int | None = None) -> RequestMetrics:
    """Return the figures of the requests in a telemetry file. Raises `TelemetryUnavailable`."""
    try:
        requests, recorded = store.between(path, wanted.since, wanted.until, wanted.tool), store.count(path)
    except sqlite3.Error:
        raise TelemetryUnavailable(path) from None
    if wanted.outcome is not None:
        requests = list(filter(_OUTCOMES[wanted.outcome], requests))
    return RequestMetrics(
        since=iso(wanted.since),
        until=iso(wanted.until),
        total=figures(requests),
        groups=[] if wanted.by is None else _grouped(requests, wanted.by),
        recorded=recorded,
        dropped=dropped,
    )


def _grouped(requests: Sequence[Request], by: RequestsBy) -> list[RequestFigures]:
    groups: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        groups[_GROUPS[by](request)].append(request)
    names = sorted(groups) if by in ("day", "hour") else sorted(groups, key=lambda name: (-len(groups[name]), name))
    return [figures(groups[name], redact(name)) for name in names]


def figures(requests: Sequence[Request], group: str | None = None) -> RequestFigures:
    """Return the figures of some requests."""
    errors = Counter(request.outcome for request in requests if request.outcome != "ok")
    oversized = list(filter(_OUTCOMES["oversized"], requests))

    def share(of: RequestOutcome) -> float:
        return round(sum(map(_OUTCOMES[of], requests)) / len(requests), 4) if requests else 0.0

    return RequestFigures(
        group=group,
        requests=len(requests),
        errors=errors.total(),
        error_codes=dict(sorted(errors.items())),
        milliseconds=_percentiles([request.ms for request in requests]),
        bytes=_percentiles([request.bytes for request in requests]),
        tokens=_percentiles([request.tokens for request in requests]),
        total_tokens=sum(request.tokens for request in requests),
        paginated_share=share("paginated"),
        chunked_share=share("chunked"),
        summarized_share=share("summarized"),
        pruned_share=share("pruned"),
        cut_share=share("cut"),
        oversized=len(oversized),
        oversized_asked_bytes=sum(request.asked_bytes for request in oversized),
        oversized_bytes=sum(request.bytes for request in oversized),
        stale=sum(request.index_state != "ready" for request in requests),
    )


def _percentiles(values: Sequence[float]) -> Percentiles | None:
    """Return percentiles by nearest rank: each is a value that occurred."""
    if not values:
        return None
    ordered = sorted(values)
    p50, p95, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99))
    return Percentiles(p50=p50, p95=p95, p99=p99, largest=ordered[-1])


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat()
