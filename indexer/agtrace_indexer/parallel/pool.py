"""Reading many new logs on all cores: worker processes read, this one writes.

A worker returns a whole small index, which is merged by SQL (`index/shards.py`). Only logs that are new to the index
are read in this way; logs that continue, moved or replaced others are left to the reader in this process.

Measured with 1,024 MB of logs on 2 cores: one process 30 s, two workers and the writer 15 s.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agtrace_indexer import redact
from agtrace_indexer.index import shards, word_index
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.logs.files import Progress
from agtrace_indexer.parallel.processes import Crew
from agtrace_indexer.parallel.worker import MOST

LEAST = 16 * 1024 * 1024
"""The least bytes of new logs for which workers are started, which takes 0.2 s."""

_PORTION = 8 * 1024 * 1024
"""Bytes of logs in one request, which each process holds in memory and which are merged at once."""

_COMPRESSION = 8
"""The assumed size of a compressed log's content, as a multiple of the log."""

_MOST_FILES = 200
_MOST_WORKERS = 4
"""The writer keeps up with about four readers."""


def read_all(
    files: list[LogFile],
    store: Store,
    database: Path,
    progress: Progress,
    report: Callable[[Progress], None],
    deadline: float = math.inf,
    *,
    archive: bool = True,
) -> set[str]:
    """Read new logs on all cores into the index, committing as it goes; called between two transactions.

    Returns the paths of those that were read. The others are left to the reader in this process: those of a dead
    worker, files that aren't logs but were before, and those for which there was no time.
    """
    done: set[str] = set()
    asked = "agtrace_indexer.parallel.worker", str(database), *(["archive"] if archive else [])
    with (
        shards.attached(store.connection),
        Crew(portions(files), min(cores(), _MOST_WORKERS), _read_by, *asked) as workers,
    ):
        redact.keep_compiled()  # while they start, as each would have to compile the rules
        for given, (rows, read) in workers.answers(deadline):
            if not rows:  # the files were too large together
                continue
            left = shards.take_in(store, rows)
            store.commit()
            if word_index.waiting(store.connection, word_index.INSERTED) >= word_index.AT_ONCE:
                store.begin()
                if word_index.prepared(store.connection):
                    word_index.insert(store.connection)
                store.commit()
            done.update(found.path for found in given if found.path not in left)
            progress.add(read)
            progress.files_done = len(done)
            progress.bytes_done += sum(found.size for found in given if found.path in done)
            report(progress)
    return done


def portions(files: list[LogFile]) -> deque[list[LogFile]]:
    """Divide files into portions, in their order."""
    cut: deque[list[LogFile]] = deque()
    size = 0
    for found in files:
        if not cut or size + _content(found) > _PORTION or len(cut[-1]) >= _MOST_FILES:
            cut.append([])
            size = 0
        cut[-1].append(found)
        size += _content(found)
    return cut


def is_for_workers(file: LogFile) -> bool:
    """Whether a log is small enough to be held in memory; a larger one is read piece by piece in this process."""
    return _content(file) <= MOST


def _content(file: LogFile) -> int:
    return file.size * _COMPRESSION if file.archived or file.path.endswith(".zst") else file.size


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_by(process: subprocess.Popen[bytes], files: list[LogFile]) -> tuple[bytes, dict[str, Any]]:
    """Have a process read files; return an index of them, and the progress."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(msgspec.json.encode(files) + b"\n")
    process.stdin.flush()
    said = orjson.loads(process.stdout.readline())
    rows = process.stdout.read(said["size"])
    if len(rows) < said["size"]:
        raise ValueError("the worker died")
    return rows, said["progress"]
