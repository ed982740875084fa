"""Signals while an agent runs: it gets each exactly as if it had been started without us.

The agent stays in our process group, so what a terminal sends (Ctrl-C, Ctrl-Z, a new size) reaches it directly. What
somebody sends to this process alone is passed on.
"""

from __future__ import annotations

import os
import signal
import termios
from contextlib import suppress
from types import FrameType

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_OF_JOB_CONTROL = (signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Takes signals in the place of an agent, as a context in the main thread. One that is ignored stays so."""

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        """The last signal that asked for an end while there was no agent."""
        self._agent: int | None = None
        self._woken, self._waking = os.pipe()

    def __enter__(self) -> Signals:
        for end in (self._woken, self._waking):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._take)
        for number in (*_FROM_TERMINAL, *_PASSED_ON):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)
        return self

    def __exit__(self, *error: object) -> None:
        """Ignore what comes from now on: the process is ending, as its agent ended."""
        for number in (*_FROM_TERMINAL, *_PASSED_ON):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(self._woken)
        os.close(self._waking)

    def fileno(self) -> int:
        """Return a descriptor that can be read after a signal."""
        return self._woken

    def clear(self) -> None:
        """Take note of all signals up to now."""
        with suppress(BlockingIOError):
            while os.read(self._woken, 512):
                pass

    def adopt(self, agent: int) -> None:
        """Pass signals on to this process from now on, also one that came while it was being started."""
        self._agent = agent
        if self.asked is not None:
            self._send(self.asked)
            self.asked = None

    def release(self) -> None:
        """Note that the agent has ended."""
        self._agent = None

    def _take(self, number: int, _frame: FrameType | None) -> None:
        taken = signal.Signals(number)
        if taken is signal.SIGCHLD:
            return
        if self._agent is None:
            self.asked = self.asked if taken in _OF_JOB_CONTROL else taken
        elif taken not in _FROM_TERMINAL or not _terminal_sends_signals():
            self._send(taken)

    def _send(self, number: signal.Signals) -> None:
        if self._agent is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._agent, number)


def _terminal_sends_signals() -> bool:
    """Whether a key at a terminal sends signals to our group, so that the agent got this one as well."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        local_modes = termios.tcgetattr(terminal)[3]
        return os.tcgetpgrp(terminal) == os.getpgrp() and bool(local_modes & termios.ISIG)
    except (OSError, termios.error):
        return False
    finally:
        os.close(terminal)


def stop_like_agent() -> None:
    """Stop this process, as its agent has stopped, so that the shell takes over; return when the shell lets us go on.

    Does nothing without a shell that could do so: the system ignores the signal then.
    """
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, before)


def end_like(number: int) -> None:
    """End this process by a signal, as its agent ended; without another core file."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
