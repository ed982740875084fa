"""The time limit of a search."""

from __future__ import annotations

import time

from agtrace.problems import SearchTimeout
from agtrace.settings import SEARCH_TIMEOUT_SECONDS

_SHORTEST = 0.001


class Deadline:
    """A moment after which a search gives up."""

    def __init__(self, seconds: float = SEARCH_TIMEOUT_SECONDS) -> None:
        self._seconds = seconds
        self._stop = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds left, never 0: some libraries take 0 for no limit."""
        return max(self._stop - time.monotonic(), _SHORTEST)

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._stop

    def at_most(self, seconds: float) -> Deadline:
        """Return a deadline at most this far away, and no later than this one."""
        return Deadline(min(self.left, seconds))

    @property
    def problem(self) -> SearchTimeout:
        """The error to raise once the time is up."""
        return SearchTimeout(self._seconds)

    def check(self) -> None:
        """Raise `SearchTimeout` if the time is up."""
        if self.passed:
            raise self.problem
