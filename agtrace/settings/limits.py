"""What holds for one request, from the settings that were in force when it arrived, and what its client accepts.

A request holds one snapshot of the settings from beginning to end, however often the file changes meanwhile. Code deep
below an answer asks `limits()`; outside of requests that are the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import Literal

from agtrace_indexer.providers.registry import AGENTS
from msgspec import Struct

from agtrace.settings import ABSOLUTE_MAX_BYTES, SMALLEST_MAX_BYTES, UNPROTECTED_BYTES
from agtrace.settings.model import USUAL_TOKENS, Settings, ToolSettings

Arm = Literal["protected", "unprotected"]
"""The side of a comparison (`ab`) that an answer is on."""

_UNPAGED = 5_000
"""The most items of a list without pages: no answer below 1 MiB holds as many."""

_UNLIMITED = 1 << 40

_PROTECTED = ToolSettings()


class Limits(Struct, frozen=True):
    """The sizes of the answers to one request."""

    settings: Settings
    protected: bool = True
    """Whether lists end after a page, long texts come in chunks, and data that doesn't fit is condensed."""
    arm: Arm | None = None

    @property
    def page_size(self) -> int:
        """The items of a page if the request names no limit."""
        return self.page_size_offered if self.protected else _UNPAGED

    @property
    def page_size_offered(self) -> int:
        """The items of a page as a tool's description says it."""
        return min(self.settings.default_page_size, self.settings.max_page_size)

    def list_bytes(self, limit: int) -> int:
        """Return the bytes of a list: twice as many for a limit above the default."""
        return self.size() if limit <= self.page_size else min(2 * self.size(), ABSOLUTE_MAX_BYTES)

    def size(self, usual: int | None = None) -> int:
        """Return the bytes of an answer that usually takes as many; None for the usual size of an answer."""
        return self._scaled(usual or self.settings.limits.max_bytes) if self.protected else UNPROTECTED_BYTES

    @property
    def usual(self) -> int:
        """The bytes of an answer whose size nobody chose, of any tool."""
        return self._scaled(self.settings.limits.max_bytes)

    @property
    def chunk_bytes(self) -> int:
        """The most bytes of a chunk's text."""
        size = self.settings.chunk_size
        return UNPROTECTED_BYTES if size is None or not self.protected else round(size * 4 / 1.2)

    @property
    def chunk_lines(self) -> int:
        """The most lines of a chunk."""
        return self.settings.chunk_lines if self.protected else _UNLIMITED

    def _scaled(self, usual: int) -> int:
        size = usual * self.settings.token_budget_threshold // USUAL_TOKENS
        return max(min(size, ABSOLUTE_MAX_BYTES), min(usual, SMALLEST_MAX_BYTES))


_USUAL = Limits(Settings(data_dir=Path()))
_held: ContextVar[Limits] = ContextVar("limits", default=_USUAL)


def limits() -> Limits:
    """Return the limits of the request that is being answered in this thread."""
    return _held.get()


@contextmanager
def use_limits(held: Limits) -> Iterator[None]:
    """Let these limits hold in this thread within the block."""
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)


def limits_for(settings: Settings, tool: str, connection: str | None = None) -> Limits:
    """Return what holds for a request to a tool.

    A connection is on the same side of a rollout, and of a comparison, as long as the settings stay; a request without
    a connection is protected unless its tool isn't.
    """
    own = settings.tools.get(tool, _PROTECTED)
    arm: Arm | None = None
    protected = own.enabled and own.rollout > 0 and (connection is None or _lot(connection, tool) < own.rollout)
    if settings.ab.mode != "off" and connection is not None:
        arm = "unprotected" if _lot(connection, "ab") < settings.ab.share else "protected"
    return Limits(settings, protected=protected and arm != "unprotected", arm=arm)


def _lot(connection: str, subject: str) -> float:
    """Return a number from 0 to 100 that depends on nothing else."""
    digest = blake2b(f"{connection}\0{subject}".encode(), digest_size=8).digest()
    return 100 * int.from_bytes(digest) / 2**64


# -- what clients accept ------------------------------------------------------------------------------

CLIENTS: dict[str, int] = {
    agent.client.name: agent.client.characters for agent in AGENTS.values() if agent.client is not None
}
"""The limit in characters by the name that a client reports; Gemini CLI appends the name of the server.

A character takes at least one byte, so an answer of as many bytes always fits.
"""


_NONE: Mapping[str, int] = {}


def known_client(name: str | None) -> str | None:
    """Return the known client with this name, or None."""
    given = (name or "").lower()
    return next((client for client in CLIENTS if given == client or given.startswith(f"{client}-")), None)


def most_bytes(name: str | None, configured: Mapping[str, int] = _NONE) -> int:
    """Return the bytes that an answer to a client may take; for an unknown client only the contract is the limit.

    `configured` are the user's own limits by the name that a client reports, which replace the known ones.
    """
    own = next((most for client, most in configured.items() if client.lower() == (name or "").lower()), None)
    if own is not None:
        return own
    client = known_client(name)
    return configured.get(client or "", ABSOLUTE_MAX_BYTES if client is None else CLIENTS[client])


# -- stopping --------------------------------------------------------------------------------------

STOP: ContextVar[Event | None] = ContextVar("set once nobody waits for the answer", default=None)
"""Of the request that a thread works for."""

STEPS_BETWEEN_LOOKS = 50_000
"""Steps of SQLite's virtual machine: about 1 ms."""


def stopped() -> bool:
    """Whether nobody waits for what this thread works on; asked by whatever may take long."""
    stop = STOP.get()
    return stop is not None and stop.is_set()
