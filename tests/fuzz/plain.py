"""What a log says, told without the indexer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agtrace_indexer.providers.registry import recognize

from tests.fuzz.sources import LISTS

DEEP = 300
"""How deep JSON may be nested for all decoders to agree that it is JSON."""

_HEAD = 1024


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a log; the last one may have no end."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def values_in(line: bytes) -> tuple[int, int]:
    """How many JSON values stand on a line, at least and at most; none where it isn't JSON as a whole."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").rstrip()
    decoder, position, count = json.JSONDecoder(), 0, 0
    depth = _depth(text)
    try:
        while position < len(text):
            _, position = decoder.raw_decode(text, position)
            count += 1
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError):
        return 0, (1 if depth > DEEP else 0)
    return (0 if depth > DEEP else count), count


def is_blank(line: bytes) -> bool:
    """Whether nothing stands on a line but blanks and byte order marks."""
    return not line.replace(b"\xef\xbb\xbf", b"").strip()


def _depth(text: str) -> int:
    """At most how deep JSON is nested."""
    return min(text.count("[") + text.count("{"), text.count("]") + text.count("}") + 1)


def is_known(line: bytes) -> bool:
    """Whether a line is a record by which a log is known for one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(record, dict) or _depth(line.decode("utf-8", "replace")) > DEEP:
        return False
    return recognize(record) is not None


def records_of(content: bytes) -> list[Any]:
    """The records of a document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return []
    lists = (document.get(name) for name in LISTS) if isinstance(document, dict) else ()
    return [record for records in lists if isinstance(records, list) for record in records]


def strings_in(value: Any) -> Iterator[str]:
    """All texts within a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings_in(inner)


def has_commands(content: bytes) -> bool:
    """Whether a document became a record of Gemini's that commands something, and nothing else is read of it."""
    return b'"$set"' in content or b'"$rewindTo"' in content


def may_be_binary(content: bytes) -> bool:
    """Whether a file may be taken for a binary one: it has a NUL among its first bytes."""
    return b"\0" in content[:_HEAD]
