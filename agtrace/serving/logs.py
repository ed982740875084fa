"""The log: lines of JSON on stderr, ours and those of the libraries. stdout belongs to the protocol."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


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
    logging.basicConfig(level=logging.WARNING, handlers=[_Lines()], force=True)


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        trace = {"trace": "".join(traceback.format_exception(*record.exc_info))} if record.exc_info else {}
        level = record.levelname.lower()
        log_to_stderr({"event": "log", "level": level, "from": record.name, "message": record.getMessage(), **trace})
