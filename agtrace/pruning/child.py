"""The server as a child of the runner: started out of the terminal's reach, listened to, and ended for certain.

It leads a session of its own, so Ctrl-C doesn't reach it, and it ends when the runner does: its stdin is a pipe that
closes then. Should it not, or should a file be left, a shell that waits for the same sees to both (`_LAST_WILL`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_MOST_AT_ONCE = 65_536
_LONGEST_LINE = 16_384

_AFTER_KILL = 5.0
"""Seconds within which the system ends a killed process."""

_LAST_WILL = """
while read -r word; do server=; done
rm -f "$1"
[ -n "$server" ] && sleep 2 && kill -s KILL -- "-$server" 2>/dev/null
"""
"""A line on stdin says that the server has ended by itself, so that its number may be another's now."""


class Ended(NamedTuple):
    """How a process ended."""

    exit_code: int | None = None
    signal: str | None = None
    """The name of the signal that ended it, such as SIGKILL."""

    @classmethod
    def of(cls, returncode: int) -> Ended:
        """Return how a process with this code of `subprocess` ended."""
        if returncode >= 0:
            return cls(returncode)
        try:
            return cls(signal=signal.Signals(-returncode).name)
        except ValueError:
            return cls(signal=str(-returncode))

    def __str__(self) -> str:
        return f"ended by {self.signal}" if self.signal else f"ended with exit code {self.exit_code}"


class Child:
    """A server that was started; for use in one thread."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], file: Path, relay: Callable[[bytes], None]
    ) -> None:
        """Start it; `relay` gets each line that it writes but the first that says it is ready. Raises `OSError`."""
        self._file, self._relay = file, relay
        self._process = subprocess.Popen(
            command, env=environment, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._unfinished = b""
        self._open = True
        self._will = self._last_will()
        self.port: int | None = None
        """Where it listens, once it has said so."""
        self.ended: Ended | None = None

    @property
    def pid(self) -> int:
        """The number of its process and of its group."""
        return self._process.pid

    def fileno(self) -> int | None:
        """Return the descriptor of its output, as long as there may be more."""
        return self._output if self._open else None

    def listen(self) -> bool:
        """Take up some of what it has written; return whether there may be more."""
        try:
            received = os.read(self._output, _MOST_AT_ONCE) if self._open else b""
        except BlockingIOError:
            return False
        self._open = bool(received)
        *lines, rest = (self._unfinished + received).split(b"\n")
        if not self._open or len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._unfinished = rest
        for line in lines:
            if self.port is None and (port := _port(line)) is not None:
                self.port = port
            else:
                self._relay(line)
        return self._open

    def has_ended(self) -> bool:
        """Look whether it has ended; if so, end what is left of its group."""
        if self.ended is None and (code := self._process.poll()) is not None:
            self._settle(code)
        return self.ended is not None

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and its group at once."""
        if self.ended is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._settle(self._process.wait(_AFTER_KILL))

    def close(self) -> None:
        """Release everything after its end: pipes, the file, the shell."""
        assert self._process.stdin is not None and self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        if self._will is not None:
            self._will.kill()
            self._will.wait()
            assert self._will.stdin is not None
            self._will.stdin.close()

    def _settle(self, returncode: int) -> None:
        self.ended = Ended.of(returncode)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        last = time.monotonic() + 1  # somebody else may have its output, and write on and on
        while time.monotonic() < last and self.listen():
            pass
        if self._will is not None and self._will.stdin is not None:
            with suppress(OSError):
                os.write(self._will.stdin.fileno(), b"ended\n")

    def _last_will(self) -> subprocess.Popen[bytes] | None:
        script = f"server={self.pid}{_LAST_WILL}"
        try:
            return subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", os.fspath(self._file)], start_new_session=True, cwd="/",
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:  # then only the server itself sees to it
            return None


def _port(line: bytes) -> int | None:
    """Return the port in the record of a server that is ready; None for any other line."""
    if b"mcp_pruner.ready" not in line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    port = record.get("port") if isinstance(record, dict) and record.get("event") == "mcp_pruner.ready" else None
    return port if isinstance(port, int) and 0 < port < 65_536 else None
