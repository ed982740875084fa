"""The processes that work for this one: Python modules that read requests from stdin and write answers to stdout.

Each ends when its input does, prints nothing, and is killed if this process is about to end itself (`end_all`).
"""

from __future__ import annotations

import math
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

Portion = TypeVar("Portion")
Answer = TypeVar("Answer")

_MOST_READY = 8
"""The most answers that wait to be taken."""

_PATIENCE = 0.2
"""Seconds between two checks of the clock."""

_RUNNING: set[subprocess.Popen[bytes]] = set()
_ENDING = threading.Event()


class Crew(Generic[Portion, Answer]):
    """Processes that answer portions in parallel, as a context, at whose end they are killed if still working.

    If a process can't be started, the others answer, or none does.
    """

    def __init__(
        self,
        portions: Iterable[Portion],
        most: int,
        ask: Callable[[subprocess.Popen[bytes], Portion], Answer],
        module: str,
        *arguments: str,
    ) -> None:
        """Use at most `most` processes; `ask` raises `OSError`, `ValueError` or `TypeError` if the process died."""
        self._waiting = deque(portions)
        self._unanswered = len(self._waiting)
        self._most, self._ask, self._asked = most, ask, (module, *arguments)
        self._ready: queue.Queue[tuple[Portion, Answer | None]] = queue.Queue(_MOST_READY)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped = False

    def __enter__(self) -> Crew[Portion, Answer]:
        command = [sys.executable, "-P", "-m", *self._asked]  # -P: import no modules from the current folder
        for _ in range(min(self._most, self._unanswered)):
            with suppress(OSError):
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                self._processes.append(process)
                _RUNNING.add(process)
                if _ENDING.is_set():
                    process.kill()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            _RUNNING.discard(process)
            assert process.stdin is not None
            with suppress(OSError):  # requests that it hasn't read can't be written any more
                process.stdin.close()

    def answers(self, deadline: float = math.inf) -> Iterator[tuple[Portion, Answer]]:
        """Yield portions with their answers as they come, except if the process died, until this monotonic time.

        No process is asked before this is.
        """
        feeders = [threading.Thread(target=self._feed, args=(each,), daemon=True) for each in self._processes]
        for feeder in feeders:
            feeder.start()
        while self._unanswered and time.monotonic() < deadline:
            try:
                portion, answer = self._ready.get(timeout=_PATIENCE)
            except queue.Empty:
                if not any(feeder.is_alive() for feeder in feeders) and self._ready.empty():
                    return
                continue
            self._unanswered -= 1
            if answer is not None:
                yield portion, answer

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Give a process one portion after another, until it dies."""
        answer: Answer | None
        while not self._stopped:
            try:
                portion = self._waiting.popleft()
            except IndexError:
                break
            try:
                answer = self._ask(process, portion)
            except (OSError, ValueError, TypeError):
                answer = None
            while not self._stopped:
                with suppress(queue.Full):
                    self._ready.put((portion, answer), timeout=_PATIENCE)
                    break
            if answer is None:
                break
        assert process.stdin is not None
        with suppress(OSError):  # it died before it read the whole request
            process.stdin.close()


@contextmanager
def single(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that reads one request and writes one answer; at the end of this context it is killed."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        _RUNNING.add(process)
        try:
            yield process
        finally:
            process.kill()
            _RUNNING.discard(process)


def end_with_input() -> None:
    """End this process as soon as its input does, even in the midst of work, whose answer nobody would read.

    For the workers of a `Crew`. Without `poll`, on Windows, it ends when it has done what it was asked for.
    """

    def watch() -> None:
        closed = select.poll()
        closed.register(sys.stdin.fileno(), 0)  # a pipe that nobody writes to is told in any case
        closed.poll()
        os._exit(0)

    if hasattr(select, "poll"):
        threading.Thread(target=watch, daemon=True).start()


def end_all() -> None:
    """Kill all processes that work for this one, before it ends itself."""
    _ENDING.set()
    for process in list(_RUNNING):
        process.kill()
