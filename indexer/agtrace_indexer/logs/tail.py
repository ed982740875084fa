"""The last records of a log, newest first, read from its end: what is going on in it at this moment."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from typing import Any

_PIECE = 64 * 1024
_MOST = 1024 * 1024
"""Bytes from the end of a log that are looked at: a line that is longer says nothing here."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def last_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the last JSON objects of a log of JSON lines, newest first; nothing of a log that can't be read.

    A half-written last line, and lines that aren't JSON objects, are left out.
    """
    for line in _last_lines(path):
        try:
            record = json.loads(line)  # loaded by a status line, so not by way of `decoding`
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _last_lines(path: str) -> Iterator[bytes]:
    """Yield the last complete lines of a regular file, newest first."""
    try:
        descriptor = os.open(path, _HOW)
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        try:
            end = first = os.fstat(descriptor).st_size
            rest: bytes | None = None
            while first > 0 and end - first < _MOST:
                start = max(first - _PIECE, 0)
                file.seek(start)
                data, first = file.read(first - start), start
                if rest is None:  # what follows the last line break isn't complete
                    data, ended, _ = data.rpartition(b"\n")
                    if not ended:
                        continue
                lines = (data + (rest or b"")).split(b"\n")
                yield from reversed(lines[1:] if start else lines)
                rest = lines[0]
        except OSError:
            return
