"""A pruner over HTTP that answers as a test wants it to, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

MEGABYTE = 1_048_576


class PrunerOfATest:
    """A pruner, and what came to it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        """The bodies of the requests."""
        self.paths: list[str] = []
        self.status = 200
        self.reply: Any = {"pruned_code": "kept"}
        """A value to be sent as JSON, bytes to be sent as they are, or an int: as many megabytes, without an end."""
        self.silent = False
        """Whether it answers only when `over` is set."""
        self.over = Event()
        self.url = ""

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The bodies of the requests as JSON."""
        return [json.loads(body) for body in self.asked]


@contextmanager
def pruning() -> Iterator[PrunerOfATest]:
    """Run such a pruner on a free port of this machine."""
    pruner = PrunerOfATest()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            pruner.paths.append(self.path)
            pruner.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            if pruner.silent:
                pruner.over.wait()
            with suppress(OSError):  # who asked may have gone
                self._answer()

        def _answer(self) -> None:
            self.send_response(pruner.status)
            if isinstance(pruner.reply, int):
                self.end_headers()
                for _ in range(pruner.reply):
                    self.wfile.write(b"x" * MEGABYTE)
                return
            body = pruner.reply if isinstance(pruner.reply, bytes) else json.dumps(pruner.reply).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        pruner.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield pruner
        finally:
            pruner.over.set()
            server.shutdown()
            thread.join()
