"""HTTP connections: how many may be open at a time, and how long a client may take for its part.

uvicorn limits neither: `limit_concurrency` counts requests, and the timeout of an idle connection starts only after the
first answer and is reset by every byte.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from agtrace.problems import SettingError
from agtrace.serving.ending import end

MOST_CONNECTIONS = 128
"""The most connections at a time; fewer if the process may open only a few files."""
PATIENCE = 20.0
"""Seconds that a client may take to send a whole request, and to receive an answer."""
_AT_ONCE = 4
"""Connections accepted in one turn of the event loop."""

_log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """A connection that is closed if its client keeps it waiting.

    A whole request, head and body, must arrive within `patience` of the opening of the connection or of the previous
    answer; an answer must be received within the same time. While an answer is being made there is no timeout.
    """

    patience: ClassVar[float] = PATIENCE
    most_open: ClassVar[int] = MOST_CONNECTIONS
    _due: asyncio.TimerHandle | None = None
    """The timer for the client's part; None while it is our turn."""
    _is_dropped = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept a new connection, dropping another if there are too many."""
        super().connection_made(transport)
        self._wait()
        open_ones = [one for one in self.connections if isinstance(one, Connection) and not one._is_dropped]
        if len(open_ones) <= most_connections(self.most_open):
            return
        due = {one._due.when(): one for one in open_ones if one._due is not None}
        due[min(due)]._drop()
        _log.warning(
            "%d connections are open, the maximum: the one waited for longest was dropped for a new one",
            len(open_ones) - 1,
        )

    def data_received(self, data: bytes) -> None:
        """Receive part of a request."""
        super().data_received(data)
        self._stop_waiting_for_whole_requests()

    def on_response_complete(self) -> None:
        """Wait for the next request, and for this answer to be received."""
        self._wait()
        super().on_response_complete()
        self._stop_waiting_for_whole_requests()  # the next one may have arrived already

    def pause_writing(self) -> None:
        """Wait for the answer to be received: the buffer is full."""
        super().pause_writing()
        if self._due is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _wait(self) -> None:
        self._stop_waiting()
        self._due = self.loop.call_later(self.patience, self._drop)

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _stop_waiting_for_whole_requests(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        if is_answering and not self.flow.write_paused:
            self._stop_waiting()

    def _drop(self) -> None:
        self._is_dropped = True
        self.transport.abort()  # closing would wait until everything written is received


class Listening(socket.socket):
    """A listening socket that hands asyncio a few connections at a time.

    asyncio accepts all that are waiting before any of them can be counted; and if no more files can be opened it keeps
    trying, scheduling another attempt for each failure (CPython issue 151615).
    """

    _left = _AT_ONCE

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raises `BlockingIOError` if none is waiting, or enough were accepted in this turn."""
        if not self._left:
            self._left = _AT_ONCE
            raise BlockingIOError
        self._left -= 1
        try:
            return super().accept()
        except BlockingIOError:
            self._left = _AT_ONCE
            raise
        except OSError:
            self._left = 0
            raise


def listen(host: str, port: int) -> Listening:
    """Listen on an address; port 0 means any free port. Raises `SettingError`."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = Listening(fileno=socket.create_server(address[:2], family=family).detach())
    except OSError as error:
        raise SettingError(f"can't listen on {host}, port {port}: {error.strerror or error}") from None
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; saves 40 ms per answer
    return listening


def most_connections(most: int = MOST_CONNECTIONS) -> int:
    """Return how many connections may be open: half of the process's file limit is reserved for the index."""
    if sys.platform == "win32":
        return most
    import resource  # not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else min(most, files // 2)


LAST_SECONDS = 0.7
"""How long answers in progress may still take when the process is told to end."""


def run(application: Starlette, listening: Listening, connection: type[Connection] = Connection) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. Answers that are almost done are still sent."""
    server = _Server(
        uvicorn.Config(
            application,
            http=connection,
            loop="asyncio",
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            proxy_headers=False,
        )
    )
    server.run(sockets=[listening])
    return server.exit_code


class _Server(uvicorn.Server):
    """The server, which ends within a second when it is told to."""

    exit_code = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGINT."""
        self.exit_code = 130 if sig == signal.SIGINT else 0
        self.should_exit = True
        ending = threading.Timer(LAST_SECONDS, end, (self.exit_code,))
        ending.daemon = True
        ending.start()
