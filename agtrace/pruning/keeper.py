"""The keeper of one command: a process of its own that starts the command and ends everything that is left of it.

It is run as a file by `processes.py` and loads nothing of ours. Its stdin brings the order (`ordered` says how it is
written) and then stays open for as long as the command is wanted: when it ends, because its server let go or died in
whatever way, the command is ended with all that it started. Its stdout and stderr are the command's. The descriptor
that its argument names takes reports, one on a line: `began PID`, `ended CODE` (negative for a signal), `failed ERRNO`.

On Linux the keeper adopts all orphans below it, so that a process that left the command's group is ended as well.
Elsewhere a process that begins a session of its own escapes.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

LINGER = 0.2
"""Seconds in which what a command left in the background may still write, once the command itself has ended."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for a command that is ended."""
GRACE_OF_THE_REST = 0.3
"""The same for what a command left in the background."""
LAST = 2.0
"""Seconds in which everything must be gone after SIGKILL; what isn't can't be ended by anyone."""

_PAUSE = 0.05
_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AS_AT_FIRST = (*_TO_END, signal.SIGQUIT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)
"""What Python or the keeper changed, and a command expects as it usually is."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36


def main(report: int) -> None:
    """Carry out the order on stdin, and end when nothing of the command is left."""
    os.set_inheritable(report, False)
    woken = _signals()
    adopting = _control(_SET_CHILD_SUBREAPER, 1)
    order = _received()
    if order is None:
        return
    command = _Command(_started(*order, report), report, woken, adopting)
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)  # the server sees the end of the output when the command's processes have ended
    os.dup2(silence, 2)
    command.keep()


def ordered(arguments: list[bytes], environment: list[bytes]) -> bytes:
    """Return an order: the number of arguments, that of bytes, and the arguments and variables (NAME=VALUE), with NULs.

    The first argument is the path of the program.
    """
    body = b"\0".join((*arguments, *environment))
    return b"%d %d\n" % (len(arguments), len(body)) + body


def _received() -> tuple[list[bytes], dict[bytes, bytes]] | None:
    """Read the order: arguments and environment. None if the server is gone before it was written."""
    head = bytearray()
    while not head.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return None
        head += piece
    number, size = map(int, head.split())
    body = bytearray()
    while len(body) < size:
        piece = os.read(0, size - len(body))
        if not piece:
            return None
        body += piece
    parts = bytes(body).split(b"\0")
    variables = (part.partition(b"=") for part in parts[number:])
    return parts[:number], {name: value for name, _, value in variables}


def _started(arguments: list[bytes], environment: dict[bytes, bytes], report: int) -> int:
    """Start the command in a session of its own and return its process id."""
    keeper = os.getpid()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in _AS_AT_FIRST:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if os.getppid() == keeper:
            os.execve(arguments[0], arguments, environment)
    except OSError as error:
        _say(report, f"failed {error.errno}")
    finally:
        os._exit(127)


def _signals() -> int:
    """Return a descriptor that can be read whenever a child has ended or this process is told to end."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in (*_TO_END, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return woken


def _control(option: int, value: int) -> bool:
    """Set an option of this process in Linux's kernel; return whether that was possible, as it isn't elsewhere."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _say(report: int, line: str) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(report, f"{line}\n".encode())


class _Command:
    """A running command, as the keeper sees it."""

    def __init__(self, process: int, report: int, woken: int, adopting: bool) -> None:
        """`adopting`: whether all that the command starts and leaves becomes a child of this process."""
        self._process, self._report, self._woken, self._adopting = process, report, woken, adopting
        self._ended = False
        _say(report, f"began {process}")

    def keep(self) -> None:
        """Wait for the end of the command, or of the wish for it; then end all that is left."""
        wanted = True
        while wanted and self._anything_left() and not self._ended:
            wanted = self._sleep(None)
        if self._ended:
            self._wait_for_all(LINGER)
        self._end_all(GRACE_OF_THE_REST if self._ended else GRACE)

    def _sleep(self, seconds: float | None) -> bool:
        """Sleep until something happens, at most some seconds; return whether the command is still wanted.

        Without a limit, the end of stdin is something that happens.
        """
        watched = [self._woken] if seconds is not None else [self._woken, 0]
        ready, _, _ = select.select(watched, [], [], seconds)
        signals = b""
        with suppress(BlockingIOError):
            signals = os.read(self._woken, 4096)
        return not (0 in ready or any(number in signals for number in _TO_END))

    def _anything_left(self) -> bool:
        """Take note of children that have ended; return whether anything of the command is still there."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._adopting and self._group_lives()
            if not process:
                return True
            if process == self._process:
                self._ended = True
                _say(self._report, f"ended {os.waitstatus_to_exitcode(status)}")

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._process, 0)
        except OSError:
            return False
        return True

    def _wait_for_all(self, seconds: float) -> bool:
        """Wait until nothing is left; return False if something is after so many seconds."""
        limit = time.monotonic() + seconds
        while self._anything_left():
            rest = limit - time.monotonic()
            if rest <= 0:
                return False
            self._sleep(min(rest, _PAUSE))
        return True

    def _end_all(self, grace: float) -> None:
        """End everything that is left, kindly at first."""
        if not self._anything_left():
            return
        self._signal(signal.SIGTERM, signal.SIGCONT)
        if self._wait_for_all(grace):
            return
        limit = time.monotonic() + LAST
        self._signal(signal.SIGKILL)
        while not self._wait_for_all(_PAUSE) and time.monotonic() < limit:  # it may have started more meanwhile
            self._signal(signal.SIGKILL)

    def _signal(self, *numbers: int) -> None:
        for number in numbers:
            with suppress(OSError):
                os.killpg(self._process, number)
            for process in _descendants():
                with suppress(OSError):
                    os.kill(process, number)


def _descendants() -> list[int]:
    """Return all processes below this one, children first; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                children.setdefault(int(stat.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for process in found:  # which grows meanwhile
        found.extend(children.get(process, ()))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
