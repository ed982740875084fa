"""The resources of processes and files: memory, descriptors and threads from /proc, bytes of the index and its WAL."""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")

MEGABYTE = 1_000_000

LARGEST_WAL = 96 * MEGABYTE
"""The WAL is truncated to 32 MB whenever no reader needs it; a long read and a large commit may coincide."""

LARGEST = 400 * MEGABYTE
"""The limit of a process's own (anonymous) memory: a page cache of 64 MB per connection, answers, analyses."""

_MORE = 1.25, 24 * MEGABYTE
"""A leak is memory in the last third that exceeds that in the second by this factor and by this many bytes."""

_MORE_DESCRIPTORS = 6
_MOST_THREADS = 64

_JUDGED_FROM = 12
"""The fewest samples of a process for its memory to be judged: before, it is still loading."""


class Vital(NamedTuple):
    """One process at one moment; sizes in bytes."""

    resident: int
    """Including mapped pages of the index, which the system can take back at any time."""
    proportional: int
    """The same, with each shared page counted proportionally (PSS)."""
    own: int
    """Anonymous memory: allocated by the process, and not reclaimable."""
    descriptors: int
    threads: int


class Look(NamedTuple):
    """A sample of everything at one moment."""

    seconds: float
    """Since the beginning."""
    vitals: Mapping[str, Vital]
    wal: int
    """Bytes of the write-ahead log."""
    stored: int
    """Bytes of the index without it."""


def of(pid: int) -> Vital | None:
    """Return the resources of a process; None if it has ended, or if the system has no /proc."""
    try:
        memory = _numbers(_PROC / str(pid) / "smaps_rollup")
        threads = _numbers(_PROC / str(pid) / "status")["Threads"]
        descriptors = len(os.listdir(_PROC / str(pid) / "fd"))
    except (OSError, KeyError):
        return None
    resident, proportional, own = (memory.get(name, 0) * 1024 for name in ("Rss", "Pss", "Anonymous"))
    return Vital(resident, proportional, own, descriptors, threads)


def _numbers(file: Path) -> dict[str, int]:
    """Return the lines `Name: number ...` of a file in /proc."""
    parts = (line.partition(":") for line in file.read_text().splitlines())
    return {name: int(rest.split()[0]) for name, _, rest in parts if rest.split() and rest.split()[0].isdigit()}


@dataclass(slots=True)
class Watch:
    """Samples the same processes and files again and again."""

    database: Path
    processes: Callable[[], Mapping[str, int]]
    """Returns the names and ids of the processes that are running."""
    began: float = field(default_factory=time.monotonic)
    looks: list[Look] = field(default_factory=list)

    def look(self) -> None:
        """Take a sample."""
        found = {name: vital for name, pid in self.processes().items() if (vital := of(pid)) is not None}
        wal = self.database.with_name(f"{self.database.name}-wal")
        self.looks.append(Look(time.monotonic() - self.began, found, _size(wal), _size(self.database)))

    def troubles(self) -> Iterator[str]:
        """Yield what exceeded its limit, as sentences."""
        wal = max((look.wal for look in self.looks), default=0)
        if wal > LARGEST_WAL:
            yield f"the WAL had {wal / MEGABYTE:.0f} MB"
        for name in sorted({name for look in self.looks for name in look.vitals}):
            vitals = [look.vitals[name] for look in self.looks if name in look.vitals]
            yield from _troubles_of(name, vitals, ran_long=len(vitals) >= self._long)

    def slopes(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield each long-running process: its name, own memory in MB in the second and last third, and the peak."""
        for name in sorted({name for look in self.looks for name in look.vitals}):
            own = [look.vitals[name].own for look in self.looks if name in look.vitals]
            if len(own) >= self._long:
                second, last = _thirds(own)
                yield name, second / MEGABYTE, last / MEGABYTE, max(own) / MEGABYTE

    @property
    def _long(self) -> int:
        """The samples that make a process long-running: one that has just begun is still filling its caches."""
        return max(_JUDGED_FROM, len(self.looks) // 4)


def _troubles_of(name: str, vitals: Sequence[Vital], *, ran_long: bool) -> Iterator[str]:
    own = [vital.own for vital in vitals]
    if max(own) > LARGEST:
        yield f"{name} took {max(own) / MEGABYTE:.0f} MB"
    if max(vital.threads for vital in vitals) > _MOST_THREADS:
        yield f"{name} had {max(vital.threads for vital in vitals)} threads"
    if not ran_long:
        return
    second, last = _thirds(own)
    if last > second * _MORE[0] and last > second + _MORE[1]:
        yield f"{name} grew from {second / MEGABYTE:.0f} to {last / MEGABYTE:.0f} MB"
    second, last = _thirds([vital.descriptors for vital in vitals])
    if last > second + _MORE_DESCRIPTORS:
        yield f"{name} had {second:.0f} open files, then {last:.0f}"


def _thirds(values: Sequence[int]) -> tuple[float, float]:
    """Return the medians of the second and the last third."""
    third = len(values) // 3
    return statistics.median(values[third : 2 * third]), statistics.median(values[2 * third :])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def counted(database: Path) -> tuple[int, int]:
    """Return the numbers of sessions and events in an index."""
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        row = connection.execute("SELECT count(*), coalesce(sum(event_count), 0) FROM session").fetchone()
    return int(row[0]), int(row[1])
