"""The stdio transport: a message a line, read and answered in bounded memory, with an end that nothing puts off.

When the client's input ends, answers that are nearly there still go out; then the process ends, whatever it is doing:
a search, an indexing run, an answer that nobody reads. While it serves, descriptor 0 is empty and descriptor 1 is
stderr, so that nothing but the protocol reaches the client.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from agtrace.answers.log import take_libraries
from agtrace.serving.ending import LAST_SECONDS, begin, end
from agtrace.serving.server import LARGEST_REQUEST, make_server

if TYPE_CHECKING:
    from agtrace.settings import Settings

MOST_REQUESTS = 256
"""That wait for their answers: the next message is looked at when one of them has gone out."""
MOST_BYTES = 16 * 1_048_576
"""Of lines that wait for their turn: the next line is read when there is room."""
_PIECE = 65_536
_BESIDE = 100
"""Bytes that a line takes besides its own."""

_END = b"\n"
"""Stands for the end of the input: no line holds it."""
_Line = bytes | None
"""None is one that was too long."""


def serve_stdio(settings: Settings) -> None:
    """Serve on stdin and stdout until the process ends, as it does with its client.

    Raises `OSError` where one of them is closed.
    """
    take_libraries()
    if sys.stdin is None or sys.stdout is None:
        raise OSError("stdin and stdout must be open: a client speaks to the server through them")
    anyio.run(_converse, make_server(settings))


async def _converse(server: Server[Any]) -> None:
    asked, answers = _taken(0, os.open(os.devnull, os.O_RDONLY)), _taken(1, _elsewhere())
    waiting = _Waiting()
    arrived, lines = anyio.create_memory_object_stream[_Line](math.inf)
    inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, outbox = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as group:
        group.start_soon(_read, asked, arrived, waiting)
        group.start_soon(_hand_on, lines, inbox, outgoing.clone(), waiting)
        group.start_soon(_write, answers, outbox, waiting)
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Waiting:
    """What waits: lines for their turn, and requests for their answers."""

    def __init__(self) -> None:
        self._bytes = 0
        self._requests: set[str] = set()
        self._fewer = anyio.Event()

    def arrived(self, line: _Line) -> None:
        """Note a line."""
        self._bytes += len(line or b"") + _BESIDE

    def begins(self, line: _Line, message: types.JSONRPCMessage | None) -> None:
        """Note that it is a line's turn, and which message it holds. A request that is called off gets no answer."""
        self._bytes -= len(line or b"") + _BESIDE
        if isinstance(message, types.JSONRPCRequest):
            self._requests.add(str(message.id))
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._requests.discard(str((message.params or {}).get("requestId")))
        self._look_again()

    def answered(self, message: types.JSONRPCMessage) -> None:
        """Note an answer that has gone out."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._requests.discard(str(message.id))
            self._look_again()

    async def until(self, *, most_bytes: float = math.inf, most_requests: float = math.inf) -> None:
        """Wait until no more than that waits."""
        while self._bytes > most_bytes or len(self._requests) > most_requests:
            await self._fewer.wait()

    def _look_again(self) -> None:
        self._fewer.set()
        self._fewer = anyio.Event()


async def _read(descriptor: int, arrived: MemoryObjectSendStream[_Line], waiting: _Waiting) -> None:
    """Take what the client says; end the process behind its last word."""
    following, alone = partial(next, _lines(descriptor), _END), anyio.CapacityLimiter(1)
    begin()
    while (line := await anyio.to_thread.run_sync(following, abandon_on_cancel=True, limiter=alone)) is not _END:
        waiting.arrived(line)
        await arrived.send(line)
        await waiting.until(most_bytes=MOST_BYTES)
    with anyio.move_on_after(LAST_SECONDS):
        await waiting.until(most_bytes=0, most_requests=0)
    end()


async def _hand_on(
    lines: MemoryObjectReceiveStream[_Line],
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
    waiting: _Waiting,
) -> None:
    """Give the server a message after the other, as far as there is room; what is no message is answered here."""
    async for line in lines:
        message = _message(line)
        waiting.begins(line, message)
        if message is not None:
            await inbox.send(SessionMessage(message))
        elif line is None or line.strip():
            await outgoing.send(SessionMessage(_refusal(line)))
        await waiting.until(most_requests=MOST_REQUESTS - 1)


async def _write(descriptor: int, outbox: MemoryObjectReceiveStream[SessionMessage], waiting: _Waiting) -> None:
    """Send what the server says; a client that takes no answers any more has ended."""
    alone = anyio.CapacityLimiter(1)
    async for sent in outbox:
        text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
        line = text.encode() + b"\n"
        await anyio.to_thread.run_sync(_write_line, descriptor, line, abandon_on_cancel=True, limiter=alone)
        waiting.answered(sent.message)


def _write_line(descriptor: int, line: bytes) -> None:
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError:
        end()


def _lines(descriptor: int) -> Iterator[_Line]:
    kept: _Line = b""
    while piece := _piece(descriptor):
        *whole, rest = piece.split(b"\n")
        for last in whole:
            yield _longer(kept, last)
            kept = b""
        kept = _longer(kept, rest)
    yield kept


def _piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError:  # a terminal that hung up
        return b""


def _longer(kept: _Line, more: bytes) -> _Line:
    return None if kept is None or len(kept) + len(more) > LARGEST_REQUEST else kept + more


def _message(line: _Line) -> types.JSONRPCMessage | None:
    """The message that a line is, if it is one."""
    try:
        return types.jsonrpc_message_adapter.validate_json((line or b"").decode(errors="replace"), by_name=False)
    except ValueError:
        return None


def _refusal(line: _Line) -> types.JSONRPCError:
    """What is answered to a line that is no message; by its id, where it has one."""
    code, number, why = types.INVALID_REQUEST, None, "This is no message of the protocol."
    if line is None:
        why = f"A message may have at most {LARGEST_REQUEST:,} bytes."
    else:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            code, why = types.PARSE_ERROR, "This is no JSON."
        else:
            number = _id_in(value)
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=why))


def _id_in(value: Any) -> types.RequestId | None:
    number = value.get("id") if isinstance(value, dict) else None
    is_id = number.isprintable() if isinstance(number, str) else type(number) is int
    return number if is_id else None


def _taken(descriptor: int, instead: int) -> int:
    """A descriptor of our own for what a standard one is open for, which stands for something else from here on."""
    own = os.dup(descriptor)
    os.set_blocking(own, True)
    os.dup2(instead, descriptor)
    os.close(instead)
    return own


def _elsewhere() -> int:
    """Where what is printed by mistake goes: to stderr, if that is open."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
