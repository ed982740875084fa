"""Growth with the data: the same measurements at several sizes, with the factors between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agtrace_indexer.run import index

from benchmarks import queries
from benchmarks.freshness import milliseconds
from benchmarks.ground import Ground, files_of
from benchmarks.indexing import RUNS, cold
from benchmarks.searching import in_process
from benchmarks.table import percentile, ratio, table

SIZES = (100, 300, 1000, 3000)
_ONCE = 1000
"""The megabytes from which a corpus is indexed only once."""
_CHECKS = 20

_HEAD = ("MB", "files", "events", "index s", "MB/s", "index MB", "index %", "check ms", "search p50 ms", "p95 ms")


@dataclass(frozen=True, slots=True)
class Size:
    """The figures of one size, in the order of the table."""

    megabytes: float
    files: float
    events: float
    seconds: float
    rate: float
    index_megabytes: float
    share: float
    check: float
    p50: float
    p95: float

    @property
    def figures(self) -> tuple[float, ...]:
        """All figures, in the order of the table."""
        return (
            self.megabytes, self.files, self.events, self.seconds, self.rate, self.index_megabytes, self.share,
            self.check, self.p50, self.p95,
        )  # fmt: skip


def report(ground: Ground, sizes: Sequence[int]) -> Iterator[str]:
    """Yield the table, and a table of factors."""
    measured = [_measure(ground, megabytes) for megabytes in sizes]
    digits = (0, 0, 0, 2, 1, 1, 1, 1, 2, 1)
    yield table(
        _HEAD, [[f"{value:,.{n}f}" for value, n in zip(size.figures, digits, strict=True)] for size in measured]
    )
    pairs = list(pairwise(measured))
    pairs += [(one, measured[-1]) for one in measured[1:-2]]
    if pairs:
        yield table(
            ("factor from .. to", *_HEAD[1:], "MB"),
            [[f"{one.megabytes:,.0f} .. {other.megabytes:,.0f} MB", *_factors(one, other)] for one, other in pairs],
        )


def _measure(ground: Ground, megabytes: int) -> Size:
    logs = ground.corpus(megabytes)
    machine = ground.machine(f"growth-{megabytes}")
    ground.say(f"growth: {megabytes} MB")
    run = cold(machine, logs, 1 if megabytes >= _ONCE else RUNS)
    check = milliseconds(lambda: index(machine.database, ()), _CHECKS)
    connection = machine.connect()
    times = in_process(connection, queries.chosen(connection), ground.rounds)
    machine.forget()
    return Size(
        run.bytes / 1e6, len(files_of(logs)), run.events, run.seconds, run.rate, run.index_bytes / 1e6, run.share,
        percentile(check, 0.5), percentile(times, 0.5), percentile(times, 0.95),
    )  # fmt: skip


def _factors(one: Size, other: Size) -> list[str]:
    factors = [ratio(second, first) for first, second in zip(one.figures, other.figures, strict=True)]
    return [*factors[1:], factors[0]]
