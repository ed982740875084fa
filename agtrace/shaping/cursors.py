"""Cursors: small, opaque, signed positions in the answer to one exact query (schema/README.md).

A cursor holds a keyed fingerprint of the tool and its arguments, the time it was made (rounded down
to half its lifetime, so that a repeated call gives the same cursor) and a position: a few integers,
one of which marks the snapshot. It is signed with a key from a file that only the owner can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from itsdangerous import BadData, Signer
from itsdangerous.encoding import base64_decode, base64_encode
from itsdangerous.signer import HMACAlgorithm
from msgspec import Struct

from agtrace.problems import InvalidCursor

_SALT = "agtrace.cursor.2"
"""The number changes with what the positions of any tool consist of: an older cursor is then malformed."""
_FINGERPRINT = 5
_KEY_BYTES = 32
_NOT_PART_OF_QUERY = frozenset({"cursor", "limit", "max_bytes"})


class _ShortMac(HMACAlgorithm):
    """HMAC-SHA-256 cut to 12 bytes, because a model reads every character of a cursor."""

    def __init__(self) -> None:
        super().__init__(hashlib.sha256)

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return super().get_signature(key, value)[:12]


class Cursors(Struct, frozen=True):
    """Makes and reads cursors with a key."""

    key: bytes
    ttl_seconds: int
    now: Callable[[], float] = time.time
    of: str | None = None
    """Which team's database is asked, and whose sessions, which is part of the query; None for one's own index."""

    def make(self, tool: str, arguments: Mapping[str, Any], position: tuple[int, ...]) -> str:
        """Return the cursor that continues this query after `position`."""
        step = self._granularity
        made = int(self.now()) // step * step
        packed = self._fingerprint(tool, arguments) + _pack((made, *position))
        return self._signer().sign(base64_encode(packed)).decode()

    def read(self, tool: str, arguments: Mapping[str, Any], cursor: str) -> tuple[int, ...]:
        """Return the position of a cursor.

        Raises `InvalidCursor` with the reason malformed, expired or mismatch.
        """
        try:
            packed = base64_decode(self._signer().unsign(cursor))
            made, *position = _unpack(packed[_FINGERPRINT:])
        except (BadData, ValueError):
            raise InvalidCursor("malformed") from None
        if not hmac.compare_digest(packed[:_FINGERPRINT], self._fingerprint(tool, arguments)):
            raise InvalidCursor("mismatch")
        if self.now() >= made + self.ttl_seconds + self._granularity:
            raise InvalidCursor("expired")
        return tuple(position)

    @property
    def _granularity(self) -> int:
        return max(1, self.ttl_seconds // 2)

    def _signer(self) -> Signer:
        return Signer(self.key, salt=_SALT, key_derivation="hmac", digest_method=hashlib.sha256, algorithm=_ShortMac())

    def _fingerprint(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        query = {k: v for k, v in arguments.items() if v is not None and k not in _NOT_PART_OF_QUERY}
        text = orjson.dumps([tool, query] if self.of is None else [tool, query, self.of], option=orjson.OPT_SORT_KEYS)
        return hmac.digest(self.key, text, "sha256")[:_FINGERPRINT]


def load_key(path: Path) -> bytes:
    """Read the key that signs cursors; make one first unless there is one that only its owner can read.

    Raises `OSError` if none can be made.
    """
    key = _key_in(path)
    if key is not None and not _is_open_to_others(path):
        return key
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        if key is None:
            _put(fresh, path)
        elif not _is_open_to_others(fresh):  # otherwise the file system has no permissions
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path.read_bytes()


def _put(fresh: Path, path: Path) -> None:
    """Move a key into place, but never over one that another process put there."""
    try:
        os.link(fresh, path)
    except OSError:
        if _key_in(path) is None:
            fresh.replace(path)


def _key_in(path: Path) -> bytes | None:
    """Return the key in a file; None if there is none or the file is damaged, a link or a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        key = file.read(_KEY_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    return key if len(key) == _KEY_BYTES else None


def _is_open_to_others(path: Path) -> bool:
    return os.name != "nt" and bool(path.lstat().st_mode & 0o077)


def _pack(numbers: tuple[int, ...]) -> bytes:
    """Encode integers in as few bytes as they need: 7 bits per byte, zigzag for the sign."""
    packed = bytearray()
    for number in numbers:
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def _unpack(packed: bytes) -> list[int]:
    numbers, rest, shift = [], 0, 0
    for byte in packed:
        rest |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(rest >> 1 if not rest & 1 else -((rest + 1) >> 1))
            rest, shift = 0, 0
    if shift or not numbers:
        raise ValueError("no numbers")
    return numbers
