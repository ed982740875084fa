"""The stdio transport: one message per line, read and answered in bounded memory, with an end that nothing delays.

When the client's input ends, answers that are almost done are still sent; then the process ends, whatever it is doing:
a search, an indexing run, an answer that nobody reads. While the server runs, descriptor 0 is empty and descriptor 1
is stderr, so that nothing but the protocol reaches the client.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from agtrace.answers.log import capture_library_logs
from agtrace.problems import SettingError
from agtrace.serving.ending import begin, end, last_seconds
from agtrace.serving.server import LARGEST_REQUEST, make_server

if TYPE_CHECKING:
    from agtrace.settings.live import Live

MOST_REQUESTS = 256
"""The most requests waiting for answers: the next message is handled when one of them has been sent."""
MOST_BYTES = 16 * 1_048_576
"""The most bytes of lines waiting for their turn: the next line is read when there is room."""
_PIECE = 65_536
_BESIDE = 100
"""Bytes of overhead per line."""

_END = b"\n"
"""Marks the end of the input: no line contains it."""
_Line = bytes | None
"""None for a line that was too long."""


def serve_stdio(live: Live) -> None:
    """Serve on stdin and stdout until the process ends, together with its client.

    Raises `SettingError` if one of them is closed.
    """
    live.follow_signal()
    serve(make_server(live))


class Watching(Protocol):
    """Is told what becomes of messages."""

    def unreadable(self, why: str) -> None:
        """Note a line that isn't a message."""

    def sent(self, id: types.RequestId) -> None:
        """Note that the answer to a request was written."""

    def unsent(self, id: types.RequestId, error: str) -> None:
        """Note that the answer to a request couldn't be written; the process ends."""


def serve(server: Server[Any], watching: Watching | None = None) -> None:
    """Serve on stdin and stdout until the process ends, together with its client.

    Raises `SettingError` if one of them is closed.
    """
    capture_library_logs()
    if sys.stdin is None or sys.stdout is None:
        raise SettingError("stdin and stdout must be open: clients talk to the server through them")
    anyio.run(_converse, server, watching)


async def _converse(server: Server[Any], watching: Watching | None) -> None:
    asked, answers = _own_descriptor(0, os.open(os.devnull, os.O_RDONLY)), _own_descriptor(1, _elsewhere())
    waiting = _Waiting()
    arrived, lines = anyio.create_memory_object_stream[_Line](math.inf)
    inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, outbox = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as group:
        group.start_soon(_read, asked, arrived, waiting)
        group.start_soon(_hand_on, lines, inbox, outgoing.clone(), waiting, watching)
        group.start_soon(_write, answers, outbox, waiting, watching)
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Waiting:
    """The lines waiting for their turn and the requests waiting for their answers."""

    def __init__(self) -> None:
        self._bytes = 0
        self._requests = Counter[str]()
        """By id: nothing keeps a client from using one again before it has the answer."""
        self._fewer = anyio.Event()

    def arrived(self, line: _Line) -> None:
        """Note a line that has arrived."""
        self._bytes += len(line or b"") + _BESIDE

    def begins(self, line: _Line, message: types.JSONRPCMessage | None) -> None:
        """Note that it is a line's turn, and its message. A cancelled request gets no answer."""
        self._bytes -= len(line or b"") + _BESIDE
        if isinstance(message, types.JSONRPCRequest):
            self._requests[str(message.id)] += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._requests -= Counter([str((message.params or {}).get("requestId"))])
        self._look_again()

    def answered(self, message: types.JSONRPCMessage) -> None:
        """Note an answer that has been sent."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._requests -= Counter([str(message.id)])
            self._look_again()

    async def until(self, *, most_bytes: float = math.inf, most_requests: float = math.inf) -> None:
        """Wait until at most this much is waiting."""
        while self._bytes > most_bytes or self._requests.total() > most_requests:
            await self._fewer.wait()

    def _look_again(self) -> None:
        self._fewer.set()
        self._fewer = anyio.Event()


async def _read(descriptor: int, arrived: MemoryObjectSendStream[_Line], waiting: _Waiting) -> None:
    """Read the client's lines; end the process after the last one."""
    following, alone = partial(next, _lines(descriptor), _END), anyio.CapacityLimiter(1)
    begin()
    while (line := await anyio.to_thread.run_sync(following, abandon_on_cancel=True, limiter=alone)) is not _END:
        waiting.arrived(line)
        await arrived.send(line)
        await waiting.until(most_bytes=MOST_BYTES)
    with anyio.move_on_after(last_seconds()):
        await waiting.until(most_bytes=0, most_requests=0)
    end()


async def _hand_on(
    lines: MemoryObjectReceiveStream[_Line],
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
    waiting: _Waiting,
    watching: Watching | None,
) -> None:
    """Pass the server one message after another, as long as there is room; invalid lines are answered here."""
    async for line in lines:
        try:
            message = types.jsonrpc_message_adapter.validate_json((line or b"").decode(errors="replace"), by_name=False)
        except ValueError:
            message = None
        waiting.begins(line, message)
        if message is not None:
            await inbox.send(SessionMessage(message))
        elif line is None or line.strip():
            refusal = _refusal(line)
            if watching is not None:
                watching.unreadable(refusal.error.message)
            await outgoing.send(SessionMessage(refusal))
        await waiting.until(most_requests=MOST_REQUESTS - 1)


async def _write(
    descriptor: int, outbox: MemoryObjectReceiveStream[SessionMessage], waiting: _Waiting, watching: Watching | None
) -> None:
    """Send the server's messages; a client that no longer accepts any has ended."""
    alone = anyio.CapacityLimiter(1)
    async for sent in outbox:
        text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
        line = text.encode() + b"\n"
        error = await anyio.to_thread.run_sync(_write_line, descriptor, line, abandon_on_cancel=True, limiter=alone)
        if watching is not None and isinstance(sent.message, types.JSONRPCResponse | types.JSONRPCError):
            id = sent.message.id
            if id is not None:
                watching.sent(id) if error is None else watching.unsent(id, error)
        if error is not None:
            end()
        waiting.answered(sent.message)


def _write_line(descriptor: int, line: bytes) -> str | None:
    """Write a line; return the error if the client no longer reads."""
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError as error:
        return error.strerror or str(error)
    return None


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


def _refusal(line: _Line) -> types.JSONRPCError:
    """Return the error for a line that is not a message, with its id if it has one."""
    code, number, why = types.INVALID_REQUEST, None, "This is not a protocol message."
    if line is None:
        why = f"A message may have at most {LARGEST_REQUEST:,} bytes."
    else:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            code, why = types.PARSE_ERROR, "This is not JSON."
        else:
            number = _id_in(value)
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=why))


def _id_in(value: Any) -> types.RequestId | None:
    number = value.get("id") if isinstance(value, dict) else None
    is_id = number.isprintable() if isinstance(number, str) else type(number) is int
    return number if is_id else None


def _own_descriptor(descriptor: int, instead: int) -> int:
    """Duplicate a standard descriptor for our own use, and redirect the standard one."""
    own = os.dup(descriptor)
    os.set_blocking(own, True)
    os.dup2(instead, descriptor)
    os.close(instead)
    return own


def _elsewhere() -> int:
    """Return a descriptor for anything printed by mistake: stderr if it is open."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
