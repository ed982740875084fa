"""A process that serves over HTTP until it is told to end."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from agtrace.serving.connections import Connection, Listening
from agtrace.serving.ending import end

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
