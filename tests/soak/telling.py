"""The output of a soak: lines about the progress, and a summary in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.table import percentile
from tests.soak.conversation import Called
from tests.soak.vitals import MEGABYTE, Look, Watch

_COLUMNS = (
    "minute", "sessions", "events", "archived", "index MB", "WAL MB", "asked", "p50 ms", "p95 ms", "max ms",
    "found s", "errors", "troubles", "watch MB", "server MB", "all MB", "files", "threads",
)  # fmt: skip
_WIDTHS = tuple(max(len(column), 7) for column in _COLUMNS)

HEAD = " ".join(column.rjust(width) for column, width in zip(_COLUMNS, _WIDTHS, strict=True))
"""The columns: contents and size of the index; results of the latest questions, and the time until a new line was
found; own memory of the watcher and of the largest server, and PSS of all servers; most open files and threads."""


def line(looks: Sequence[Look], calls: Sequence[Called], held: Iterable[int], troubles: int) -> str:
    """Return a line about the progress. `held` are the numbers of sessions, events and archived logs."""
    look = looks[-1]
    asked = [call.milliseconds for call in calls if call.of_a_client]
    lags = [call.milliseconds / 1000 for call in calls if call.what == "until found"]
    servers = [vital for name, vital in look.vitals.items() if name.startswith("server")]
    watcher = [vital.own for name, vital in look.vitals.items() if name == "watch"]
    figures = (
        f"{look.seconds / 60:.1f}", *held, _megabytes([look.stored]), _megabytes([look.wal for look in looks], 1),
        len(asked), *(f"{percentile(asked, share):.0f}" if asked else "-" for share in (0.5, 0.95, 1)),
        f"{max(lags):.1f}" if lags else "-", sum(bool(call.code) for call in calls), troubles, _megabytes(watcher),
        _megabytes([vital.own for vital in servers]), _megabytes([sum(vital.proportional for vital in servers)]),
        max((vital.descriptors for vital in look.vitals.values()), default="-"),
        max((vital.threads for vital in look.vitals.values()), default="-"),
    )  # fmt: skip
    return " ".join(str(figure).rjust(width) for figure, width in zip(figures, _WIDTHS, strict=True))


def _megabytes(sizes: Sequence[int], digits: int = 0) -> str:
    """Format the largest of some sizes."""
    return f"{max(sizes) / MEGABYTE:.{digits}f}" if sizes else "-"


def summary(deeds: Iterable[dict[str, Any]], calls: Sequence[Called], watch: Watch) -> Iterator[str]:
    """Yield what happened to logs, the results of every kind of question, the errors, and the growth of memory."""
    done = Counter(deed["act"] for deed in deeds)
    yield "done to logs: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
    yield f"{'ms':<32} {'count':>7} {'errors':>7} {'p50':>8} {'p95':>8} {'max':>8}"
    for what in sorted({call.what for call in calls}):
        times = [call.milliseconds for call in calls if call.what == what]
        errors = sum(bool(call.code) for call in calls if call.what == what)
        spread = " ".join(f"{percentile(times, share):8.0f}" for share in (0.5, 0.95, 1))
        yield f"{what:<32} {len(times):>7} {errors:>7} {spread}"
    codes = Counter(call.code for call in calls if call.code)
    yield "errors that may come: " + (", ".join(f"{code} {count}" for code, count in codes.items()) or "none")
    yield f"{'own memory, MB':<32} {'then':>7} {'last':>7} {'most':>7}"
    for name, then, last, most in watch.slopes():
        yield f"{name:<32} {then:7.0f} {last:7.0f} {most:7.0f}"
