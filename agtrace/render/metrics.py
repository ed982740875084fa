"""Figures of requests as a table, for people."""

from __future__ import annotations

from agtrace_schema.metrics import AbComparison, ArmFigures, RequestFigures, RequestMetrics
from agtrace_schema.requests import RequestsBy
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, Row, figure, nothing, plain_line, print_table, when
from agtrace.text.numbers import counted, percent, size

_RIGHT = frozenset({"requests", "errors", "p50 ms", "p95 ms", "p99 ms", "p50 size", "largest", "pages", "cut"})
_NEEDED = {"p99 ms": 100, "largest": 100, "pages": 100, "cut": 100, "p95 ms": 60, "p50 size": 60}
"""The columns that a narrower terminal has no room for, so that what a row is about stays."""


def metrics(found: RequestMetrics, by: RequestsBy) -> None:
    """Print the figures of all requests and of each group, then what was too large and which errors there were."""
    total = found.total
    period = f", {when(found.first)} to {when(found.last)}" if found.first else ""
    OUT.print(Text(f"{counted(total.requests, 'request')}, {counted(total.errors, 'error')}{period}", style="bold"))
    if not total.requests:
        none = "No request is recorded yet: `agtrace setup` adds the server to an agent."
        nothing("No matching requests in this period." if found.recorded else none)
        return
    rows = [_row(group, by) for group in found.groups]
    if len(rows) > 1:
        rows.append(_row(total, by))
    print_table(rows, _RIGHT, frozenset(column for column, needed in _NEEDED.items() if OUT.width < needed))
    if total.oversized:
        before, after = size(total.oversized_asked_bytes), size(total.oversized_bytes)
        share = percent(total.oversized / total.requests)
        OUT.print(f"{counted(total.oversized, 'answer')} ({share}) made smaller to fit: {before} to {after}")
    if total.error_codes:
        errors = ", ".join(f"{code} {number:,}" for code, number in total.error_codes.items())
        OUT.print(Text(f"errors: {plain_line(errors)}", style=STYLES["failed"]))
    if found.dropped:
        OUT.print(Text(f"{counted(found.dropped, 'request')} could not be recorded", style=STYLES["failed"]))


def comparison(found: AbComparison) -> None:
    """Print a column for each side of a comparison: sizes, calls that followed, errors."""
    if not found.arms:
        nothing("Nothing was compared in this period. Set ab.mode to split to turn comparison on.")
        return
    sides = {arm.arm: _side(arm) for arm in found.arms}
    labels = {label: None for side in sides.values() for label in side}
    rows: list[Row] = [
        {**{arm: side.get(label, "") for arm, side in sides.items()}, "answers": label} for label in labels
    ]
    print_table(rows, frozenset(sides), frozenset())


def _side(found: ArmFigures) -> dict[str, str]:
    return {
        "connections": figure(found.connections),
        "requests": figure(found.requests),
        "requests per connection": f"{found.requests_per_connection:.1f}",
        "errors": percent(found.error_share),
        "bytes, p50": figure(round(found.bytes.p50)),
        "bytes, p95": figure(round(found.bytes.p95)),
    }


def _row(found: RequestFigures, by: RequestsBy) -> Row:
    assert found.milliseconds is not None and found.bytes is not None
    ms, sizes = found.milliseconds, found.bytes
    return {
        "requests": figure(found.requests),
        "errors": Text(figure(found.errors or None), style=STYLES["failed"]),
        "p50 ms": f"{ms.p50:.1f}",
        "p95 ms": f"{ms.p95:.1f}",
        "p99 ms": f"{ms.p99:.1f}",
        "p50 size": size(round(sizes.p50)),
        "largest": size(round(sizes.largest)),
        "pages": percent(found.paginated_share),
        "cut": percent(found.cut_share),
        by: Text("all" if found.group is None else plain_line(found.group)),
    }
