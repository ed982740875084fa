"""The processes that work for this one: Python modules that answer on their stdout what they are asked on their stdin.

Each ends when its input does, prints nothing, and is killed where this process ends itself (`end_all`).
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

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


@contextmanager
def crew(count: int, module: str, *arguments: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes; they are gone at the end of the context. Raises `OSError` where there can't be so many."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(start(module, *arguments) for _ in range(count))
        yield started
    finally:
        stop(started)


def end_all() -> None:
    """Kill all processes that work for this one, which is about to end itself."""
    _ENDING.set()
    for process in list(_RUNNING):
        process.kill()
