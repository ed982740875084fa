"""Records requests beside the answers: a bounded queue and one thread that writes.

Recording takes some microseconds of the request's thread and never costs an answer: if the queue is full, or the file
can't be written, the request is dropped and counted.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agtrace_indexer.redact import redact, redact_json

from agtrace.answers.log import log_to_stderr
from agtrace.answers.telemetry import store
from agtrace.answers.telemetry.store import Request
from agtrace.settings.model import Telemetry

if TYPE_CHECKING:
    from agtrace.settings.limits import Limits
    from agtrace.shaping.shape import Answer

_MOST_WAITING = 10_000
_TOGETHER_SECONDS = 0.05
"""How long requests are gathered that are written together, after the first."""
_EXPIRY_SECONDS = 3600
"""How often old requests are looked for."""


class Recorder:
    """Records requests in the telemetry file. Safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], float] = time.time,
        most: int = _MOST_WAITING,
        log: Callable[[Mapping[str, Any]], None] = log_to_stderr,
    ) -> None:
        self.path, self.keep_days = path, Telemetry().keep_days
        self._now, self._log = now, log
        self._waiting: queue.Queue[Request | None] = queue.Queue(most)
        """None wakes the writer for the end."""
        self._lock = threading.Lock()
        self._writer: _Writer | None = None
        self._ending = threading.Event()
        self._dropped = 0
        self._expired = 0.0

    @property
    def dropped(self) -> int:
        """The number of requests that couldn't be recorded."""
        return self._dropped

    def record(self, request: Request) -> None:
        """Take a request, which is written soon."""
        try:
            self._waiting.put_nowait(request)
        except queue.Full:
            self._drop(1)
        if self._writer is None:
            self._start()

    def close(self, seconds: float = 0.3) -> None:
        """Write what waits, if that takes no longer than this."""
        self._ending.set()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        if self._writer is not None:
            self._writer.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = _Writer(self)
                self._writer.start()

    def write_all(self) -> None:
        """Write requests as they come, until the recorder is closed and none is left."""
        while not (self._ending.is_set() and self._waiting.empty()):
            found = [self._waiting.get()]
            while not self._waiting.empty():
                found.append(self._waiting.get_nowait())
            self._write([_masked(request) for request in found if request is not None])
            self._ending.wait(_TOGETHER_SECONDS)  # after writing: some clients kill the server behind the last answer

    def _write(self, requests: list[Request]) -> None:
        try:
            if store.append(self.path, requests):
                self._log({"event": "telemetry.replaced", "level": "warning", "file": str(self.path)})
        except (sqlite3.Error, OSError):
            self._drop(len(requests))
            return
        if self._now() - self._expired > _EXPIRY_SECONDS:
            self._expired = self._now()
            with suppress(sqlite3.Error, OSError):  # an hour later it is tried again
                store.expire(self.path, self._expired, self.keep_days)

    def _drop(self, number: int) -> None:
        with self._lock:
            self._dropped += number


def _masked(request: Request) -> Request:
    """Return a request without secrets in what a client says of itself."""

    def masked(text: str | None) -> str | None:
        return text and redact(text)

    return request._replace(
        client=masked(request.client),
        client_version=masked(request.client_version),
        protocol=masked(request.protocol),
    )


class _Writer(threading.Thread):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__(name="telemetry", daemon=True)
        self.recorder = recorder

    def run(self) -> None:
        """Write until the recorder is closed."""
        self.recorder.write_all()


def close_all(seconds: float) -> None:
    """Let every recorder of this process write what waits, before the process ends."""
    for thread in threading.enumerate():
        if isinstance(thread, _Writer):
            thread.recorder.close(seconds)


# -- requests -----------------------------------------------------------------------------------------

Transport = Literal["stdio", "http"]

_LONGEST_NAME = 60
_LONGEST_ARGUMENTS = 2_000


class Origin(NamedTuple):
    """Who asked, as far as the protocol says."""

    client: str | None = None
    """The name that the client reports of itself."""
    client_version: str | None = None
    protocol: str | None = None
    """The version of MCP that was agreed on."""
    transport: Transport = "stdio"
    connection: str | None = None
    """What all requests of a connection have in common; a client may have chosen it. None for a command."""

    def shortened(self) -> Origin:
        """Return the same with names of a bounded length: a client can report any."""
        name, version, protocol = (text and text[:_LONGEST_NAME] for text in self[:3])
        return Origin(name, version, protocol, self.transport, self.connection)

    @property
    def connection_digest(self) -> str | None:
        """12 characters that the requests of a connection have in common, and no others."""
        return self.connection and sha256(self.connection.encode()).hexdigest()[:12]


class Observer(Protocol):
    """Gets the figures of every answered request, in the request's thread: it must be quick and safe for threads."""

    def record(self, request: Request) -> None:
        """Take the figures of a request."""


def request_of(
    tool: str,
    arguments: Mapping[str, Any],
    given: Answer,
    origin: Origin,
    held: Limits,
    *,
    at: float,
    ms: float,
    id: str,
) -> Request:
    """Return the record of an answer that was given at this time, in seconds since 1970 UTC, after so many ms."""
    from agtrace.shaping.shape import estimated_tokens

    value, size = given.value, len(given.text.encode())
    pagination = value.get("pagination")
    return Request(
        at=round(1000 * at),
        tool=tool,
        request_id=id,
        client=origin.client,
        client_version=origin.client_version,
        protocol=origin.protocol,
        transport=origin.transport,
        outcome=value["error"]["code"] if given.is_error else "ok",
        ms=round(ms, 2),
        tokens=estimated_tokens(len(given.text)),
        asked_bytes=given.asked_bytes or size,
        bytes=size,
        items=_items(value.get("data")),
        attempt=given.attempt,
        paginated=bool(pagination and (pagination["has_more"] or "cursor" in arguments)),
        chunked="chunk" in value,
        summarized=not given.is_error and bool(arguments.get("mode") or (given.attempt > 1 and "chunk" not in value)),
        pruned=bool(value.get("pruning", {}).get("applied")),
        cut="truncation" in value,
        index_state=value["index"]["state"] if "index" in value else "ready",
        connection=origin.connection_digest,
        arm=held.arm,
        arguments=json.dumps(redact_json(dict(arguments)), ensure_ascii=False, default=str)[:_LONGEST_ARGUMENTS]
        if held.settings.telemetry.arguments
        else None,
    )


def _items(data: Any) -> int | None:
    """Return the number of items of an answer that is a list; None for any other."""
    lists = [value for value in data.values() if isinstance(value, list)] if isinstance(data, dict) else []
    return len(lists[0]) if len(lists) == 1 else None
