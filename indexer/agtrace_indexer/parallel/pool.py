"""Reading many new logs on all cores: worker processes read, this one writes.

A worker gives back a whole small index, which is taken in by SQL (`index/shards.py`). Only logs that the index doesn't
know are read in this way; whatever continues, moved or replaced another is decided by the one reader beside the index.

Measured with 1,024 MB of logs on 2 cores: one process 30 s, two workers and the writer 15 s.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agtrace_indexer.index import shards, word_index
from agtrace_indexer.index.store import Store
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.progress import Progress
from agtrace_indexer.parallel import processes
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

_MOST_READY = 8
"""Portions that wait to be taken in, at most: some 2 MB each."""

_PATIENCE = 0.2
"""Seconds between two looks at the clock."""


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
        with Workers(files, database) as workers:
            while workers.left and (deadline is None or time.monotonic() < deadline):
                portion = workers.take(_PATIENCE)
                if portion is None or portion.rows is None:
                    continue
                left = shards.take_in(store, portion.rows)
                store.commit()
                if bulk and word_index.waiting(store.connection, word_index.INSERTED) >= word_index.AT_ONCE:
                    store.begin()
                    word_index.insert(store.connection)
                    store.commit()
                done.update(found.path for found in portion.files if found.path not in left)
                progress.add(portion.progress)
                progress.files_done = len(done)
                progress.bytes_done += sum(found.size for found in portion.files if found.path in done)
                report(progress)
    finally:
        shards.detach(store.connection)
    return done


class Portion(NamedTuple):
    """What a worker has read, or failed to read."""

    files: list[Found]
    rows: bytes | None
    """An index of these files; None where the worker died, or they were too much for it."""
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


class Workers:
    """The worker processes, as a context: they are gone at its end, whatever they were doing."""

    def __init__(self, files: list[Found], database: Path) -> None:
        self._waiting = portions(files)
        self._database = database
        self.left = len(self._waiting)
        """Portions that weren't given yet."""
        self._ready: queue.Queue[Portion] = queue.Queue(_MOST_READY)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._feeders: list[threading.Thread] = []
        self._stopped = False

    def __enter__(self) -> Workers:
        for _ in range(min(cores(), _MOST_WORKERS, self.left)):
            with suppress(OSError):  # no process can be made: those that are there read, or none does
                self._start()
        return self

    def _start(self) -> None:
        process = processes.start("agtrace_indexer.parallel.worker", str(self._database))
        self._processes.append(process)
        self._feeders.append(threading.Thread(target=self._feed, args=(process,), daemon=True))
        self._feeders[-1].start()

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        processes.stop(self._processes)

    def take(self, seconds: float | None = None) -> Portion | None:
        """The next portion that was read; None if there is none within so many seconds."""
        try:
            portion = self._ready.get(timeout=seconds)
        except queue.Empty:
            if not any(feeder.is_alive() for feeder in self._feeders) and self._ready.empty():
                self.left = 0
            return None
        self.left -= 1
        return portion

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Give a worker one portion after the other; what it can't read is given back unread."""
        while not self._stopped:
            try:
                files = self._waiting.popleft()
            except IndexError:
                break
            try:
                self._put(_read_by(process, files))
            except (OSError, ValueError, TypeError):
                self._put(Portion(files, None, {}))
                break
        assert process.stdin is not None
        with suppress(OSError):  # it died before it read all of what it was asked
            process.stdin.close()

    def _put(self, portion: Portion) -> None:
        while not self._stopped:
            with suppress(queue.Full):
                self._ready.put(portion, timeout=_PATIENCE)
                break


def _read_by(process: subprocess.Popen[bytes], files: list[Found]) -> Portion:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(orjson.dumps([tuple(found) for found in files]) + b"\n")
    process.stdin.flush()
    said = orjson.loads(process.stdout.readline())
    rows = process.stdout.read(said["size"])
    if len(rows) < said["size"]:
        raise ValueError("the worker died")
    return Portion(files, rows or None, said["progress"])
