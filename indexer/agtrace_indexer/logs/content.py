"""The content of a log file, compressed or not."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import zstandard

MOST_FOLD, ALWAYS_GIVEN = 256, 64 * 1024 * 1024
"""A compressed file is read as long as it yields at most this many bytes for each of its own, or at most this many in
all. Of 94 logs (zstd, level 19) one expanded 69-fold, half of them less than 6-fold."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK = 1024 * 1024
_COMPRESSED_CHUNK = 2048  # hostile data expands 30,000-fold


class Seekable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""

    def seek(self, position: int, /) -> int:
        """Go to a position."""


class Content:
    """The content of an open file from its beginning, decompressed if its first bytes are zstd's.

    Damaged or truncated compressed data ends the content early, as does data that expands more than any log does
    (`MOST_FOLD`); `damage` then says so.
    """

    def __init__(self, file: Seekable) -> None:
        self.damage: str | None = None
        self._file = file
        file.seek(0)
        self._compressed = file.read(len(ZSTD_MAGIC)) == ZSTD_MAGIC
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = bytearray()
        self._taken = self._given = 0
        file.seek(0)

    def skip_to(self, position: int) -> None:
        """Go to a position of the decompressed content; only once, before the first read."""
        if not self._compressed:
            self._file.seek(position)
            return
        while position > 0 and (skipped := self.read(min(position, _CHUNK))):
            position -= len(skipped)

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        if not self._compressed:
            return self._file.read(size)
        while not self._ready and self.damage is None:
            data = self._file.read(_COMPRESSED_CHUNK)
            if not data:
                if self._frame is None or not self._frame.eof:
                    self.damage = "the compressed file is cut off; everything up to there is indexed"
                break
            self._decompress(data)
            self._taken += len(data)
        piece = bytes(self._ready[:size])
        self._given += len(piece)
        if self._given > ALWAYS_GIVEN + MOST_FOLD * self._taken:
            self.damage = f"the compressed file expands more than {MOST_FOLD}-fold; everything up to there is indexed"
            self._ready.clear()
            return b""
        del self._ready[:size]
        return piece

    def _decompress(self, data: bytes) -> None:
        import zstandard

        while data:
            if self._frame is None or self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready += self._frame.decompress(data)
            except zstandard.ZstdError as error:
                self.damage = f"the compressed file is damaged ({error}); everything up to there is indexed"
                return
            data = self._frame.unused_data if self._frame.eof else b""


# -- the tail -----------------------------------------------------------------------------------------

_PIECE = 64 * 1024
_MOST = 1024 * 1024
"""Bytes from the end of a log that are looked at: a line that is longer says nothing here."""
_HOW = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def last_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the last JSON objects of a log of JSON lines, newest first; nothing of a log that can't be read.

    A half-written last line, and lines that aren't JSON objects, are left out.
    """
    for line in _last_lines(path):
        try:
            record = json.loads(line)  # loaded by a status line, so not by way of `decoding`
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _last_lines(path: str) -> Iterator[bytes]:
    """Yield the last complete lines of a regular file, newest first."""
    try:
        descriptor = os.open(path, _HOW)
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        try:
            end = first = os.fstat(descriptor).st_size
            rest: bytes | None = None
            while first > 0 and end - first < _MOST:
                start = max(first - _PIECE, 0)
                file.seek(start)
                data, first = file.read(first - start), start
                if rest is None:  # what follows the last line break isn't complete
                    data, ended, _ = data.rpartition(b"\n")
                    if not ended:
                        continue
                lines = (data + (rest or b"")).split(b"\n")
                yield from reversed(lines[1:] if start else lines)
                rest = lines[0]
        except OSError:
            return
