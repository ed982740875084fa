"""Reading a log without the indexer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agtrace_indexer.providers.registry import AGENTS, recognize

from tests.fuzz.sources import LISTS

DEEP = 300
"""The deepest nesting at which all decoders agree that JSON is valid."""

_HEAD = 1024


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines of a log; the last one may have no end."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def values_in(line: bytes) -> tuple[int, int]:
    """Return the least and the most JSON values on a line; none if the whole line isn't JSON."""
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
    """Whether a line has only blanks and byte order marks."""
    return not line.replace(b"\xef\xbb\xbf", b"").strip()


def _depth(text: str) -> int:
    """Return an upper limit of the nesting of JSON."""
    return min(text.count("[") + text.count("{"), text.count("]") + text.count("}") + 1)


def is_known(line: bytes) -> bool:
    """Whether a line is a record by which a log is recognised, alone."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(record, dict) or _depth(line.decode("utf-8", "replace")) > DEEP:
        return False
    agent = recognize(record, "")
    return agent is not None and AGENTS[agent].records_to_recognize == 1


def records_of(content: bytes) -> list[Any]:
    """Return the records of a document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return []
    lists = (document.get(name) for name in LISTS) if isinstance(document, dict) else ()
    return [record for records in lists if isinstance(records, list) for record in records]


def strings_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings_in(inner)


def has_commands(content: bytes) -> bool:
    """Whether a document became a Gemini record with a command, so that nothing else in it is read."""
    return b'"$set"' in content or b'"$rewindTo"' in content


def may_be_binary(content: bytes) -> bool:
    """Whether a file may be taken for a binary one because there is a NUL among its first bytes."""
    return b"\0" in content[:_HEAD]
