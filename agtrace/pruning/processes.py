"""Commands and searches as processes: their output is read as it comes, and none of them outlives a call.

Each leads a process group of its own. The group is ended when its leader has ended, when its time is up, when the call
is cancelled and when this process dies, also by SIGKILL (`Guard`). What leaves the group, as `setsid` does, escapes.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

Sink = Callable[[bytes], bool]
"""Takes a piece of what a process writes, and returns whether more is wanted."""

LINGER = 0.2
"""Seconds in which what a command left in the background may still write, once the command itself has ended."""
GRACE, GRACE_OF_THE_REST = 1.0, 0.3
"""Seconds between SIGTERM and SIGKILL for a command that is ended, and for what it left in the background."""
LAST = 1.0
"""Seconds for reading what was written before SIGKILL."""

_PIECE = 262_144
_PAUSE = 0.02

_ON_DEATH = 'read -r _ && exit; [ -n "$2" ] && rm -f -- "$2"; kill -s KILL -- "-$1"'


class Guard:
    """A small shell that kills a process group, and removes a file, if this process dies before it is dismissed."""

    def __init__(self, group: int, file: Path | None = None) -> None:
        """Start it. Raises `OSError`."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _ON_DEATH, "sh", str(group), os.fspath(file or "")], start_new_session=True, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def dismiss(self) -> None:
        """Let it end without doing anything: the group is gone, and its number may be another's."""
        with suppress(OSError):
            self._shell.communicate(b"\n")


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    duration_ms: float
    why: Literal["itself", "timeout", "enough"] = "itself"
    """Whether it was ended because its time was up, or because no more of its output was wanted."""


async def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float, output: Sink, errors: Sink
) -> Ended:
    """Run a program (its path and its arguments) in a folder until it ends, at most so many seconds.

    Its stdin is empty. What it writes goes to the two sinks, in a thread; when one of them wants no more, the program
    is ended. What it left in the background may write a little longer and is then ended too. Raises `OSError` if the
    program can't be started.
    """
    import anyio
    from anyio import lowlevel, to_thread

    cancelled = threading.Event()

    def work() -> Ended | OSError:
        try:
            with _Command(arguments, folder, environment, output, errors) as command:
                return command.ended_within(seconds, cancelled)
        except OSError as error:
            return error

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        with anyio.CancelScope(shield=True):  # nothing outlives a call, also one that is cancelled
            ended = await to_thread.run_sync(work)
        tasks.cancel_scope.cancel()
    await lowlevel.checkpoint_if_cancelled()
    if isinstance(ended, OSError):
        raise ended
    return ended


class _Command:
    """A running process with its group, as a context; for use in one thread."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: Sink, errors: Sink
    ) -> None:
        self._began = time.monotonic()
        self._enough = False
        self._process = subprocess.Popen(
            arguments, bufsize=0, cwd=folder, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            self._guard = Guard(self._process.pid)
        except OSError:
            self._signal(signal.SIGKILL)
            self._process.wait()
            raise
        self._pipes = selectors.DefaultSelector()
        for pipe, sink in ((self._process.stdout, output), (self._process.stderr, errors)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._pipes.register(pipe, selectors.EVENT_READ, sink)

    def __enter__(self) -> _Command:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:  # something unforeseen ended the wait for it
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._guard.dismiss()
        self._pipes.close()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def ended_within(self, seconds: float, cancelled: threading.Event) -> Ended:
        """Wait until it has ended, or end it; then end its group, and take what there is still to read."""
        self._listen(seconds, lambda: self._process.poll() is not None or self._enough or cancelled.is_set())
        duration = 1000 * (time.monotonic() - self._began)
        alone = self._process.poll() is not None
        if alone:
            self._listen(LINGER, lambda: not self._group_lives() or self._enough or cancelled.is_set())
        if self._group_lives():
            self._signal(signal.SIGTERM, signal.SIGCONT)
            self._listen(GRACE_OF_THE_REST if alone else GRACE, lambda: not self._group_lives())
        if self._group_lives():
            self._signal(signal.SIGKILL)
        self._listen(LAST, lambda: not self._pipes.get_map() and self._process.poll() is not None)
        return Ended(self._process.wait(), duration, "itself" if alone else "enough" if self._enough else "timeout")

    def _listen(self, seconds: float, done: Callable[[], bool]) -> None:
        ends = time.monotonic() + seconds
        while not done() and (left := ends - time.monotonic()) > 0:
            for key, _ in self._pipes.select(min(left, _PAUSE)):
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    self._pipes.unregister(key.fileobj)
                elif not self._enough:
                    self._enough = not key.data(piece)

    def _group_lives(self) -> bool:
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except OSError:
            return False
        return True

    def _signal(self, *numbers: int) -> None:
        for number in numbers:
            with suppress(OSError):
                os.killpg(self._process.pid, number)
