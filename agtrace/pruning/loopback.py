"""Asking a server on this machine whether it is there, without waiting for it: nothing here blocks.

Written with a bare socket, as the libraries for HTTP take longer to load than `agtrace run` takes to start an agent.
"""

from __future__ import annotations

import selectors
import socket
import time

HOST = "127.0.0.1"
"""Where servers of the runner listen."""

_LONGEST_STATUS_LINE = 1_024


class _Request:
    """One GET; its answer counts once the status line is there."""

    def __init__(self, port: int, path: str) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.since = time.monotonic()
        self._unsent = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode()
        self._received = b""
        self.socket.connect_ex((HOST, port))  # an error shows when the request is sent

    @property
    def awaits(self) -> int:
        """What the socket must be ready for before the next step."""
        return selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ

    def step(self) -> str | None:
        """Go on as far as possible; return the status line, or None as long as it isn't there. Raises `OSError`."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
                return None
            received = self.socket.recv(_LONGEST_STATUS_LINE)
        except BlockingIOError:
            return None
        self._received += received
        if b"\n" not in self._received and received and len(self._received) < _LONGEST_STATUS_LINE:
            return None
        return self._received.partition(b"\r\n")[0].decode("ascii", "replace")


class Asking:
    """Asks for one path again and again."""

    def __init__(self, port: int, path: str, *, every: float, patience: float, first: float = 0) -> None:
        """Ask every so many seconds, wait so many for each answer, and so many before asking for the first time."""
        self._port, self._path, self._every, self._patience = port, path, every, patience
        self._next = time.monotonic() + first
        self._request: _Request | None = None
        self.error = ""
        """Why the last answer was not what it should be."""

    def awaits(self) -> tuple[socket.socket, int] | None:
        """Return the socket that is waited for and what it must be ready for, if a question is open."""
        return None if self._request is None else (self._request.socket, self._request.awaits)

    def due(self) -> float:
        """Return the monotonic time when there is something to do even if nothing is received until then."""
        return self._next if self._request is None else self._request.since + self._patience

    def step(self) -> bool | None:
        """Do what can be done now. Return whether a server is there if that is known anew, else None."""
        now = time.monotonic()
        try:
            if self._request is None:
                if now < self._next:
                    return None
                self._request = _Request(self._port, self._path)
            status = self._request.step()
            if status is None:
                return None if now < self.due() else self._known("no answer in time")
        except OSError as error:
            return self._known(error.strerror or str(error))
        return self._known("" if status.split(" ")[1:2] == ["200"] else f"answered {status[:80]!r}")

    def close(self) -> None:
        """Take back an open question."""
        if self._request is not None:
            self._request.socket.close()
            self._request = None

    def _known(self, error: str) -> bool:
        self.close()
        self._next = time.monotonic() + self._every
        self.error = error
        return not error
