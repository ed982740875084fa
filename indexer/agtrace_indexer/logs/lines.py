"""Reading the complete lines of a log that may still grow, in bounded memory.

Only the head and the length of a line longer than `MAX_LINE` are kept. A last line without a newline is handed over
as the tail, and the caller decides whether it is whole. So is the part read of a line longer than `LONGEST_LINE`;
nothing after it is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol

import orjson
from msgspec import Struct

from agtrace_indexer.logs.decoding import crowded, pieces

MAX_LINE = 32 * 1024 * 1024
"""Bytes. A longer line is not parsed: only its head, its length and its origin are kept."""

LONGEST_LINE = 256 * 1024 * 1024
"""Bytes. Reading stops within a longer line, 2 s after its beginning, as there is no telling how long it is."""

HEAD_OF_LONG_LINE = 64 * 1024
"""Bytes kept of a line longer than `MAX_LINE`."""

_CHUNK = 1024 * 1024

_LONGEST_JOINED, _MOST_STRINGS = 4 * 1024 * 1024, 64
"""Bytes of a value with line ends in its strings, and lines in which one of these begins or ends."""

_QUOTE = re.compile(rb'(?<!\\)(?:\\\\)*"')


class Readable(Protocol):
    """A source of bytes: a file or a decompressing reader."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class Line(NamedTuple):
    """One line of a log."""

    number: int
    """1, 2 ... within the file."""
    offset: int
    """The position of its first byte in the (decompressed) content."""
    length: int
    """Its length in bytes, without the newline."""
    data: bytes
    """Its content, or the head of its content."""
    ended: bool
    """False for the tail: no newline follows yet."""
    checksum: int = 0
    """CRC-32 of all content up to the end of the line, including the newline."""
    breaks: int = 0
    """Line ends in it: its agent didn't escape those of a text."""

    @property
    def text_length(self) -> int:
        """Its length in bytes without a final carriage return: the line may be read before that is written."""
        return self.length - (self.data.endswith(b"\r") and self.whole)

    @property
    def whole(self) -> bool:
        """Whether `data` is the whole line."""
        return len(self.data) == self.length

    def part(self, start: int, end: int) -> Line:
        """A part of it, which is a record of its own."""
        breaks = self.data.count(b"\n", 0, start) if self.breaks else 0
        return Line(self.number + breaks, self.offset + start, end - start, self.data[start:end], self.ended)


class Lines(Struct):
    """The lines of a stream from `offset` on; the last one may be an unended tail."""

    stream: Readable
    offset: int = 0
    number: int = 0
    checksum: int = 0
    max_line: int = MAX_LINE
    longest: int = LONGEST_LINE

    def __iter__(self) -> Iterator[Line]:
        """Yield every line in order; of consecutive empty ones only the last."""
        rest = b""
        while chunk := self.stream.read(_CHUNK):
            if not rest and not chunk.strip(b"\n"):
                yield self._empty_lines(len(chunk))
                continue
            *ended, rest = (rest + chunk).split(b"\n")
            empty = 0
            for data in ended:
                if not data:
                    empty += 1
                    continue
                if empty:
                    yield self._empty_lines(empty)
                    empty = 0
                yield self._whole_line(data, ended=True)
            if empty:
                yield self._empty_lines(empty)
            if len(rest) > self.max_line:
                line, rest = self._long_line(rest)
                yield line
                if not line.ended:
                    return
        if rest:
            yield self._whole_line(rest, ended=False)

    def _whole_line(self, data: bytes, *, ended: bool) -> Line:
        self.checksum = zlib.crc32(data, self.checksum)
        kept = data if len(data) <= self.max_line else data[:HEAD_OF_LONG_LINE]
        return self._next(kept, len(data), ended=ended)

    def _long_line(self, start: bytes) -> tuple[Line, bytes]:
        """Skip to the end of an overlong line, if there is one; return what is kept of it and what follows it."""
        head, length = start[:HEAD_OF_LONG_LINE], len(start)
        self.checksum = zlib.crc32(start, self.checksum)
        while length <= self.longest and (chunk := self.stream.read(_CHUNK)):
            rest, newline, following = chunk.partition(b"\n")
            length += len(rest)
            self.checksum = zlib.crc32(rest, self.checksum)
            if newline:
                return self._next(head, length, ended=True), following
        return self._next(head, length, ended=False), b""

    def _empty_lines(self, count: int) -> Line:
        """Advance past empty lines; return the last one."""
        before = count - 1
        self.number += before
        self.offset += before
        self.checksum = zlib.crc32(b"\n" * before, self.checksum)
        return self._next(b"", 0, ended=True)

    def _next(self, data: bytes, length: int, *, ended: bool) -> Line:
        self.number += 1
        if ended:
            self.checksum = zlib.crc32(b"\n", self.checksum)
        line = Line(self.number, self.offset, length, data, ended, self.checksum)
        self.offset += length + ended
        return line


class _Value(Enum):
    BROKEN = "broken"


BROKEN = _Value.BROKEN
"""The value of a line that isn't one plain JSON value: `decoding.pieces` takes it apart."""


def values_in(lines: Iterable[Line], *, final: bool = False) -> Iterator[tuple[Line, Any]]:
    """Yield lines with their JSON values; lines that are one value together are joined.

    Agents have written texts with their line ends as they are. So a line that ends within a string is held until the
    string has ended. If that makes no value, each of them is a line of its own; what is still held in the end is one
    that has no end yet, unless that is `final`: its agent writes no more.
    """
    held: list[Line] = []
    for line in lines:
        if held:
            held.append(line)
            is_one = _is_one(held)
            if is_one is not False:
                if is_one:
                    yield _join_lines(held), BROKEN
                    held = []
                continue
            yield from ((one, value_of(one)) for one in held[:-1])
            held = []
        value = value_of(line)
        if value is BROKEN and line.ended and _ends_in_string(line):
            held = [line]
        else:
            yield line, value
    if held and final:
        yield from ((one, value_of(one)) for one in held)
    elif held:
        yield _join_lines(held)._replace(ended=False, breaks=len(held)), BROKEN


def records_in(lines: Iterable[Line]) -> Iterator[tuple[Line, Any]]:
    """Yield lines, or the parts of those that aren't one plain value, with their values, `BROKEN` for what is none."""
    for line, value in values_in(lines):
        if value is BROKEN and line.whole and not crowded(line.data):
            for piece in pieces(line.data):
                yield line.part(piece.start, piece.end), piece.value if piece.readable else BROKEN
        else:
            yield line, value


def value_of(line: Line) -> Any:
    """Return the value of a line, `BROKEN` if it isn't one plain JSON value."""
    if not line.whole or crowded(line.data):
        return BROKEN
    try:
        return orjson.loads(line.data)
    except orjson.JSONDecodeError:
        return BROKEN


def _is_one(held: list[Line]) -> bool | None:
    """Whether lines are one value together, of which the first ends within a string; None if more are needed."""
    first, last = held[0], held[-1]
    if not last.whole or last.offset + last.length - first.offset > _LONGEST_JOINED:
        return False
    if last.ended and not _QUOTE.search(last.data):
        return None
    if sum(1 for line in held if _QUOTE.search(line.data)) > _MOST_STRINGS:
        return False
    end = pieces(_join_lines(held).data)[-1]
    if end.readable and end.start <= first.length:
        return True
    return None if end.open or not (last.ended or value_of(last) is not BROKEN) else False


def _join_lines(held: list[Line]) -> Line:
    """Return consecutive lines as one, with the line ends between them."""
    first, last = held[0], held[-1]
    data = bytearray()
    for line in held:
        data += b"\n" * (line.offset - first.offset - len(data)) + line.data
    return last._replace(
        number=first.number, offset=first.offset, length=len(data), data=bytes(data), breaks=last.number - first.number
    )


def _ends_in_string(line: Line) -> bool:
    found = pieces(line.data) if line.whole and not crowded(line.data) else []
    return bool(found) and found[-1].open
