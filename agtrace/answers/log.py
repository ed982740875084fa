"""The server's log: lines of JSON on stderr. stdout belongs to the protocol. `library_log` has those of libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
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
