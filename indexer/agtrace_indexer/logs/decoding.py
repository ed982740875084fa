"""JSON as found in logs: several values jammed into one line, cut off, with broken text, or too crowded."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import orjson

MOST_COMMAS = 1_000_000
"""JSON with more commas than this isn't decoded."""


MOST_LEVELS = 1_024
"""JSON that is nested more deeply isn't decoded: what reads it calls itself at each level. orjson refuses it, and so
does Python 3.11; later versions of Python would decode ten times as many levels."""

_MOST_BREAKS = 1_000
"""A line isn't searched for whole objects after more unreadable places than this."""

_SPACE = " \t\r\n"
_BEFORE = re.compile(r"[ \t\r\n\xef\xbb\xbf]*")  # a byte order mark
_BLANKS = re.compile(r"[ \t\r\n]*")
_NUL_AS_BLANK = bytes.maketrans(b"\0", b" ")
_DECODER = json.JSONDecoder(strict=False)
_scan, _loads_loosely = _DECODER.raw_decode, _DECODER.decode


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


class Piece(NamedTuple):
    """A part of a line: a JSON value, or something that is none."""

    start: int
    end: int
    value: Any = None
    readable: bool = True
    open: bool = False
    """Whether it is unreadable because the line ends within a string."""


def pieces(data: bytes) -> list[Piece]:
    """Take a line apart that isn't one plain JSON value: there are several if lines were jammed together, or if the
    beginning of one, whose writer was killed, is before the next. NUL bytes, which a loss of power leaves, are blanks.

    After something unreadable, only an object counts that the line or another object follows: the parts of a torn one
    have other neighbours.
    """
    text = data.translate(_NUL_AS_BLANK).decode("latin-1")  # one character for each byte
    result: list[Piece] = []
    position, end, broken, is_open, left = _after(_BEFORE, text, 0), len(text.rstrip(_SPACE)), -1, False, _MOST_BREAKS
    while position < end and left:
        try:
            value, after = _scan(text, position)
        except (ValueError, RecursionError) as error:  # JSON errors have a position, others are about all of it
            at, left, broken = getattr(error, "pos", end), left - 1, position if broken < 0 else broken
            is_open = str(error).startswith("Unterminated string")
            position = end if is_open or at >= end else _next_object(text, position, at)
            continue
        blank = _after(_BLANKS, text, after)
        whole = isinstance(value, dict)
        if (whole and broken < 0) or blank >= end or (whole and text[blank] == "{"):
            if broken >= 0:
                result.append(Piece(broken, position, readable=False))
            piece = _piece(data, position, after)
            result.append(piece)
            position, broken = blank, -1
        else:
            broken, left = position if broken < 0 else broken, left - 1
            position = _next_object(text, after - 1, after)
    if position < end or broken >= 0:
        result.append(Piece(position if broken < 0 else broken, end, readable=False, open=is_open))
    return result


def decode(data: bytes) -> list[Any] | None:
    """Decode the JSON values of one line; there are several if lines were jammed together.

    Return None if anything in it is not JSON, or it is too crowded.
    """
    if crowded(data):
        return None
    try:
        return [orjson.loads(data)]
    except orjson.JSONDecodeError:
        found = pieces(data)
    return [piece.value for piece in found] if found and all(piece.readable for piece in found) else None


def single(data: bytes) -> Any:
    """Decode the JSON value that a text consists of; None for any other text."""
    values = decode(data) or ()
    return values[0] if len(values) == 1 else None


def objects_in(data: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects in a line, whatever else is in it."""
    values = decode(data) or [piece.value for piece in pieces(data)]
    return [value for value in values if isinstance(value, dict)]


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


def _next_object(text: str, position: int, error: int) -> int:
    """Return where the next object may begin after the position of an error in something that began before it."""
    before = text.rfind("{", position + 1, error + 1)
    found = before if before >= 0 else text.find("{", max(error, position + 1))
    return len(text) if found < 0 else found


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _piece(data: bytes, start: int, end: int) -> Piece:
    """Decode a part of a line that has the form of JSON: with invalid UTF-8, lone surrogates, huge integers, NaN, or
    control characters in strings.
    """
    part = data[start:end]
    try:
        return Piece(start, end, orjson.loads(part))
    except orjson.JSONDecodeError:
        pass
    try:
        value = _loads_loosely(part.translate(_NUL_AS_BLANK).decode("utf-8", "replace"))
        without_surrogates = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
        return Piece(start, end, loads(without_surrogates))
    except (ValueError, RecursionError):
        return Piece(start, end, readable=False)
