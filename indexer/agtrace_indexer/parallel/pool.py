"""Reading many new logs on all cores: worker processes read, this one writes.

A worker gives back a whole small index, which is taken in by SQL (`index/shards.py`). Only logs that the index doesn't
know are read in this way; whatever continues, moved or replaced another is decided by the one reader beside the index.

Measured with 1,024 MB of logs on 2 cores: one process 30 s, two workers and the writer 15 s.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agtrace_indexer.index import shards, word_index
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.progress import Progress
from agtrace_indexer.parallel.processes import Crew
from agtrace_indexer.parallel.worker import MOST

LEAST = 16 * 1024 * 1024
"""Bytes of new logs from which on workers are started: it takes them 0.2 s."""

_PORTION = 8 * 1024 * 1024
"""Bytes of logs of one request: what is taken in at once, and held in memory by each process."""

_COMPRESSION = 8
"""How many times larger than a compressed log its content is taken to be."""

_MOST_FILES = 200
_MOST_WORKERS = 4
"""The writer keeps up with about four readers."""


def read_all(
    files: list[Found],
    store: Store,
    database: Path,
    progress: Progress,
    report: Callable[[Progress], None],
    deadline: float | None = None,
) -> set[str]:
    """Read new logs on all cores into the index, committing as it goes; called between two transactions.

    Gives the paths of those that were read: what a dead worker leaves, what is no log where one was before, and what
    there was no time for is left to the reader beside the index.
    """
    done: set[str] = set()
    shards.attach(store.connection)
    bulk = word_index.begin_bulk(store.connection)
    try:
        with Crew(
            portions(files), min(cores(), _MOST_WORKERS), _read_by, "agtrace_indexer.parallel.worker", str(database)
        ) as workers:
            for given, read in workers.answers(deadline):
                if not read.rows:
                    continue
                left = shards.take_in(store, read.rows)
                store.commit()
                if bulk and word_index.waiting(store.connection, word_index.INSERTED) >= word_index.AT_ONCE:
                    store.begin()
                    word_index.insert(store.connection)
                    store.commit()
                done.update(found.path for found in given if found.path not in left)
                progress.add(read.progress)
                progress.files_done = len(done)
                progress.bytes_done += sum(found.size for found in given if found.path in done)
                report(progress)
    finally:
        shards.detach(store.connection)
    return done


class _Read(NamedTuple):
    """What a worker has read."""

    rows: bytes
    """An index of the files; empty where they were too much for it."""
    progress: dict[str, Any]


def portions(files: list[Found]) -> deque[list[Found]]:
    """Cut the work, in its order."""
    cut: deque[list[Found]] = deque()
    size = 0
    for found in files:
        if not cut or size + _content(found) > _PORTION or len(cut[-1]) >= _MOST_FILES:
            cut.append([])
            size = 0
        cut[-1].append(found)
        size += _content(found)
    return cut


def is_for_workers(found: Found) -> bool:
    """Whether a log is small enough to be held in memory; a larger one is read piece by piece beside the index."""
    return _content(found) <= MOST


def _content(found: Found) -> int:
    return found.size * _COMPRESSION if found.path.endswith(".zst") else found.size


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_by(process: subprocess.Popen[bytes], files: list[Found]) -> _Read:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(orjson.dumps([tuple(found) for found in files]) + b"\n")
    process.stdin.flush()
    said = orjson.loads(process.stdout.readline())
    rows = process.stdout.read(said["size"])
    if len(rows) < said["size"]:
        raise ValueError("the worker died")
    return _Read(rows, said["progress"])
