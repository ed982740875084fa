"""Commands and searches as processes: their output is read as it comes, and nothing of them outlives a call.

Each runs in a session of its own under a keeper (`keeper.py`), a small process that ends it with all that it started:
when it has ended itself, when its time is up, when the call is cancelled, and when this process dies, also by SIGKILL.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
from agtrace_indexer.redact.names import Strength, strength

from agtrace.pruning import keeper

Sink = Callable[[bytes], bool]
"""Takes a piece of what a process writes, and returns whether more is wanted."""

_PIECE = 262_144
_AT_ONCE = 4
"""The most pieces that are read before other tasks get their turn: together as much as a pipe holds."""
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
_PATIENCE = keeper.GRACE + keeper.LAST + 2.0
"""Seconds that a keeper has for ending everything, before it is killed itself."""
_KEEPERS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What a keeper gets of the environment: a command can read that of its parent."""
_NO_SECRETS = frozenset({"PWD", "DESKTOP_SESSION", "GDMSESSION", "KDE_FULL_SESSION"})
"""Usual variables whose names read like those of secrets."""


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    duration_ms: float
    why: Literal["itself", "timeout", "enough"] = "itself"
    """Whether it was ended because its time was up, or because no more of its output was wanted."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that are named like secrets."""
    return {
        name: value
        for name, value in environment.items()
        if name in _NO_SECRETS or strength(name) is Strength.NONE
    }  # fmt: skip


async def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float, output: Sink, errors: Sink
) -> Ended:
    """Run a program (its path and its arguments) in a folder until it ends, at most so many seconds.

    Its stdin is empty. What it writes goes to the two sinks; when one of them wants no more, the program is ended.
    What it left in the background may write a little longer and is then ended too. Raises `OSError` if the program
    can't be started.
    """
    command = _Command(folder, output, errors, {name: environment[name] for name in _KEEPERS if name in environment})
    try:
        async with anyio.create_task_group() as readers:
            for pipe in command.pipes:
                readers.start_soon(pipe.read)
            with anyio.move_on_after(seconds):
                await command.begin(arguments, environment)
                await command.end_of_its_own()
            command.time_is_up()
            await command.end()
            readers.cancel_scope.cancel()
        return command.result()
    finally:
        with anyio.CancelScope(shield=True):
            await command.end()
        command.close()


class _Pipe:
    """What a process writes to stdout or stderr."""

    def __init__(self, descriptor: int, sink: Sink, enough: Callable[[], None]) -> None:
        self._descriptor, self._sink, self._enough = descriptor, sink, enough
        os.set_blocking(descriptor, False)
        if _SET_PIPE_SIZE is not None:
            with suppress(OSError):  # it stays as it was
                fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _AT_ONCE * _PIECE)

    async def read(self) -> None:
        """Read until the end, or until no more is wanted."""
        while True:
            await anyio.wait_readable(self._descriptor)
            if not self.take():
                return

    def take(self) -> bool:
        """Take what is there, not all of it if that is a lot; return whether there may be more."""
        for _ in range(_AT_ONCE):
            try:
                piece = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                return True
            if not piece:
                return False
            if not self._sink(piece):
                self._enough()
                return False
        return True


class _Command:
    """One process with its keeper."""

    def __init__(self, folder: Path, output: Sink, errors: Sink, environment: Mapping[str, str]) -> None:
        self._began, self._duration = time.monotonic(), 0.0
        self._why: Literal["itself", "timeout", "enough"] = "itself"
        self._unread, self._gone = b"", False
        self._process: int | None = None
        self._code: int | None = None
        self._trouble: int | None = None
        self._reports, report = os.pipe()
        os.set_blocking(self._reports, False)
        file = [sys.executable, "-I", "-S", keeper.__file__, str(report)]
        try:
            self._keeper = subprocess.Popen(
                file, bufsize=0, stdin=-1, stdout=-1, stderr=-1, cwd=folder, env=environment, pass_fds=(report,),
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(self._reports)
            raise
        finally:
            os.close(report)
        assert self._keeper.stdin and self._keeper.stdout and self._keeper.stderr
        self._order = self._keeper.stdin
        os.set_blocking(self._order.fileno(), False)
        written = ((self._keeper.stdout, output), (self._keeper.stderr, errors))
        self.pipes = [_Pipe(file.fileno(), sink, self._enough) for file, sink in written]

    async def begin(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Tell the keeper what to start."""
        variables = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        order = memoryview(keeper.ordered([os.fsencode(argument) for argument in arguments], variables))
        with suppress(BrokenPipeError):  # it has ended, which its reports show
            while order:
                await anyio.wait_writable(self._order)
                order = order[os.write(self._order.fileno(), order) :]

    async def end_of_its_own(self) -> None:
        """Wait until the process has ended, though others that it started may still be there."""
        while self._code is None and not self._gone:
            await self._hear()
        self._duration = time.monotonic() - self._began

    def time_is_up(self) -> None:
        """Let the process be ended, if it hasn't ended itself."""
        if self._code is None and not self._gone:
            self._duration = time.monotonic() - self._began
            self._why = "timeout"
        self._let_go()

    async def end(self) -> None:
        """Let everything be ended that is still there, and wait until it is gone."""
        self._let_go()
        with anyio.move_on_after(_PATIENCE):
            while not self._gone:
                await self._hear()
        if not self._gone:  # the keeper was stopped, or hangs
            self._kill()
            while not self._gone:
                await self._hear()

    def result(self) -> Ended:
        """Return how it ended, when everything has. Raises `OSError` if it couldn't be started."""
        if self._trouble is not None:
            raise OSError(self._trouble, os.strerror(self._trouble))
        for pipe in self.pipes:
            pipe.take()
        if self._code is None:
            self._kill()  # the keeper was killed, and couldn't do it
        return Ended(-signal.SIGKILL if self._code is None else self._code, self._duration * 1000, self._why)

    def close(self) -> None:
        """Close all pipes and leave no trace of the keeper, which has ended."""
        self._keeper.wait()
        os.close(self._reports)
        for file in (self._keeper.stdin, self._keeper.stdout, self._keeper.stderr):
            if file is not None:
                file.close()

    def _enough(self) -> None:
        if self._why == "itself" and self._code is None:
            self._why = "enough"
        self._let_go()

    def _let_go(self) -> None:
        self._order.close()

    def _kill(self) -> None:
        self._keeper.kill()
        with suppress(OSError):
            if self._process is not None:
                os.killpg(self._process, signal.SIGKILL)

    async def _hear(self) -> None:
        """Wait for reports of the keeper; none will follow when it has ended."""
        await anyio.wait_readable(self._reports)
        piece = os.read(self._reports, _PIECE)
        self._gone = not piece
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            kind, number = line.split()
            if kind == b"began":
                self._process = int(number)
            elif kind == b"ended":
                self._code = int(number)
            else:
                self._trouble = int(number)
