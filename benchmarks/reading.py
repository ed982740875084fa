"""The share of a worker's reading time that the search for secrets takes, by agent.

One process reads the same files, in the portions that workers get, again and again, alternately with and without the
search. The cache of short strings is cleared before each turn, as a new worker has none. Times are this process's
processor times, as the processor is shared with others.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index.tombstones import Tombstones
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.parallel import worker
from agtrace_indexer.parallel.pool import portions
from agtrace_indexer.providers.registry import AGENTS

from benchmarks.masking import Logs, without_masking
from benchmarks.table import number, table

TURNS = 5
"""The fewest turns, however large the logs are."""
_HEAD = ["agent", "files", "MB", "turns", "with, MB/s", "without, MB/s", "share %, median", "share %, best"]


def report(logs: Logs, megabytes: float) -> str:
    """Measure the share for each agent by reading this many megabytes (10^6 bytes) of its logs each way."""
    redact.redact("")
    rows = [_row(AGENTS[agent].title, files, megabytes) for agent, files in logs.items()]
    return table(_HEAD, rows)


def _row(name: str, files: Sequence[LogFile], megabytes: float) -> list[str]:
    size = sum(found.size for found in files) / 1e6
    turns = max(TURNS, round(megabytes / size))
    cut = portions(list(files))
    searched: list[float] = []
    plain: list[float] = []
    for turn in range(turns):
        for search in (turn % 2 == 0, turn % 2 == 1):
            (searched if search else plain).append(_seconds(cut, search=search))
    median = statistics.median(one - other for one, other in zip(searched, plain, strict=True))
    return [
        name,
        number(len(files), 0),
        number(size, 2),
        number(turns, 0),
        number(size / statistics.median(searched)),
        number(size / statistics.median(plain)),
        number(100 * median / statistics.median(searched)),
        number(100 * (min(searched) - min(plain)) / min(searched)),
    ]


def _seconds(cut: Iterable[list[LogFile]], *, search: bool) -> float:
    """Return the processor time in seconds to read the files into an index for each portion."""
    strings.start()
    with nullcontext() if search else without_masking():
        start = time.process_time()
        for portion in cut:
            worker.read(portion, Tombstones(), Archive(Path(), enabled=False))
        return time.process_time() - start
