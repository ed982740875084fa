"""The content of a log file, compressed or not."""

from __future__ import annotations

from typing import Protocol

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
        while data:
            if self._frame is None or self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready += self._frame.decompress(data)
            except zstandard.ZstdError as error:
                self.damage = f"the compressed file is damaged ({error}); everything up to there is indexed"
                return
            data = self._frame.unused_data if self._frame.eof else b""
