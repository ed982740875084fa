"""The records that sources make of rows and small files, as JSON: what is in them is kept even if it isn't JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from agtrace_schema.patterns import later

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.logs.decoding import crowded, decode

LONGEST = 8 * 1024 * 1024
"""Bytes of a row or a file above which only its beginning is kept: one message has to fit into one record."""

LONGEST_MESSAGE = 24 * 1024 * 1024
"""Bytes of the parts of a message, above which only the beginnings of further ones are kept."""

HEAD = 64 * 1024
_LONGEST_WORD = 4096
_WORD = later(r"[^\s\"',;]+\Z")


def value_of(data: bytes, length: int | None = None, **own: Any) -> Record:
    """Return the object that a row or a file contains, with its own ids; `length` is its size if `data` is cut.

    Anything else becomes an object of the type `unreadable`, with its text, or `oversized`, with its beginning.
    """
    size = len(data) if length is None else length
    if size > len(data) or crowded(data):
        return {"type": "oversized", "bytes": size, "text": beginning(data), **own}
    values = decode(data)
    if values is None or len(values) != 1 or not isinstance(values[0], dict):
        return {"type": "unreadable", "text": beginning(data), **own}
    return {**values[0], **own}


def beginning(data: bytes) -> str:
    """Return the beginning of a text without a cut word, as half a secret isn't recognised as one."""
    text = data[: HEAD + 1].decode("utf-8", "replace")
    if len(data) <= HEAD:
        return text
    cut = _WORD.search(text, len(text) - _LONGEST_WORD)
    return text[: cut.start() if cut else len(text)]


def is_assistant(info: Mapping[str, Any]) -> bool:
    """Whether a message is the model's."""
    return info.get("role") == "assistant"


def message_record(info: Record, parts: Iterable[Record], *, followed: bool) -> bytes:
    """Return the record of a message with its parts, as `parser` reads it."""
    return written({"info": info, "parts": [*parts], "followed": followed})


def written(record: Record) -> bytes:
    """Return a record as JSON; integers of any length are possible."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return json.dumps(record).encode("utf-8", "replace")
