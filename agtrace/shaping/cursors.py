"""Cursors: small, opaque, signed positions in the answer to one exact query (schema/README.md).

A cursor holds a keyed fingerprint of the arguments and a position: a few integers, one of which marks the snapshot. It
is signed for its tool, with a key from a file that only the owner can read. Its time is rounded down to half its
lifetime, so that a repeated call gives the same cursor.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from itsdangerous import BadData, TimestampSigner, URLSafeTimedSerializer
from itsdangerous.signer import HMACAlgorithm
from msgspec import Struct

from agtrace.problems import InvalidCursor

_VERSION = 3
"""Changes with what the positions of any tool consist of: an older cursor is then malformed."""
_NOT_PART_OF_QUERY = frozenset({"cursor", "limit", "max_bytes"})


class _Numbers:
    """Integers in as few bytes as they need: 7 bits per byte, zigzag for the sign. A model reads every character."""

    @staticmethod
    def dumps(numbers: Iterable[int]) -> bytes:
        packed = bytearray()
        for number in numbers:
            rest = number << 1 if number >= 0 else (-number << 1) - 1
            while rest > 0x7F:
                packed.append(rest & 0x7F | 0x80)
                rest >>= 7
            packed.append(rest)
        return bytes(packed)

    @staticmethod
    def loads(packed: bytes) -> list[int]:
        numbers, rest, shift = [], 0, 0
        for byte in packed:
            rest |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                numbers.append(rest >> 1 if not rest & 1 else -((rest + 1) >> 1))
                rest, shift = 0, 0
        return numbers


class _ShortMac(HMACAlgorithm):
    """HMAC-SHA-256 cut to 12 bytes: 16 characters."""

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return super().get_signature(key, value)[:12]


class _Signer(TimestampSigner):
    def __init__(self, secret_key: bytes, salt: bytes, step: int, now: Callable[[], float]) -> None:
        mac = _ShortMac(hashlib.sha256)
        super().__init__(secret_key, salt, key_derivation="hmac", digest_method=hashlib.sha256, algorithm=mac)
        self._step, self._now = step, now

    def get_timestamp(self) -> int:
        return int(self._now()) // self._step * self._step


class Cursors(Struct, frozen=True):
    """Makes and reads cursors with a key."""

    key: bytes
    ttl_seconds: int
    now: Callable[[], float] = time.time
    of: str | None = None
    """Which team's database is asked, and whose sessions, which is part of the query; None for one's own index."""

    def make(self, tool: str, arguments: Mapping[str, Any], position: tuple[int, ...]) -> str:
        """Return the cursor that continues this query after `position`."""
        made = self._serializer(tool).dumps((self._fingerprint(arguments), *position))
        return made if isinstance(made, str) else made.decode()

    def read(self, tool: str, arguments: Mapping[str, Any], cursor: str) -> tuple[int, ...]:
        """Return the position of a cursor.

        Raises `InvalidCursor` with the reason malformed (as one of another tool is), expired or mismatch.
        """
        try:
            (fingerprint, *position), made = self._serializer(tool).loads(cursor, return_timestamp=True)
        except (BadData, ValueError):
            raise InvalidCursor("malformed") from None
        if self.now() >= made.timestamp() + self._step + self.ttl_seconds:  # a clock that was put back expires nothing
            raise InvalidCursor("expired")
        if fingerprint != self._fingerprint(arguments):
            raise InvalidCursor("mismatch")
        return tuple(position)

    @property
    def _step(self) -> int:
        return max(1, self.ttl_seconds // 2)

    def _serializer(self, tool: str) -> URLSafeTimedSerializer:
        how = {"step": self._step, "now": self.now}
        salt = f"agtrace.cursor.{_VERSION}.{tool}"
        return URLSafeTimedSerializer(self.key, salt, serializer=_Numbers, signer=_Signer, signer_kwargs=how)

    def _fingerprint(self, arguments: Mapping[str, Any]) -> int:
        query = {k: v for k, v in arguments.items() if v is not None and k not in _NOT_PART_OF_QUERY}
        text = orjson.dumps([query, self.of], option=orjson.OPT_SORT_KEYS)
        return int.from_bytes(hmac.digest(self.key, text, "sha256")[:4]) >> 5  # 27 bits and the sign take 4 bytes
