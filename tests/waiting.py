"""Waiting for what other threads and processes do: with an end that fails, and says what did not come."""

from __future__ import annotations

import time
from collections.abc import Callable

MINUTE = 60.0


def until(is_so: Callable[[], object], what: str, seconds: float = MINUTE) -> None:
    """Wait until something is so; fail if it isn't within some seconds, on a quiet machine it takes a moment."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.002)
