"""The log: lines of JSON on stderr, ours and those of the libraries. stdout belongs to the protocol."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

_QUIET_SECONDS = 60


def log_to_stderr(record: Mapping[str, Any]) -> None:
    """Write one line."""
    with suppress(OSError, ValueError):  # a log that nobody reads any more costs no answer
        sys.stderr.write(json.dumps(record) + "\n")
        sys.stderr.flush()


def silent(record: Mapping[str, Any]) -> None:
    """Log nothing but defects."""
    if record["event"] == "internal_error":
        log_to_stderr(record)


def take_libraries() -> None:
    """Write what libraries warn of in lines as ours."""
    logging.basicConfig(level=logging.WARNING, handlers=[Lines()], force=True)


class Lines(logging.Handler):
    """Writes a record in a line, and a fault that repeats itself once a minute, with how often it did.

    A fault is known by the place in the code that tells it and the kind of exception: its words may hold a number.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._quiet: dict[tuple[object, ...], tuple[float, int]] = {}
        """By fault until when nothing is said of it, and how often it came meanwhile."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or none."""
        fault = (record.pathname, record.lineno, record.exc_info and record.exc_info[0])
        until, unsaid = self._quiet.get(fault, (0.0, 0))
        if self._now() < until:
            self._quiet[fault] = (until, unsaid + 1)
            return
        self._quiet[fault] = (self._now() + _QUIET_SECONDS, 0)
        trace = {"trace": "".join(traceback.format_exception(*record.exc_info))} if record.exc_info else {}
        repeated = {"repeated": unsaid} if unsaid else {}
        said = {"level": record.levelname.lower(), "from": record.name, "message": record.getMessage()}
        log_to_stderr({"event": "log", **said, **repeated, **trace})
