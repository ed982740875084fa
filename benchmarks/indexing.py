"""Cold index: all logs of a corpus into an index that doesn't exist yet, beside the raw limits and the peers."""

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
"""Seconds below which a peer runs as often as agtrace at least does."""

_HEAD = ("cold index", "tool output", "cores", "MB", "s", "MB/s", "agtrace is", "index %", "peak MB", "largest MB")


@dataclass(frozen=True, slots=True)
class Cold:
    """What it took to index a corpus."""

    seconds: float
    """The median of the runs."""
    bytes: int
    index_bytes: int
    events: int

    @property
    def rate(self) -> float:
        """10^6 bytes of logs a second."""
        return self.bytes / 1e6 / self.seconds

    @property
    def share(self) -> float:
        """The index in % of the logs."""
        return 100 * self.index_bytes / self.bytes


def cold(machine: Machine, logs: Path, runs: int = RUNS) -> Cold:
    """Index a corpus that is in the page cache, several times from nothing."""
    warm(logs)
    return _cold(machine, logs, [_once(machine, logs) for _ in range(runs)])


def _once(machine: Machine, logs: Path) -> float:
    """Seconds of the command."""
    machine.forget()
    return machine.agtrace("index", str(logs))


def _cold(machine: Machine, logs: Path, seconds: list[float]) -> Cold:
    (events,) = machine.connect().execute("SELECT count(*) FROM event").fetchone()
    return Cold(statistics.median(seconds), size_of(logs), machine.index_bytes, events)


def watched(machine: Machine, logs: Path) -> Peak | None:
    """Index a corpus once more for its memory: looking at it takes time."""
    machine.forget()
    with machine.start("index", str(logs)) as process:
        return peak(process)


def report(ground: Ground, megabytes: int, peers_folder: Path | None) -> Iterator[str]:
    """The table. agtrace runs before, between and behind the others: a machine isn't equally quiet all the time."""
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
    counts = f"agtrace {len(seconds)}, limits {RUNS}, peers {RUNS}, or 1 where it takes {_QUICK:g} s"
    yield f"{run.events:,} events. Medians of so many runs: {counts}."
    yield from (f"{peer.name}: {other.note}." for peer, other in others if other.note)
    fastest = max((o.rate for peer, o in others if peer.indexes_tool_output and o.exit_code == 0), default=0.0)
    if fastest:
        yield f"agtrace is {ratio(run.rate, fastest)} the fastest peer that indexes tool output and came to an end."


def _peer_run(peer: Peer, logs: Path, folder: Path) -> IndexRun:
    """Index with a peer, on the file system of the corpus, so that its home can be made of hard links."""
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
