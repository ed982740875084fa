"""Blocks: the texts of events, about 64 KB of neighbours from one session compressed together.

Size and level are a compromise. Of 490 MB of text, blocks of 32 KB keep 32.2 % at level 1 and 31.1 % at level 3,
blocks of 64 KB 29.9 % and 28.7 %, at 455, 369, 530 and 404 MB/s; opening one takes 26 us and 40 us.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from bisect import bisect_right
from itertools import accumulate, count
from operator import add
from typing import Any, NamedTuple

import orjson
import zstandard
from msgspec import Struct, field

TEXT_SIZE = 64 * 1024
"""Bytes of text at which a block is full."""

MOST_EVENTS = 512
"""Events at which a block is full, however short they are."""


class _Zstandard(threading.local):
    """A compressor and a decompressor for each thread: two threads using the same one crash the process.

    Looking up a thread's own takes 0.5 us; creating one for each call would add 15 us to the 3 us of a chunk of words
    and to the 46 us of a block.
    """

    def __init__(self) -> None:
        checked = zstandard.ZstdCompressor(level=3, write_checksum=True)  # a flipped bit must not become another text
        self.compress, self.decompress = checked.compress, zstandard.ZstdDecompressor().decompress


_ZSTANDARD = _Zstandard()


class Damaged(sqlite3.DatabaseError):
    """Something that the index has of a log can't be read."""


class PackedBlock(NamedTuple):
    """The two columns of `block_data`."""

    ends: bytes
    text: bytes

    @classmethod
    def of(cls, texts: list[bytes], payloads: list[dict[str, Any] | None]) -> PackedBlock:
        """Compress the texts of events, and after them the rest of their payloads, which repeats much of them."""
        ends = array("I", map(add, accumulate(map(len, texts)), count()))  # a separator before all but the first
        return cls(ends.tobytes(), pack(b"\0".join([*texts, _dumps(payloads)])))


class OpenBlock(Struct):
    """A block that still takes events."""

    first_index: int
    texts: list[bytes] = field(default_factory=list)
    payloads: list[dict[str, Any] | None] = field(default_factory=list)
    t0: int = 0
    """The earliest time of its events; 0 is unknown."""
    t1: int = 0
    size: int = 0
    """Bytes of its texts, each followed by a separator."""
    types: int = 0
    """The types of its events, bit 1 << code."""
    tools: set[int] = field(default_factory=set)
    """The name ids of the tools in its calls and results."""

    @classmethod
    def reopened(cls, first_index: int, stored: BlockText, t0: int, t1: int, types: int) -> OpenBlock:
        """Reopen a stored block that isn't full."""
        data = stored.data
        return cls(first_index, data.split(b"\0")[:-1], stored.payloads(), t0, t1, len(data), types)

    def add(self, text: str, payload: dict[str, Any] | None, ts: int, type_code: int, tool: int | None) -> None:
        """Append the next event."""
        self.types |= 1 << type_code
        if tool is not None:
            self.tools.add(tool)
        if ts > self.t1 or not self.texts:
            self.t1 = ts
        if not self.t0 or 0 != ts < self.t0:
            self.t0 = ts
        encoded = text.encode("utf-8", "replace")
        self.texts.append(encoded)
        self.payloads.append(payload)
        self.size += len(encoded) + 1

    @property
    def full(self) -> bool:
        """Whether the next event needs a new block."""
        return self.size >= TEXT_SIZE or len(self.texts) >= MOST_EVENTS

    def pack(self) -> PackedBlock:
        """Compress the block as it is."""
        return PackedBlock.of(self.texts, self.payloads)


def unpack(data: bytes) -> bytes:
    """Decompress a column of `block_data`, words of the vocabulary, or the stored state of a parser. For any thread.

    Raise `Damaged` if that fails, an error as SQLite has it for a damaged page.
    """
    try:
        return _ZSTANDARD.decompress(data)
    except zstandard.ZstdError as error:
        raise Damaged(f"a stored text can't be decompressed: {error}") from error


def pack(data: bytes) -> bytes:
    """Compress bytes for the index, with a checksum. For any thread."""
    return _ZSTANDARD.compress(data)


class BlockText(Struct, frozen=True):
    """The texts of a block, for searching and for showing single events."""

    data: bytes
    """The texts, each followed by NUL."""
    ends: array[int]
    rests: bytes = b""
    """The rest of the payload of each event, as JSON."""

    @classmethod
    def of(cls, ends: bytes, text: bytes) -> BlockText:
        """Unpack the two columns."""
        positions = array("I", ends)
        size = positions[-1] + 1 if positions else 0
        data = unpack(text)
        return cls(data[:size], positions, data[size:])

    def payloads(self) -> list[dict[str, Any] | None]:
        """Return the rest of the payload of each event. Raise `Damaged`."""
        try:
            result: list[dict[str, Any] | None] = orjson.loads(self.rests)
        except orjson.JSONDecodeError as error:
            raise Damaged(f"stored payloads can't be read: {error}") from error
        return result

    def event_at(self, position: int) -> int:
        """Return the number, within the block, of the event whose text contains this byte."""
        return bisect_right(self.ends, position - 1) if position else 0

    def start(self, number: int) -> int:
        """Return the position at which the text of an event begins."""
        return self.ends[number - 1] + 1 if number else 0

    def text(self, number: int) -> str:
        """Return the text of one event of the block."""
        return self.data[self.start(number) : self.ends[number]].decode("utf-8", "replace")


def _dumps(payloads: list[dict[str, Any] | None]) -> bytes:
    try:
        return orjson.dumps(payloads)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        import json

        text = json.dumps(payloads, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")
