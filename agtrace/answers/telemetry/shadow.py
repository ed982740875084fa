"""Measures what an answer without protection would have come to, after the client has its answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from agtrace.answers.telemetry.request import Request
from agtrace.settings.limits import Limits

_MOST_WAITING = 100


class _Measured(Struct, frozen=True):
    """A request to measure."""

    tool: str
    arguments: Mapping[str, Any]
    held: Limits
    request: Request


class Shadow:
    """One thread that answers requests again, without protection, and passes on their figures with that size.

    Safe to use from several threads. If more wait than it can hold, the answer fails, or the process ends, the figures
    are passed on without that size: measuring never delays an answer, nor loses a request.
    """

    def __init__(
        self, measure: Callable[[str, Mapping[str, Any], Limits], int], done: Callable[[Request, Limits], None]
    ) -> None:
        """`measure` returns bytes; `done` gets each request."""
        self._measure, self._done = measure, done
        self._waiting: queue.Queue[_Measured] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._started = False
        self._measuring: _Measured | None = None

    def measure(self, tool: str, arguments: Mapping[str, Any], held: Limits, request: Request) -> None:
        """Measure a request soon."""
        self._start()
        try:
            self._waiting.put_nowait(_Measured(tool, dict(arguments), held, request))
        except queue.Full:
            self._done(request, held)

    def give_up(self) -> None:
        """Pass on everything that waits or is being measured."""
        with suppress(queue.Empty):
            while True:
                one = self._waiting.get_nowait()
                self._done(one.request, one.held)
        with self._lock:
            last, self._measuring = self._measuring, None
        if last is not None:
            self._done(last.request, last.held)

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                _Measurer(self).start()

    def measure_all(self) -> None:
        """Measure requests as they come."""
        while True:
            one = self._measuring = self._waiting.get()
            request = one.request
            with suppress(Exception):  # a second answer may fail as the first may; only its size is lost
                request = request._replace(unprotected_bytes=self._measure(one.tool, one.arguments, one.held))
            with self._lock:
                is_ours, self._measuring = self._measuring is one, None
            if is_ours:
                self._done(request, one.held)


class _Measurer(threading.Thread):
    """The thread of a shadow."""

    def __init__(self, shadow: Shadow) -> None:
        super().__init__(name="shadow", daemon=True)
        self.shadow = shadow

    def run(self) -> None:
        """Measure until the process ends."""
        self.shadow.measure_all()


def give_up_all() -> None:
    """Let every shadow of this process pass on what it has, before the process ends."""
    for thread in threading.enumerate():
        if isinstance(thread, _Measurer):
            thread.shadow.give_up()
