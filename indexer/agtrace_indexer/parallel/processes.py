"""The processes that work for this one: Python modules that answer on their stdout what they are asked on their stdin.

Each ends when its input does, prints nothing, and is killed where this process ends itself (`end_all`).
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

Portion = TypeVar("Portion")
Answer = TypeVar("Answer")

_MOST_READY = 8
"""Answers that wait to be taken, at most."""

_PATIENCE = 0.2
"""Seconds between two looks at the clock."""

_RUNNING: set[subprocess.Popen[bytes]] = set()
_ENDING = threading.Event()


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a module of ours in a process of its own. Raises `OSError` where there can be none."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],  # -P: no module of the folder that one is in
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _RUNNING.add(process)
    if _ENDING.is_set():
        process.kill()
    return process


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kill these processes, whatever they are doing."""
    processes = list(processes)
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        _RUNNING.discard(process)
        assert process.stdin is not None
        with suppress(OSError):  # what it was asked and hasn't read has no way out
            process.stdin.close()


class Crew(Generic[Portion, Answer]):
    """Processes that answer portions side by side, as a context: they are gone at its end, whatever they were doing.

    Where a process can't be started, those that are there answer, or none does.
    """

    def __init__(
        self,
        portions: Iterable[Portion],
        most: int,
        ask: Callable[[subprocess.Popen[bytes], Portion], Answer],
        module: str,
        *arguments: str,
    ) -> None:
        """At most `most` processes; `ask` raises `OSError`, `ValueError` or `TypeError` where the process died."""
        self._waiting = deque(portions)
        self._unanswered = len(self._waiting)
        self._most, self._ask, self._module = most, ask, (module, *arguments)
        self._ready: queue.Queue[tuple[Portion, Answer | None]] = queue.Queue(_MOST_READY)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._feeders: list[threading.Thread] = []
        self._stopped = False

    def __enter__(self) -> Crew[Portion, Answer]:
        for _ in range(min(self._most, self._unanswered)):
            with suppress(OSError):
                self._processes.append(start(*self._module))
                self._feeders.append(threading.Thread(target=self._feed, args=self._processes[-1:], daemon=True))
                self._feeders[-1].start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        stop(self._processes)

    def answers(self, deadline: float | None = None) -> Iterator[tuple[Portion, Answer]]:
        """Portions with their answers as they come, without those whose process died, until this time (monotonic)."""
        while self._unanswered and (deadline is None or time.monotonic() < deadline):
            try:
                portion, answer = self._ready.get(timeout=_PATIENCE)
            except queue.Empty:
                if not any(feeder.is_alive() for feeder in self._feeders) and self._ready.empty():
                    return
                continue
            self._unanswered -= 1
            if answer is not None:
                yield portion, answer

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Give a process one portion after the other, until it dies."""
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
            self._put(portion, answer)
            if answer is None:
                break
        assert process.stdin is not None
        with suppress(OSError):  # it died before it read all of what it was asked
            process.stdin.close()

    def _put(self, portion: Portion, answer: Answer | None) -> None:
        while not self._stopped:
            with suppress(queue.Full):
                self._ready.put((portion, answer), timeout=_PATIENCE)
                break


def end_all() -> None:
    """Kill all processes that work for this one, which is about to end itself."""
    _ENDING.set()
    for process in list(_RUNNING):
        process.kill()
