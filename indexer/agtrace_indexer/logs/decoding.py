"""JSON as found in logs: several values jammed into one line, cut off, with broken text, or too crowded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

MOST_COMMAS = 1_000_000
"""JSON with more commas than this isn't decoded."""


MOST_LEVELS = 1_024
"""JSON that is nested more deeply isn't decoded: what reads it calls itself at each level. orjson refuses it, and so
does Python 3.11; later versions of Python would decode ten times as many levels."""


def crowded(data: bytes) -> bool:
    """Whether JSON may contain too many values to be decoded: 20 MB of tiny ones would take 1.5 GB of memory."""
    return len(data) > MOST_COMMAS and data.count(b",") > MOST_COMMAS


def loads(text: str) -> Any:
    """Decode one JSON value as Python's `json` does. Raises `ValueError`, also if it is nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MOST_LEVELS and _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MOST_LEVELS):
        if not level:
            return False
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inner for one in values if isinstance(one, (dict, list))]
    return bool(level)


def decode(data: bytes) -> list[Any] | None:
    """Decode the JSON values of one line; there are several if lines were jammed together.

    Return None if the line is not JSON, or too crowded.
    """
    if crowded(data):
        return None
    try:
        return [orjson.loads(data)]
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8", "replace")  # invalid UTF-8, lone surrogates, huge integers, NaN, a BOM
    try:
        return [loads(_without_surrogates(value)) for value in _jammed(text.lstrip("\ufeff \t\r\n"))]
    except (ValueError, RecursionError):
        return None


def completed(head: bytes) -> Any:
    """Decode the head of a truncated JSON object, with everything left open closed; return None if that fails.

    Only used to recognize the format of a line that is too long to be parsed.
    """
    text = head.decode("utf-8", "ignore")
    closers, in_string, escaped, last_comma = "", False, False, (0, "")
    for position, letter in enumerate(text):
        if in_string:
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            closers = ("}" if letter == "{" else "]") + closers
        elif letter in "}]":
            closers = closers[1:]
        elif letter == ",":
            last_comma = position, closers
    for candidate in (text.rstrip("\\") + '"' * in_string + closers, text[: last_comma[0]] + last_comma[1]):
        try:
            return loads(candidate)
        except ValueError:
            continue
    return None


def _jammed(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    position, end = 0, len(text.rstrip())
    while position < end:
        value, position = decoder.raw_decode(text, position)
        while position < end and text[position].isspace():
            position += 1
        yield value


def _without_surrogates(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
