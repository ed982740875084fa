"""The figures of recorded requests: how many, how fast, how large, how they were made to fit, which errors."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from agtrace_indexer.redact import redact
from agtrace_schema.metrics import AbComparison, ArmFigures, Percentiles, RequestFigures, RequestMetrics

from agtrace.answers.telemetry import store
from agtrace.answers.telemetry.store import NOTHING, Compared, Group, Sums, Wanted
from agtrace.problems import TelemetryUnavailable
from agtrace.times import iso


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
