"""What the search for secrets takes of the time in which a worker reads logs, agent by agent.

The same files, in the portions that workers get, are read again and again by one process, in turns with the search and
without it. What short strings gave is forgotten before each turn, as a new worker knows nothing. Times are of this
process on the processor, which others use, too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.parallel import worker
from agtrace_indexer.parallel.pool import portions
from agtrace_indexer.providers.registry import AGENTS

from benchmarks.masking import Logs, without_masking
from benchmarks.table import number, table

TURNS = 5
"""At least, however large the logs are."""
_HEAD = ["agent", "files", "MB", "turns", "with, MB/s", "without, MB/s", "share %, median", "share %, best"]


def report(logs: Logs, megabytes: float) -> str:
    """The share for each agent, after so many megabytes (10^6 bytes) of its logs were read in either way."""
    redact.redact("")
    rows = [_row(AGENTS[agent].title, files, megabytes) for agent, files in logs.items()]
    return table(_HEAD, rows)


def _row(name: str, files: Sequence[Found], megabytes: float) -> list[str]:
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


def _seconds(cut: Iterable[list[Found]], *, search: bool) -> float:
    """Of the processor, to read the files into an index for each portion."""
    strings.start()
    with nullcontext() if search else without_masking():
        start = time.process_time()
        for portion in cut:
            worker.read(portion)
        return time.process_time() - start
