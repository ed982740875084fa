"""Telling which agent wrote a file: from its first lines, or from all of it where it may be one JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from agtrace_schema.events import Provider

from agtrace_indexer.formats import Content, completed, crowded, decode, recognize
from agtrace_indexer.lines import HEAD_OF_LONG_LINE, MAX_LINE, Line

MAX_DOCUMENT = MAX_LINE
"""Bytes. A whole-file JSON document beyond it is not parsed."""

HEAD = 1024
"""Bytes at the beginning of a file that identify a log, wherever it lies."""

BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
"""What may stand before JSON: a byte order mark, blanks."""

_SNIFFED_LINES = 64


def until_recognized(lines: Iterator[Line]) -> Iterator[tuple[Line, Provider | None]]:
    """Give lines with the provider that recognises them, up to the first recognised or the sniffing limits."""
    size = 0
    for _, line in zip(range(_SNIFFED_LINES), lines, strict=False):
        provider = _recognized(line)
        yield line, provider
        size += len(line.data)
        if provider is not None or size > MAX_LINE:
            return


def _recognized(line: Line) -> Provider | None:
    """The provider of a line, told from its head where it is too long to be parsed."""
    if line.data.lstrip(BEFORE_JSON)[:1] != b"{":
        return None
    parsable = line.whole and not crowded(line.data)
    values = decode(line.data) if parsable else [completed(line.data[:HEAD_OF_LONG_LINE])]
    return recognize(values[0]) if values and isinstance(values[0], dict) else None


def rest_of_document(read: list[Line], lines: Iterable[Line]) -> bytes | None:
    """All bytes of a file that may be one JSON document; None if it begins otherwise or is too long."""
    if not read or read[0].data.lstrip(BEFORE_JSON)[:1] not in (b"{", b"["):
        return None
    parts, size, ended = [], 0, False
    for line in chain(read, lines):
        size += line.length + 1
        if size > MAX_DOCUMENT or not line.whole:
            return None
        parts.append(line.data)
        ended = line.ended
    return b"\n".join(parts) + b"\n" * ended


def why_no_log(read: list[Line], data: bytes | None, values: list[Any] | None, content: Content) -> tuple[str, str]:
    """The status and the reason of a file in which no provider found its format."""
    if content.damage:
        return "unreadable", content.damage
    if data is not None and b"\0" in data[:HEAD]:
        return "unrecognized", "a binary file"
    if any(not line.whole for line in read):
        return "unreadable", f"begins with a line of more than {MAX_LINE} bytes: {_kept(read)} bytes seen"
    if data is not None and values is None and not data.rstrip().endswith((b"}", b"]")):
        return "waiting", "half-written: waits for its rest"
    return "unrecognized", "not a log format that agtrace knows"


def _kept(read: list[Line]) -> int:
    return sum(line.length for line in read)
