"""The time until the server ends after its client, whatever it is doing.

Every story brings a server into a state and ends its client.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from tests import corpus
from tests.faults.serving import AGTRACE, HELLO, SECONDS, SLOW, Server, call, gone, serving

_BUSY_MEGABYTES = 17

_CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, start_new_session=True)
server.stdin.write(sys.stdin.buffer.read())
server.stdin.flush()
print(server.pid, flush=True)
server.wait()
"""


@dataclass
class Ground:
    """The ground for the servers: a home with logs, an index of them (or a larger one), and the times of the ends."""

    folder: Path
    data: Path
    moments: random.Random
    tries: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environment = {
            "HOME": str(self.folder / "home"),
            "AGTRACE_DATA_DIR": str(self.data),
            "AGTRACE_SEARCH_TIMEOUT_SECONDS": "600",
        }

    def fresh(self) -> dict[str, str]:
        """Return an environment without an index, and with so many logs that workers read them."""
        self.tries += 1
        data = self.folder / f"fresh {self.tries}"
        return {"HOME": str(self.folder / "busy home"), "AGTRACE_DATA_DIR": str(data)}

    def moment(self, longest: float) -> None:
        """Let some time pass."""
        select.select([], [], [], self.moments.uniform(0.02, longest))


def ground(folder: Path) -> Ground:
    """Write logs, and index them."""
    (folder / "stderr").touch()
    corpus.make(folder / "home" / ".claude" / "projects", 2)
    corpus.make(folder / "busy home" / ".claude" / "projects", _BUSY_MEGABYTES)
    made = Ground(folder, folder / "data", random.Random(1))
    environment = {**os.environ, **made.environment}
    subprocess.run([AGTRACE, "index"], env=environment, stdout=subprocess.DEVNULL, check=True)
    return made


def _still_asked(server: Server, number: int, seconds: float) -> None:
    try:
        server.answer(number, seconds)
    except TimeoutError:
        return
    raise AssertionError("the answer came before the end")


def _busy(ground: Ground, request: bytes, *, fresh: bool = False, longest: float = 1.0) -> float:
    environment = ground.fresh() if fresh else ground.environment
    with serving(ground.folder / "stderr", **environment) as server:
        server.greet()
        server.send(request)
        _still_asked(server, 1, ground.moments.uniform(0.02, longest))
        return server.ends()


def greeted(ground: Ground) -> float:
    """End the client while the server has nothing to do."""
    with serving(ground.folder / "stderr", **ground.environment) as server:
        server.greet()
        return server.ends()


def searching(ground: Ground) -> float:
    """End the client while the server is matching an expression that takes forever."""
    return _busy(ground, call(1, "search_event_previews", order="newest", **SLOW))


def indexing(ground: Ground) -> float:
    """End the client while the server is making the first index, with workers."""
    return _busy(ground, call(1, "list_sessions"), fresh=True, longest=0.8)


def unread(ground: Ground) -> float:
    """End the client while the server's answers fill a pipe that nobody reads."""
    with serving(ground.folder / "stderr", **ground.environment) as server:
        server.greet()
        for number in range(1, 200):
            server.send(call(number, "list_sessions", limit=50))
        ground.moment(1.0)
        return server.ends()


def killed(ground: Ground) -> float:
    """Kill the client while the server is searching."""
    environment = {**os.environ, **ground.environment}
    command = [sys.executable, "-c", _CLIENT, AGTRACE, "mcp"]
    with (
        (ground.folder / "stderr").open("a") as errors,
        subprocess.Popen(command, stdin=-1, stdout=-1, stderr=errors, env=environment) as client,
    ):
        assert client.stdin and client.stdout
        client.stdin.write(HELLO + call(1, "search_event_previews", order="newest", **SLOW))
        client.stdin.close()
        server = int(client.stdout.readline())
        try:
            ground.moment(1.5)
            began = time.monotonic()
            client.kill()
            return gone(server, began)
        finally:
            _kill(server)


def deaf(ground: Ground) -> float:
    """Stop accepting answers while the input stays open."""
    with serving(ground.folder / "stderr", **ground.environment) as server:
        server.greet()
        assert server.process.stdout
        server.process.stdout.close()
        began = time.monotonic()
        with suppress(BrokenPipeError):  # it may have ended already
            server.send(call(1, "list_sessions"))
        server.process.wait()
        return gone(server.process.pid, began)


def terminated(ground: Ground) -> float:
    """Over HTTP: tell the server to end (SIGTERM) while it is searching."""
    command, environment = [AGTRACE, "mcp", "--http", "127.0.0.1:0", "--no-token"], {**os.environ, **ground.environment}
    with subprocess.Popen(command, stdout=-1, stderr=-1, env=environment, start_new_session=True) as process:
        try:
            assert process.stderr
            address = json.loads(process.stderr.readline())["url"]
            with closing(HTTPConnection(address.split("/")[2], timeout=SECONDS)) as connection:
                asked = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                connection.request("POST", "/mcp", call(1, "search_event_previews", order="newest", **SLOW), asked)
                ground.moment(1.0)
                began = time.monotonic()
                process.terminate()
                process.wait(SECONDS)
                return gone(process.pid, began)
        finally:
            _kill(process.pid)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


STORIES: tuple[Callable[[Ground], float], ...] = (
    greeted, searching, indexing, unread, killed, deaf, terminated,
)  # fmt: skip
"""Each returns the seconds from the end of the client to the end of the server's last process."""
