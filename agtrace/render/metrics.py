"""Figures of requests as a table, for people."""

from __future__ import annotations

from agtrace_schema.metrics import AbComparison, ArmFigures, RequestFigures, RequestMetrics
from agtrace_schema.requests import RequestsBy
from rich.text import Text

from agtrace.render.terminal import OUT, STYLES, Row, figure, nothing, plain_line, print_table
from agtrace.text.numbers import counted, percent, size

_WIDE = 100
_RIGHT = frozenset({"requests", "errors", "p50 ms", "p95 ms", "p99 ms", "p50 size", "largest", "pages", "cut"})
_WIDE_ONLY = frozenset({"p99 ms", "largest", "pages", "cut"})
"""Columns that a narrow terminal has no room for."""


def metrics(found: RequestMetrics, by: RequestsBy) -> None:
    """Print the figures of all requests and of each group, then what was too large and which errors there were."""
    total = found.total
    OUT.print(Text(f"{counted(total.requests, 'request')}, {counted(total.errors, 'error')}", style="bold"))
    if not total.requests:
        nothing("Nothing was asked in this time: `agtrace setup` adds the server to an agent.")
        return
    rows = [_row(group, by) for group in found.groups]
    if len(rows) > 1:
        rows.append(_row(total, by))
    print_table(rows, _RIGHT, frozenset() if OUT.width >= _WIDE else _WIDE_ONLY)
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
    """Print the sides of a comparison: sizes, calls that followed, errors."""
    if not found.arms:
        nothing("Nothing was compared in this time: the setting ab.mode turns that on (`agtrace config`).")
        return
    print_table([_side(arm) for arm in found.arms], _RIGHT_OF_SIDES, frozenset())


_RIGHT_OF_SIDES = frozenset(
    {"connections", "requests", "per connection", "errors", "p50 size", "p95 size", "unprotected"}
)


def _side(found: ArmFigures) -> Row:
    without = found.unprotected_bytes
    return {
        "connections": figure(found.connections),
        "requests": figure(found.requests),
        "per connection": f"{found.requests_per_connection:.1f}",
        "errors": percent(found.error_share),
        "p50 size": size(round(found.bytes.p50)),
        "p95 size": size(round(found.bytes.p95)),
        "unprotected": "" if without is None else f"{size(round(without.p50))} / {size(round(without.p95))}",
        "answers": Text(found.arm),
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
