"""How long a search may take."""

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
        """Seconds that are left, at least a few: 0 would mean no limit to some."""
        return max(self._stop - time.monotonic(), _SHORTEST)

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._stop

    def at_most(self, seconds: float) -> Deadline:
        """A deadline that is as near as this one, and not farther than this."""
        return Deadline(min(self.left, seconds))

    @property
    def problem(self) -> SearchTimeout:
        """What is answered then."""
        return SearchTimeout(self._seconds)

    def check(self) -> None:
        """Raise `SearchTimeout` if the time is up."""
        if self.passed:
            raise self.problem
