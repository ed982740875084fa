"""Watching the running sessions: a look at all of them, and then a wait until something changes in a log."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from agtrace_indexer.index.opening import one_moment
from agtrace_indexer.watch.watcher import Watcher

from agtrace.answers.running import running
from agtrace.index.reader import Index, home_roots
from agtrace.index.trouble import Freshness, as_sentence
from agtrace.problems import IndexUnavailable, Problem
from agtrace.sessions.activity import Running
from agtrace.sessions.prices import PriceTable
from agtrace.settings.model import Settings

Read = TypeVar("Read")

# All in seconds.

_AGAIN = 0.25
"""Time until the next look if the index was behind, or if a change led to the last: others may yet be reported."""

_UNCHANGED = 60.0
"""The longest time between two looks."""

_LEAST_REST, _MOST_REST = 0.1, 0.5
"""The pause between two looks, however often the logs change: long looks have long ones."""


class ActivityPoller:
    """Looks at the running sessions again and again. For one thread, but for `end`, `read` and `tried`."""

    def __init__(
        self, settings: Settings, prices: PriceTable, *, within: float, clock: Callable[[], float] = time.time
    ) -> None:
        """Prepare to look; sessions that were active within so many seconds are shown, and open questions of a day."""
        self._prices, self._within, self._clock = prices, within, clock
        self._index = Index(settings)
        self._watcher = Watcher(settings.database, home_roots(settings))
        self._behind, self._changed, self._took = True, False, 0.0
        self._ended = threading.Event()
        self._asked: dict[tuple[int, int], bool] = {}
        """Which sessions asked something, by row id and last activity: their logs aren't read again at each look."""

    def look(self, seconds: float = 2.0) -> Running:
        """Return what is running, after bringing the index up to date for at most so long."""
        start = time.monotonic()
        self._watcher.renew()
        try:
            freshness = self._index.refresh(seconds)
            self._behind = freshness.state != "ready"
            now = round(1000 * self._clock())
            return self.read(
                lambda connection: running(
                    connection,
                    self._prices,
                    now=now,
                    within_ms=round(1000 * self._within),
                    asked=self._asked,
                    problem=_problem(freshness),
                )
            )
        except IndexUnavailable as problem:
            self._behind = True
            return Running((), (), problem=as_sentence(problem))
        finally:
            self._took = time.monotonic() - start

    def read(self, ask: Callable[[sqlite3.Connection], Read]) -> Read:
        """Return what is read from the index as it is at one moment. Raises `IndexUnavailable` if it can't be read."""
        try:
            with self._index.reader() as reader:
                connection = reader.connection
                with one_moment(connection):
                    self._index.check_masks(connection)
                    return ask(connection)
        except (sqlite3.Error, OSError) as error:
            raise self._index.explain(error) from error
        except (LookupError, ValueError, TypeError) as error:  # a damaged index has anything in it
            damaged = self._index.damage()
            raise damaged or IndexUnavailable("the index couldn't be read just now", "Run: agtrace doctor") from error

    def tried(self, ask: Callable[[sqlite3.Connection], Read]) -> Read | str:
        """Return what `read` does, or why that isn't possible, as a sentence."""
        try:
            return self.read(ask)
        except Problem as problem:
            return problem.message

    def wait(self) -> None:
        """Return when it is time to look again."""
        self._ended.wait(min(max(self._took, _LEAST_REST), _MOST_REST))
        self._changed = self._watcher.wait(_AGAIN if self._behind or self._changed else _UNCHANGED)

    def end(self) -> None:
        """End the wait that goes on, and any later one at once; from any thread."""
        self._ended.set()
        self._watcher.end()

    def close(self) -> None:
        """Give the watches back to the system."""
        self._watcher.close()


def _problem(freshness: Freshness) -> str | None:
    """Say what an index lacks that isn't up to date."""
    if freshness.problem is not None:
        return freshness.problem
    if freshness.state == "building":
        files = "" if freshness.files_behind is None else f", {freshness.files_behind} files to go"
        return f"the logs are being indexed for the first time{files}"
    return None
