"""Runs `agtrace prune` as a process and talks to it as a client does, byte by byte, over stdio and over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

SECONDS = 30.0
TOKEN = "a-token-that-only-tests-know"
GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


Found = TypeVar("Found")


def until(condition: Callable[[], Found], says: Callable[[], str] = str) -> Found:
    """Wait until a condition holds, and return what it gives."""
    ends = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < ends, says()
        threading.Event().wait(0.01)
    return found


@dataclass(frozen=True)
class Answer:
    """What a call was answered with."""

    message: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The first block: what the tool gave."""
        return str(self.message["result"]["content"][0]["text"])

    @property
    def about(self) -> dict[str, Any]:
        """The second block."""
        found: dict[str, Any] = json.loads(self.message["result"]["content"][1]["text"])
        return found

    @property
    def is_error(self) -> bool:
        """Whether the tool failed."""
        return bool(self.message["result"].get("isError"))

    @property
    def refusal(self) -> dict[str, Any]:
        """The error of the protocol."""
        found: dict[str, Any] = self.message["error"]
        return found


@dataclass
class Server:
    """A running server and what it wrote on stderr."""

    process: subprocess.Popen[bytes]
    errors: Path
    port: int = 0
    _number: int = 0
    _held: list[http.client.HTTPConnection] = field(default_factory=list)

    # -- asking --

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool and wait for the answer."""
        params = {"name": tool, "arguments": arguments}
        return Answer(self.ask("tools/call", params))

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the message that answers it."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        return self.exchanged(json.dumps(message).encode())

    def exchanged(self, body: bytes) -> dict[str, Any]:
        """Send a line, or a body, and return the message that comes back."""
        if self.port:
            connection = self.sent_over_http(body)
            answer = connection.getresponse().read()
            connection.close()
        else:
            self.sent(body)
            answer = self.received()
        found: dict[str, Any] = json.loads(answer)
        return found

    def sent(self, line: bytes) -> None:
        """Send a line over stdio."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def received(self) -> bytes:
        """Return the next line over stdio."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server ended with {self.process.wait(SECONDS)}: {self.errors.read_text()[-3000:]}"
        return line

    def sent_over_http(self, body: bytes) -> http.client.HTTPConnection:
        """Send a request over HTTP without waiting for the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=4 * SECONDS)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {TOKEN}",
            "MCP-Protocol-Version": "2025-06-18",
        }
        connection.request("POST", "/mcp", body, headers)
        return connection

    # -- the log --

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that it has logged."""
        lines = self.errors.read_text().split("\n")[:-1]  # the last one may be written just now
        return [record for line in lines if line.startswith("{") and "event" in (record := json.loads(line))]

    def awaited(self, event: str) -> dict[str, Any]:
        """Wait for an event and return it."""
        return dict(self.until(lambda: [record for record in self.events if record["event"] == event])[0])

    def until(self, condition: Any) -> Any:
        """Wait until a condition holds, and return what it gives."""
        return until(condition, lambda: self.errors.read_text()[-3000:])

    def of_request(self, request_id: str) -> list[str]:
        """Return the names of the events of a request."""
        return [record["event"] for record in self.events if record.get("request_id") == request_id]


@contextmanager
def server(folder: Path, *, http: bool = False, **variables: str) -> Iterator[Server]:
    """Run the server in a folder, over stdio or on a free port, with these variables besides the usual ones."""
    errors = folder / f"stderr-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "agtrace", "prune", *(["--http", "127.0.0.1:0"] if http else [])]
    environment = {**os.environ, "AGTRACE_HTTP_TOKEN": TOKEN, **variables}
    with (
        errors.open("wb") as written,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written
        ) as process,
    ):
        running = Server(process, errors)
        try:
            if http:
                running.port = running.awaited("mcp_pruner.ready")["port"]
            else:
                running.ask("initialize", GREETING)
                running.sent(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            yield running
        finally:
            process.kill()
