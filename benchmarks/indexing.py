"""Cold index: all logs of a corpus into a new index, compared with the raw limits and the peers."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import limits, peers
from benchmarks.ground import Ground, Machine, size_of, warm
from benchmarks.memory import Peak, peak
from benchmarks.peers import IndexRun, Peer
from benchmarks.table import NOTHING, number, ratio, table

RUNS = 3
PEERS_LIMIT = 900.0
"""Seconds after which a peer is stopped."""
_QUICK = 60.0
"""A peer whose first run takes fewer seconds is run `RUNS` times."""

_HEAD = ("cold index", "tool output", "cores", "MB", "s", "MB/s", "agtrace is", "index %", "peak MB", "largest MB")


@dataclass(frozen=True, slots=True)
class Cold:
    """The figures of indexing a corpus."""

    seconds: float
    """The median of the runs."""
    bytes: int
    index_bytes: int
    events: int

    @property
    def rate(self) -> float:
        """10^6 bytes of logs per second."""
        return self.bytes / 1e6 / self.seconds

    @property
    def share(self) -> float:
        """The index in % of the logs."""
        return 100 * self.index_bytes / self.bytes


def cold(machine: Machine, logs: Path, runs: int = RUNS) -> Cold:
    """Index a corpus in the page cache several times, each time into a new index."""
    warm(logs)
    return _cold(machine, logs, [_once(machine, logs) for _ in range(runs)])


def _once(machine: Machine, logs: Path) -> float:
    """Return the seconds that the command takes."""
    machine.forget()
    return machine.agtrace("index", str(logs))


def _cold(machine: Machine, logs: Path, seconds: list[float]) -> Cold:
    (events,) = machine.connect().execute("SELECT count(*) FROM event").fetchone()
    return Cold(statistics.median(seconds), size_of(logs), machine.index_bytes, events)


def watched(machine: Machine, logs: Path) -> Peak | None:
    """Index a corpus once more to measure memory, which takes time itself; None if that isn't possible here."""
    machine.forget()
    with machine.start("index", str(logs)) as process:
        return peak(process)


def report(ground: Ground, megabytes: int, peers_folder: Path | None) -> Iterator[str]:
    """Yield the table. agtrace runs before, between and after the others, as a machine isn't always equally quiet."""
    logs = ground.corpus(megabytes)
    machine = ground.machine(f"{megabytes}")
    warm(logs)
    ground.say(f"cold index of {megabytes} MB")
    memory = watched(machine, logs)
    seconds = [_once(machine, logs)]
    ground.say("raw limits")
    possible = limits.limits(logs, min(megabytes, limits.MEGABYTES), RUNS)
    seconds.append(_once(machine, logs))
    others: list[tuple[Peer, IndexRun]] = []
    for peer in peers.install(peers_folder) if peers_folder else []:
        ground.say(f"cold index by {peer.name}")
        runs: list[IndexRun] = []
        while not runs or (len(runs) < RUNS and runs[0].seconds < _QUICK and not runs[0].note):
            runs.append(_peer_run(peer, logs, ground.folder))
            seconds.append(_once(machine, logs))
        others.append((peer, sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]))
    seconds += [_once(machine, logs) for _ in range(RUNS - len(seconds))]
    run = _cold(machine, logs, seconds)
    ground.keep(megabytes, machine)
    rows = [_own(run, memory)]
    for name, limit in possible.items():
        figures = [number(limit.bytes / 1e6, 0), number(limit.seconds, 2), number(limit.rate), _of(run, limit.rate)]
        rows.append([f"limit: {name}", "yes", "1", *figures, *[NOTHING] * 3])
    rows += [_peer(peer, other, run) for peer, other in others]
    yield table(_HEAD, rows)
    counts = f"{len(seconds)} runs for agtrace, {RUNS} for limits, {RUNS} for peers, or 1 if a run takes {_QUICK:g} s"
    yield f"{run.events:,} events. Medians of {counts}."
    yield from (f"{peer.name}: {other.note}." for peer, other in others if other.note)
    fastest = max((o.rate for peer, o in others if peer.indexes_tool_output and o.exit_code == 0), default=0.0)
    if fastest:
        times = ratio(run.rate, fastest)
        yield f"agtrace is {times} as fast as the fastest peer that indexes tool output and finished."


def _peer_run(peer: Peer, logs: Path, folder: Path) -> IndexRun:
    """Index with a peer, with a home on the file system of the corpus, so that it can consist of hard links."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        return peer.index(logs.absolute(), Path(home).absolute(), PEERS_LIMIT)


def _own(run: Cold, memory: Peak | None) -> list[str]:
    together, largest = (memory.together / 1e6, memory.largest / 1e6) if memory else (None, None)
    figures = [number(run.bytes / 1e6, 0), number(run.seconds, 2), number(run.rate), NOTHING, number(run.share)]
    return ["agtrace index", "yes", "all", *figures, number(together, 0), number(largest, 0)]


def _peer(peer: Peer, run: IndexRun, own: Cold) -> list[str]:
    indexes = "yes" if peer.indexes_tool_output else "no"
    share = 100 * run.database_bytes / run.bytes_indexed if run.bytes_indexed else None
    figures = [number(run.bytes_indexed / 1e6, 0), number(run.seconds, 2), number(run.rate), _of(own, run.rate)]
    return [peer.name, indexes, NOTHING, *figures, number(share), NOTHING, number(run.peak_rss_bytes / 1e6, 0)]


def _of(own: Cold, rate: float) -> str:
    return ratio(own.rate, rate)
