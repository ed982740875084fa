"""The server's log: lines of JSON on stderr, with those of libraries. stdout belongs to the protocol."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any


def log_to_stderr(record: Mapping[str, Any]) -> None:
    """Write a record as one line."""
    with suppress(OSError, ValueError):  # a closed stderr must not cost an answer
        sys.stderr.write(json.dumps(record) + "\n")
        sys.stderr.flush()


def silent(record: Mapping[str, Any]) -> None:
    """Log only defects."""
    if record["event"] == "internal_error":
        log_to_stderr(record)


_QUIET_SECONDS = 60


def capture_library_logs() -> None:
    """Write warnings of libraries as lines of this log."""
    logging.basicConfig(level=logging.WARNING, handlers=[Lines()], force=True)


class Lines(logging.Handler):
    """Writes a record as a line; a repeated fault once a minute, with the number of repetitions.

    What a fault is, `fault` says.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._quiet: dict[tuple[object, ...], tuple[float, int]] = {}
        """Fault -> (time until which it isn't logged, repetitions since)."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless the fault was logged recently."""
        fault = self.fault(record)
        until, unsaid = self._quiet.get(fault, (0.0, 0))
        if self._now() < until:
            self._quiet[fault] = (until, unsaid + 1)
            return
        self._quiet[fault] = (self._now() + _QUIET_SECONDS, 0)
        trace = {"trace": "".join(traceback.format_exception(*record.exc_info))} if record.exc_info else {}
        repeated = {"repeated": unsaid} if unsaid else {}
        said = {"level": record.levelname.lower(), "from": record.name, "message": record.getMessage()}
        log_to_stderr({"event": "log", **said, **repeated, **trace})

    def fault(self, record: logging.LogRecord) -> tuple[object, ...]:
        """Return the fault: its place in the code and its kind of exception, since its message may contain a number."""
        return (record.pathname, record.lineno, record.exc_info and record.exc_info[0])
