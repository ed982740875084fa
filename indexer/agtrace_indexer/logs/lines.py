"""Reading the complete lines of a log that may still grow, in bounded memory.

Only the head and the length of a line longer than `MAX_LINE` are kept. A last line without a newline is handed over
as the tail, and the caller decides whether it is whole. So is the part read of a line longer than `LONGEST_LINE`;
nothing after it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

MAX_LINE = 32 * 1024 * 1024
"""Bytes. A longer line is not parsed: only its head, its length and its origin are kept."""

LONGEST_LINE = 256 * 1024 * 1024
"""Bytes. Reading stops within a longer line, 2 s after its beginning, as there is no telling how long it is."""

HEAD_OF_LONG_LINE = 64 * 1024
"""Bytes kept of a line longer than `MAX_LINE`."""

_CHUNK = 1024 * 1024


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

    @property
    def text_length(self) -> int:
        """Its length in bytes without a final carriage return: the line may be read before that is written."""
        return self.length - (self.data.endswith(b"\r") and self.whole)

    @property
    def whole(self) -> bool:
        """Whether `data` is the whole line."""
        return len(self.data) == self.length


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
                yield self._line(data)
            if empty:
                yield self._empty_lines(empty)
            if len(rest) > self.max_line:
                line, rest = self._long_line(rest)
                yield line
                if not line.ended:
                    return
        if rest:
            self.checksum = zlib.crc32(rest, self.checksum)
            kept = rest if len(rest) <= self.max_line else rest[:HEAD_OF_LONG_LINE]
            yield self._next(kept, len(rest), ended=False)

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

    def _line(self, data: bytes) -> Line:
        """Advance past a complete line: like `_next`, but as fast as possible."""
        length, offset = len(data), self.offset
        kept = data if length <= self.max_line else data[:HEAD_OF_LONG_LINE]
        self.number += 1
        self.offset = offset + length + 1
        self.checksum = zlib.crc32(b"\n", zlib.crc32(data, self.checksum))
        return Line(self.number, offset, length, kept, True, self.checksum)

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
