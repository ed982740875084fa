"""Where the log of a run goes: a file that is kept small, or stderr. Logging never fails and never waits for long.

A line that can't be written is left out: no agent is kept from its work by a full disk.
"""

from __future__ import annotations

import json
import os
import select
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agtrace.problems import SettingError
from agtrace.settings.environment import data_dir

FILE = "run.log"
"""The log in the data folder."""

STDERR = 2

_LARGEST_FILE = 1_048_576
"""Bytes after which the log in the data folder begins anew; the one before is kept beside it."""

_ALLOWANCE = 1_048_576
"""Bytes that a server may write into the log at once,"""

_ALLOWANCE_EACH_SECOND = 1_024
"""and in addition to them in each second: a server that writes without end doesn't fill a disk."""

_LONGEST_LINE = 16_384

_PATIENCE_MS = 500
"""How long a log that is a full pipe is waited for."""


class Journal:
    """The log of a run: JSON lines."""

    def __init__(self, descriptor: int | None, rotated: Path | None = None) -> None:
        """Write to this descriptor of our own, or to nothing; the file `rotated` is begun anew when it is large."""
        self._descriptor, self._rotated = descriptor, rotated
        self._since = time.monotonic()
        self._relayed = self.left_out = 0

    @classmethod
    def usual(cls) -> Journal:
        """Return the log in the data folder if stderr is a terminal, which belongs to the agent, else on stderr."""
        if not os.isatty(STDERR):
            return cls(_copy_of_stderr())
        file = data_dir() / FILE
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(_opened(file), file)
        return cls(None)

    @classmethod
    def at(cls, name: str) -> Journal:
        """Return a log in a file that the user names, `-` for stderr. Raises `SettingError`."""
        try:
            return cls(_copy_of_stderr() if name == "-" else _opened(Path(name)))
        except OSError as error:
            raise SettingError(f"can't write the log {name}: {error.strerror or error}") from error

    def write(self, record: Mapping[str, Any]) -> None:
        """Write a record as a line of its own."""
        self._put(json.dumps(record, ensure_ascii=False).encode(errors="replace") + b"\n")

    def relay(self, line: bytes) -> None:
        """Write a line of the server's: its own record, or any other text within one."""
        if not line.strip():
            return
        if self._relayed + len(line) > _ALLOWANCE + _ALLOWANCE_EACH_SECOND * (time.monotonic() - self._since):
            self.left_out += len(line)
            return
        self._relayed += len(line)
        if _is_record(line):
            self._put(line.strip() + b"\n")
        else:
            self.write({"at": round(time.time(), 3), "output": line[:_LONGEST_LINE].decode(errors="replace").rstrip()})

    def close(self) -> None:
        """Say how much of the server's output was left out, and close the log."""
        if self.left_out:
            self.write({"at": round(time.time(), 3), "output_left_out_bytes": self.left_out})
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _put(self, line: bytes) -> None:
        if self._descriptor is None:
            return
        with suppress(OSError):
            self._begin_anew_if_large()
            while line:
                try:
                    line = line[os.write(self._descriptor, line) :]
                except BlockingIOError:  # an agent may have made the pipe that both write to one that never blocks
                    if not _ready_for_more(self._descriptor):
                        return

    def _begin_anew_if_large(self) -> None:
        if self._rotated is None or self._descriptor is None or os.fstat(self._descriptor).st_size < _LARGEST_FILE:
            return
        with suppress(OSError):
            if os.path.samestat(os.stat(self._rotated), os.fstat(self._descriptor)):  # else another run has done it
                self._rotated.replace(self._rotated.with_name(f"{self._rotated.name}.1"))
        fresh = _opened(self._rotated)
        os.close(self._descriptor)
        self._descriptor = fresh


def _opened(file: Path) -> int:
    """Open a log to append to. Raises `OSError`, also for a pipe that nobody reads."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.set_blocking(descriptor, True)
    return descriptor


def _copy_of_stderr() -> int | None:
    try:
        return os.dup(STDERR)
    except OSError:
        return None


def _ready_for_more(descriptor: int) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT)
    return bool(waiting.poll(_PATIENCE_MS))


def _is_record(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{") or len(line) > _LONGEST_LINE:
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
