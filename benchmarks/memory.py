"""Peak memory of a process with all its children, from /proc; `python -m benchmarks.memory`: that of servers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

_PROC = Path("/proc")
_PAUSE = 0.05
"""Seconds between two samples."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Peak memory in bytes."""

    together: int
    """That of all processes together, with shared pages counted once (PSS)."""
    largest: int
    """Resident memory of the process that had most."""


def peak(process: subprocess.Popen[bytes]) -> Peak | None:
    """Watch a process until it ends; None if the system has no /proc."""
    together = largest = 0
    while process.poll() is None:
        family = list(_family(process.pid))
        together = max(together, sum(_kilobytes(pid, "smaps_rollup", "Pss:") for pid in family))
        largest = max([largest, *(_kilobytes(pid, "status", "VmHWM:") for pid in family)])
        time.sleep(_PAUSE)
    return Peak(together * 1024, largest * 1024) if largest else None


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))
    except OSError:
        return  # it has just ended


def _kilobytes(pid: int, file: str, name: str) -> int:
    try:
        lines = (_PROC / str(pid) / file).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


STDIO_SERVERS, HTTP_CLIENTS, REQUESTS = 8, 4, 200
_WORDS = ("error", "database locked", "import os", "timeout in test", "migration", "npm install", "retry", "parser")
_SEARCH = "search_event_previews"
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "memory", "version": "1"},
}

Send = Callable[[str, dict[str, Any]], Any]
"""Sends a request and returns its result."""


def ask(send: Send, requests: int) -> None:
    """Ask what an agent does: search, open a session and an event of it, count; every tenth search is an expression."""
    for number in range(requests // 5):
        word = f"{_WORDS[number % len(_WORDS)]}" if number % 10 else "def [a-z]+_test"
        exact = {"regex": True, "order": "newest"} if number % 10 == 0 else {}
        listed = _call(send, "list_sessions", limit=20)["sessions"]
        session = listed[number % len(listed)]["id"]
        _call(send, _SEARCH, query=word, **exact)
        _call(send, _SEARCH, query=word, order="newest", limit=10 + number)
        _call(send, "get_session_details", session_id=session)
        if number % 2:
            _call(send, "run_sql", sql="SELECT tool, count(*) FROM tool_calls GROUP BY 1")
        else:
            _call(send, "analyze_session", session_id=session)


def _call(send: Send, name: str, **arguments: Any) -> Any:
    result = send("tools/call", {"name": name, "arguments": arguments})
    assert not result.get("isError"), result
    return result["structuredContent"]["data"]


def _over_stdio(server: subprocess.Popen[bytes]) -> Send:
    numbers = count()

    def send(method: str, params: dict[str, Any]) -> Any:
        assert server.stdin is not None and server.stdout is not None
        number = next(numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        while (answer := json.loads(server.stdout.readline())).get("id") != number:
            pass
        return answer["result"]

    send("initialize", _HELLO)
    return send


def _over_http(url: str, token: str) -> Send:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }

    def send(method: str, params: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        connection.request("POST", "/mcp", json.dumps(message), headers)
        return json.loads(connection.getresponse().read())["result"]

    send("initialize", _HELLO)
    return send


def _tell(name: str, pids: Iterable[int]) -> None:
    for pid in pids:
        told = {kind: sum(_kilobytes(pid, "smaps_rollup", f"{line}:") for line in _LINES[kind]) for kind in _LINES}
        sys.stdout.write(f"{name}: " + ", ".join(f"{kind} {value // 1024} MB" for kind, value in told.items()) + "\n")


_LINES = {"resident": ("Rss",), "its share": ("Pss",), "private": ("Private_Clean", "Private_Dirty")}


def main() -> None:
    """Ask eight servers over stdio, and one over HTTP with four clients, with the index of AGTRACE_DATA_DIR.

    A machine has what the servers share only once: of the figures, `its share` (PSS) adds up to what it needs.
    """
    agtrace = str(Path(sys.executable).with_name("agtrace"))
    quiet: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    servers = [subprocess.Popen([agtrace, "mcp"], **quiet) for _ in range(STDIO_SERVERS)]
    with ThreadPoolExecutor(STDIO_SERVERS) as pool:
        list(pool.map(lambda server: ask(_over_stdio(server), REQUESTS), servers))
    _tell("stdio", (server.pid for server in servers))
    for server in servers:
        server.kill()
    token = subprocess.run([agtrace, "mcp", "--show-token"], capture_output=True, text=True, check=True).stdout.strip()
    with subprocess.Popen([agtrace, "mcp", "--http", "127.0.0.1:0"], **{**quiet, "stderr": subprocess.PIPE}) as server:
        assert server.stderr is not None
        url = json.loads(server.stderr.readline())["url"]
        Thread(target=server.stderr.read, daemon=True).start()
        with ThreadPoolExecutor(HTTP_CLIENTS) as pool:
            list(pool.map(lambda _: ask(_over_http(url, token), REQUESTS), range(HTTP_CLIENTS)))
        _tell("HTTP", [server.pid])
        server.kill()


if __name__ == "__main__":
    main()
