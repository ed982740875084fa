"""Connections over HTTP: how many are open at a time, and how long a client may take over its part.

uvicorn bounds neither: `limit_concurrency` counts requests, and the limit of an idle connection begins behind the first
answer and is put off by every byte.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 128
"""At a time; fewer where the process may open few files."""
PATIENCE = 20.0
"""Seconds that a client may take over a whole request, and over taking an answer."""
_AT_ONCE = 4
"""Connections that are taken in one turn of the event loop."""

_log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """A connection that is closed when its client keeps it waiting.

    A request must have come whole, head and body, within `patience` from the opening of the connection or from the
    answer before it; an answer must have been taken within the same time. While an answer is made nothing is due.
    """

    patience: ClassVar[float] = PATIENCE
    _due: asyncio.TimerHandle | None = None
    """When the client must have done its part; None while it is our turn."""
    _is_dropped = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a new connection, in the place of another where there are too many."""
        super().connection_made(transport)
        self._wait()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._stop_waiting_for_whole_requests()

    def on_response_complete(self) -> None:
        """Wait for the next request, and for this answer to be taken."""
        self._wait()
        super().on_response_complete()
        self._stop_waiting_for_whole_requests()  # the next one may have come already

    def pause_writing(self) -> None:
        """Wait for the answer to be taken: not all of it finds room."""
        super().pause_writing()
        if self._due is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
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
        self.transport.abort()  # closing would wait until what is written has been taken

    def _make_room(self) -> None:
        """Where one connection too many is open, drop the one that has been waited for longest."""
        open_ones = [one for one in self.connections if isinstance(one, Connection) and not one._is_dropped]
        if len(open_ones) <= most_connections():
            return
        due = {one._due.when(): one for one in open_ones if one._due is not None}
        due[min(due)]._drop()
        _log.warning(
            "%d connections are open, the most that may be: the one waited for longest gives way to a new one",
            len(open_ones) - 1,
        )


class Listening(socket.socket):
    """A listening socket that gives asyncio a few connections at a time.

    asyncio asks for all that wait before it lets one of them be counted; and where no file can be opened any more it
    asks on, planning a new try for each refusal (CPython issue 151615).
    """

    _left = _AT_ONCE

    def accept(self) -> tuple[socket.socket, Any]:
        """Take a connection. Raises `BlockingIOError` where none waits, or it is not its turn."""
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
    """Listen on an address; port 0 is any free one. Raises `OSError`."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = Listening(fileno=socket.create_server(address[:2], family=family).detach())
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted ones inherit it: 40 ms an answer
    return listening


def most_connections() -> int:
    """How many connections may be open: half of the files that the process may have are for its index."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource  # not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // 2)
