"""Connections that do nothing, or hardly anything: they are limited in number and time, and requests are answered."""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace.answers.log import Lines
from agtrace.serving.connections import Connection, listen
from agtrace.serving.http_auth import MOST_REQUESTS, Auth
from tests.depth import SECOND
from tests.e2e.test_http import Listening, half_a_request, listening, raw

FILES = 96
IDLE, SLOW_HEADS, SLOW_BODIES, DEAF = 150, 34, 34, 34
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
ROUNDS = 10
SECONDS = 300.0


# -- the flood -------------------------------------------------------------------------------------


class Crowd:
    """Clients that open connections and don't go on."""

    def __init__(self, server: Listening, held: ExitStack) -> None:
        self._server, self._held = server, held
        ways = [self._idle] * IDLE + [self._head] * SLOW_HEADS + [self._body] * SLOW_BODIES + [self._deaf] * DEAF
        self._members = [(come(), come) for come in ways]

    def _idle(self) -> socket.socket:
        return self._held.enter_context(socket.create_connection(("127.0.0.1", self._server.port), timeout=SECONDS))

    def _head(self) -> socket.socket:
        connection = self._idle()
        connection.sendall(b"POST /mcp HTTP/1.1\r\nX: ")
        return connection

    def _body(self) -> socket.socket:
        return self._held.enter_context(half_a_request(self._server))

    def _deaf(self) -> socket.socket:
        connection = self._held.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", self._server.port))
        connection.sendall(20 * raw(self._server, LIST, len(LIST)))
        return connection

    def leave(self, seconds: float = 0) -> int:
        """Give up the connections that were closed, waiting for one as long; gives how many."""
        poll = select.poll()
        for connection, _ in self._members:
            poll.register(connection, select.POLLRDHUP)
        closed = {descriptor for descriptor, _ in poll.poll(1000 * seconds)}
        self._members = [member for member in self._members if member[0].fileno() not in closed]
        return len(closed)

    def costs_nothing(self) -> bool:
        """Whether the server does nothing for those that are here."""
        before = processor_seconds(self._server.process.pid)
        return not self.leave(0.5) and processor_seconds(self._server.process.pid) - before < 0.05

    def go_on(self) -> None:
        """Whose connection was closed opens another; what comes byte by byte goes on by one."""
        here = self._members
        self.leave()
        self._members += [(come(), come) for connection, come in here if (connection, come) not in self._members]
        for connection, come in self._members:
            if come in (self._head, self._body):
                with suppress(ConnectionError):  # it was closed meanwhile
                    connection.send(b"x")


def processor_seconds(process: int) -> float:
    """What a process has taken of the processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_crowd_that_holds_connections_stops_nobody(own_home: Path) -> None:
    """150 idle ones, 34 heads and 34 bodies that come byte by byte, 34 who take no answer, and 96 files."""
    with listening(own_home, files=FILES) as server, ExitStack() as held:
        assert server.post("tools/list")[0] == 200
        crowd, longest = Crowd(server, held), 0.0
        for _ in range(ROUNDS):
            crowd.go_on()
            began = time.monotonic()
            assert server.post("tools/list")[0] == 200
            longest = max(longest, time.monotonic() - began)
            assert server.request("GET", "/healthz", Authorization="")[0] == 200
        assert longest < SECOND
        end = time.monotonic() + SECONDS
        while crowd.leave(0.3) or not crowd.costs_nothing():
            assert time.monotonic() < end
    told = [record["message"] for record in server.logged if record["event"] == "log"]
    assert len(told) == 1 and "connections are open" in told[0]


# -- the time that a client has --------------------------------------------------------------------


class Hasty(Connection):
    """A connection whose client has little time."""

    patience = 0.3


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[tuple[uvicorn.Server, tuple[str, int]]]:
    """Serve an application to hasty connections; gives the server and its address."""
    with listen("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        server = uvicorn.Server(uvicorn.Config(app, http=Hasty, lifespan="off", log_config=None, ws="none"))
        async with anyio.create_task_group() as group:
            group.start_soon(partial(server.serve, [listening]))
            with anyio.fail_after(SECONDS):
                yield server, address
            server.should_exit = server.force_exit = True


async def greets(scope: Scope, receive: Receive, send: Send) -> None:
    """Read a request to its end, and answer it."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", b""),
        (b"POST / HTTP/1.1\r\nX: ", b"x"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (HEAD + b"Content-Length: 0\r\n\r\n" + HEAD + b"X: ", b"x"),
    ],
    ids=["idle", "head", "body", "chunks", "second request"],
)
def test_a_request_that_is_not_whole_in_time_is_awaited_no_longer(first: bytes, again: bytes) -> None:
    """However steadily it comes."""

    async def ask() -> None:
        async with serving(greets) as (server, address), await anyio.connect_tcp(*address) as connection:
            began = anyio.current_time()
            if first:
                await connection.send(first)
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    if again:
                        await connection.send(again)
                    with anyio.move_on_after(Hasty.patience / 6 if again else None):
                        await connection.receive()
            assert Hasty.patience <= anyio.current_time() - began + 0.01
            assert not server.server_state.connections

    anyio.run(ask)


@pytest.mark.parametrize("kept", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize("pieces", [1, 10])
def test_an_answer_that_nobody_takes_is_given_up(pieces: int, kept: bytes) -> None:
    """Whether it waits in the connection, done with, or in the application."""

    async def talks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in range(1, pieces + 1):
            await send({"type": "http.response.body", "body": b"x" * 10_000_000, "more_body": piece < pieces})

    async def ask() -> None:
        async with serving(talks) as (server, address):
            with socket.create_connection(address) as deaf:
                deaf.sendall(HEAD + kept + b"Content-Length: 0\r\n\r\n")
                while not server.server_state.connections:
                    await anyio.lowlevel.checkpoint()
                while server.server_state.connections:
                    await anyio.lowlevel.checkpoint()

    anyio.run(ask)


def test_an_answer_that_takes_long_to_make_is_not_cut_off() -> None:
    """A slow search, a stream that says little: the client has done its part."""

    async def thinks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        for letter in (b"h", b"i"):
            with anyio.move_on_after(2 * Hasty.patience):
                await anyio.sleep_forever()
            await send({"type": "http.response.body", "body": letter, "more_body": letter == b"h"})

    async def ask() -> None:
        async with serving(thinks) as (_, address), await anyio.connect_tcp(*address) as connection:
            await connection.send(HEAD + b"Content-Length: 0\r\n\r\n")
            answer = b""
            while not answer.endswith(b"hi"):
                answer += await connection.receive()

    anyio.run(ask)


# -- the room that there is ------------------------------------------------------------------------


def test_one_request_too_many_waits_until_another_is_answered_but_not_for_long() -> None:
    """Where 32 have come whole; it is told to come again then."""
    statuses: list[int] = []

    async def ask() -> None:
        may_answer = anyio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await may_answer.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def receive() -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        door = Auth(app, None)
        async with anyio.create_task_group() as group:
            for _ in range(MOST_REQUESTS):
                group.start_soon(door, {"type": "http", "method": "POST", "headers": []}, receive, send)
            await anyio.wait_all_tasks_blocked()
            await door({"type": "http", "method": "POST", "headers": []}, receive, send)
            assert statuses == [503]
            group.start_soon(door, {"type": "http", "method": "POST", "headers": []}, receive, send)
            await anyio.wait_all_tasks_blocked()
            may_answer.set()
        assert statuses == [503, *[200] * (MOST_REQUESTS + 1)]

    anyio.run(ask)


# -- the log ---------------------------------------------------------------------------------------


def test_a_fault_that_repeats_itself_is_told_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """With how often it came; another one is told at once."""
    clock = [100.0]
    log = logging.Logger("asyncio")
    log.addHandler(Lines(lambda: clock[0]))

    def fails(number: int, kind: type[Exception] = OSError) -> None:
        try:
            raise kind(number)
        except kind:
            log.exception("socket %d failed", number)

    for number in range(1000):
        fails(number)
    fails(0, ValueError)
    clock[0] += 60
    fails(1)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [record["message"] for record in told] == ["socket 0 failed", "socket 0 failed", "socket 1 failed"]
    assert [record.get("repeated") for record in told] == [None, None, 999]
