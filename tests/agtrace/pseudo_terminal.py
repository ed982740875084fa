"""A process in a terminal of its own, driven by keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.agtrace.terminal import AGTRACE

SECONDS = 300
"""How long anything is waited for at most."""


class Terminal:
    """A process in a terminal of its own."""

    def __init__(self, *arguments: str, columns: int, **environment: str) -> None:
        self.text = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", **environment})
            os.execv(AGTRACE, ["agtrace", *arguments])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def until(self, wanted: str, seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        while wanted not in self.plain:
            left = end - time.monotonic()
            assert left > 0, f"not there: {wanted}\n{self.plain[-3000:]}"
            if select.select([self._terminal], [], [], left)[0]:
                self._read()

    def _read(self) -> bool:
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # the other side has gone
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def _readable(self, pressing: str) -> bool:
        """Press keys, if any, until there is something to read; return whether to look again."""
        if not pressing or select.select([self._terminal], [], [], 0.1)[0]:
            return False
        self.press(pressing)
        return True

    @property
    def plain(self) -> str:
        return re.sub(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]", "", self.text)

    @property
    def shown(self) -> str:
        """The same, its lines ended as anywhere."""
        return self.plain.replace("\r", "")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def end(self, pressing: str = "") -> int:
        """Wait for the end; the keys are pressed again and again, as what reads them may throw some away."""
        while self._readable(pressing) or self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def in_terminal(*arguments: str, columns: int, **environment: str) -> Iterator[Terminal]:
    """A process in a terminal; it is killed if it takes longer than anything may."""
    terminal = Terminal(*arguments, columns=columns, **environment)
    timer = threading.Timer(3 * SECONDS, os.kill, (terminal.pid, signal.SIGKILL))
    timer.start()
    try:
        yield terminal
    finally:
        timer.cancel()
