"""The end of the server: together with its client, whatever it is doing, and with every process it started."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

_LAST_SECONDS = 0.5
"""How long answers in progress may still take when the client's input ends."""
_LAST_SECONDS_AT_START = 30.0
"""The same if the input ended before the server had started to read it."""
_LONGEST_START = 60
"""Seconds; no client waits for a server that takes longer to start."""
_RECORDING_SECONDS = 0.2
"""How long figures of the last requests may still be written."""
_PAUSE = 0.02

_RDHUP = getattr(select, "POLLRDHUP", 0)
_ENDED = _RDHUP | getattr(select, "POLLHUP", 0) | getattr(select, "POLLERR", 0)

_begun = threading.Event()
_ended_before = threading.Event()


class _Steps:
    """What is done last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
        """Have a step taken when the process ends through `end`; it raises nothing."""
        self._steps.append(step)

    def take(self) -> None:
        """Take all steps."""
        for step in self._steps:
            step()


at_end = _Steps()
"""What is done when the process ends through `end`."""


def begin() -> None:
    """Note that requests of the client are being read from now on."""
    _begun.set()


def last_seconds() -> float:
    """Return how long answers in progress may still take when the client's input has ended.

    A client that has asked everything beforehand, such as a shell pipe, is waiting for answers and not for the end.
    """
    return _LAST_SECONDS_AT_START if _ended_before.is_set() else _LAST_SECONDS


def end(code: int = 0) -> NoReturn:
    """End the process at once, even during a search or an indexing run: nobody is waiting for an answer any more."""
    try:
        at_end.take()
        processes = sys.modules.get("agtrace_indexer.parallel.processes")  # loaded only if work was done on all cores
        if processes is not None:
            processes.end_all()
        recorder = sys.modules.get("agtrace.answers.telemetry.recorder")  # loaded once something was asked
        if recorder is not None:
            recorder.close_all(_RECORDING_SECONDS)
    finally:
        os._exit(code)


def end_with_client() -> None:
    """Make the process end once its client has closed either pipe, even if nothing else would notice.

    A client that no longer reads answers is gone. One that only has nothing more to ask, such as a shell pipe that ends
    before the server has started to read it, still gets the answers that are made in time.
    """
    if sys.stdin is None or sys.stdout is None or not hasattr(select, "poll"):
        return
    asked, answers = os.dup(0), os.dup(1)  # 0 and 1 will be redirected

    def wait() -> None:
        _await_end(asked, answers)
        if not _begun.is_set():
            _ended_before.set()
        last = time.monotonic() + _LONGEST_START
        while not _has_ended(answers) and time.monotonic() < last:
            if _begun.is_set():
                last = min(last, time.monotonic() + last_seconds())
            time.sleep(_PAUSE)
        end()

    threading.Thread(target=wait, daemon=True).start()


def _await_end(*descriptors: int) -> None:
    """Wait until the other end of one of these pipes is closed; poll may not support other files (macOS: POLLNVAL)."""
    poll, left = select.poll(), set(descriptors)
    for descriptor in descriptors:
        poll.register(descriptor, _RDHUP)
    while left:
        for descriptor, events in poll.poll():
            if events & _ENDED:
                return
            poll.unregister(descriptor)
            left.discard(descriptor)
    threading.Event().wait()  # forever: the transport itself sees the end


def _has_ended(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & _ENDED for _, events in poll.poll(0))
