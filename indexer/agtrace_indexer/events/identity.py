"""The identity of an event across logs: one number made from the log's own id for it and from its text.

The upper 40 bits come from the id, so that a line can be found by its id alone; the lower 23 from the text, so that
two logs that use one id for different things don't produce copies.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b

LINE_SPAN = 1 << 23
"""The span of identities under one id: `line_identity(id)` and the `LINE_SPAN - 1` numbers after it."""

_TEXT_COMPARED = 2048


def identity(key: str, text: str) -> int:
    """Return the identity of an event: a positive number of 63 bits."""
    said = zlib.crc32(text[:_TEXT_COMPARED].encode("utf-8", "surrogatepass"), len(text) & 0xFFFFFFFF)
    return line_identity(key) | (said % LINE_SPAN)


def line_identity(key: str) -> int:
    """Return the smallest identity under this id."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=5).digest(), "big") * LINE_SPAN
