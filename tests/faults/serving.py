"""The server with a misbehaving client: raw lines on its pipes, and what is left of it in the end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

AGTRACE = Path(sys.executable).with_name("agtrace")
SECONDS = 300
"""Anything that takes longer counts as hanging."""

SLOW = {"query": r"([a-z]+[a-z ]*)+[0-9]{40}", "regex": True}
"""A search that takes as long as it is allowed to."""


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    """Return a line of the protocol; a notification if there is no number."""
    value = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(value if number is None else value | {"id": number}).encode() + b"\n"


def call(number: int, tool: str, **arguments: Any) -> bytes:
    """Return the line of a tool call."""
    return line("tools/call", number, name=tool, arguments=arguments)


HELLO = line(
    "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}
) + line("notifications/initialized")


class Server:
    """A server over stdio, in a session of its own so that its workers can be recognised."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._read = b""
        self._lines: deque[bytes] = deque()

    def send(self, content: bytes) -> None:
        """Write to its stdin."""
        assert self.process.stdin
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def greet(self) -> None:
        """Do the handshake."""
        self.send(HELLO)
        assert "serverInfo" in self.answer(0)["result"]

    def answer(self, number: int, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the answer with this number, skipping others. Raises `TimeoutError`."""
        for message in self.messages(seconds):
            if message.get("id") == number:
                return message
        raise TimeoutError(f"no answer {number}")

    def messages(self, seconds: float = SECONDS) -> Iterator[dict[str, Any]]:
        """Yield the messages that arrive within some seconds."""
        assert self.process.stdout
        end = time.monotonic() + seconds
        yield from self._unread()
        while select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return
            *lines, self._read = (self._read + piece).split(b"\n")
            self._lines.extend(lines)
            yield from self._unread()

    def _unread(self) -> Iterator[dict[str, Any]]:
        while self._lines:
            yield json.loads(self._lines.popleft())

    def ends(self) -> float:
        """End its input without reading its output; return the seconds until it has ended with all its processes."""
        assert self.process.stdin
        began = time.monotonic()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(SECONDS)
        return gone(self.process.pid, began)


def gone(group: int, began: float) -> float:
    """Return the seconds from `began` until no process of a group is left. Raises `TimeoutError`."""
    while time.monotonic() < began + SECONDS:
        if not alive(group):
            return time.monotonic() - began
        select.select([], [], [], 0.005)
    raise TimeoutError(f"a process of the group {group} lives on")


def alive(group: int) -> bool:
    """Whether a process of a group is running; one that has ended but wasn't waited for isn't."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    states = [_state(path) for path in Path("/proc").glob("[0-9]*/stat")]
    return not states or any(of == str(group) and state != "Z" for state, of in states)


def _state(path: Path) -> tuple[str, str]:
    """Return the state and the group of a process."""
    try:
        state, _, group, *_ = path.read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return "Z", ""
    return state, group


def memory(process: int) -> int:
    """Return the peak memory of a process in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextmanager
def serving(stderr: Path, **environment: str) -> Iterator[Server]:
    """Run the server; its stderr is appended to a file. Whatever is left of it is killed."""
    with (
        stderr.open("a") as errors,
        subprocess.Popen(
            [AGTRACE, "mcp"], stdin=-1, stdout=-1, stderr=errors, start_new_session=True,
            env={**os.environ, **environment},
        ) as process,
    ):  # fmt: skip
        try:
            yield Server(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                process.stdin.close()
