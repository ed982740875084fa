"""Stopping what works for a request whose client no longer waits for the answer."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event

STOP: ContextVar[Event | None] = ContextVar("set once nobody waits for the answer", default=None)
"""Of the request that a thread works for."""

STEPS_BETWEEN_LOOKS = 50_000
"""Steps of SQLite's virtual machine: about 1 ms."""


def stopped() -> bool:
    """Whether nobody waits for what this thread works on; asked by whatever may take long."""
    stop = STOP.get()
    return stop is not None and stop.is_set()
