"""Measures what an answer without protection would have come to, after the client has its answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agtrace.answers.telemetry.request import Request
from agtrace.settings.limits import Limits

_MOST_WAITING = 100


class _Measured(NamedTuple):
    """A request to measure."""

    tool: str
    arguments: Mapping[str, Any]
    held: Limits
    request: Request


class Shadow:
    """One thread that answers requests again, without protection, and passes on their figures with that size.

    Safe to use from several threads. If more wait than it can hold, or the answer fails, the figures are passed on
    without that size: measuring never delays an answer, nor loses a request.
    """

    def __init__(
        self, measure: Callable[[str, Mapping[str, Any], Limits], int], done: Callable[[Request, Limits], None]
    ) -> None:
        """`measure` returns bytes; `done` gets each request."""
        self._measure, self._done = measure, done
        self._waiting: queue.Queue[_Measured] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._started = False

    def measure(self, tool: str, arguments: Mapping[str, Any], held: Limits, request: Request) -> None:
        """Measure a request soon."""
        self._start()
        try:
            self._waiting.put_nowait(_Measured(tool, dict(arguments), held, request))
        except queue.Full:
            self._done(request, held)

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="shadow", daemon=True).start()

    def _run(self) -> None:
        while True:
            tool, arguments, held, request = self._waiting.get()
            with suppress(Exception):  # a second answer may fail as the first may; only its size is lost
                request = request._replace(unprotected_bytes=self._measure(tool, arguments, held))
            self._done(request, held)
