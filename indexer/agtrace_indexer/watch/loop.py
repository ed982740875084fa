"""Keeping the index fresh: a run soon after logs change."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path

from agtrace_indexer.index.lock import Busy
from agtrace_indexer.run import Summary, index
from agtrace_indexer.watch.watcher import LOOK_ALONE, Watcher

# All in seconds.

_QUIET = 0.3
"""Changes in such quick succession lead to a single run: an agent writes several lines at once."""

_LATEST = 2.0
"""The longest time from a first change to its run, even if changes go on: logs grow for hours without a pause."""

_LOOK = 60.0
"""Time between two runs without a change, since some may not be reported."""

_REST = 10
"""The pause after a run is at least this many times the duration of the quickest run, so that looking at very
many files takes at most a tenth of one processor."""

_PATIENCE = 1.0
"""How long another process may write before waiting for it is reported: a question takes less."""

_RETRY = 5.0
"""Time until a run that failed or met another process is tried again, unless a log changes before that."""


def watch(
    database: Path,
    roots: Iterable[str],
    before: Summary,
    tell: Callable[[str], None],
    keep_days: int | None = None,
    *,
    archive: bool = True,
) -> Generator[tuple[Summary, Summary]]:
    """Keep the index fresh while the iterator is consumed; yield each run that changed something, after the one before.

    `before` is the summary of the run that made the index; `roots` are for an index that has lost its own.
    If another process is writing, wait for it; if a run fails, try again. `tell` gets a sentence about
    either, and another if changes aren't reported; each is told once. `keep_days` and `archive` are as in `run.index`.
    """
    roots = list(roots)
    trouble, looking = None, False
    quickest = 0.0  # seconds of the quickest run, which only had to look; 0 before the first one
    with closing(Watcher(database, roots)) as watcher:
        while True:
            watcher.renew()
            if watcher.problem is not None and not looking:
                looking = True
                tell(f"no change notifications ({watcher.problem}): looking for changes every {LOOK_ALONE:.0f} s")
            problem = None
            try:
                summary = index(database, (), otherwise=roots, patience=_PATIENCE, keep_days=keep_days, archive=archive)
            except Busy:
                problem = "another agtrace is indexing: waiting for it"
            except (OSError, sqlite3.Error) as error:
                problem = f"the logs can't be indexed: {error}; trying again"
            else:
                quickest = min(quickest or summary.seconds, summary.seconds)
                if summary.files_changed or summary.files_seen != before.files_seen:
                    yield before, summary
                before = summary
            if problem is not None and problem != trouble:
                tell(problem)
            trouble = problem
            _rest(watcher, _RETRY if trouble else _LOOK, _REST * quickest)


def _rest(watcher: Watcher, seconds: float, at_least: float) -> None:
    """Return when changes have calmed down, a root has appeared or vanished, or it is time to look again."""
    start = time.monotonic()
    if watcher.wait(seconds):
        watcher.wait_for_quiet(_QUIET, _LATEST)
    else:
        watcher.close()  # a moved folder may no longer be watched: the next run watches anew
    time.sleep(max(start + at_least - time.monotonic(), 0))
