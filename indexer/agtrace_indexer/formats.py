"""Telling the format of a log from its content, and opening it, compressed or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import orjson
import zstandard
from agtrace_schema.events import Provider

from agtrace_indexer.drafts import LogFormat, Record
from agtrace_indexer.providers import claude_code, codex, gemini

FORMATS: dict[Provider, LogFormat] = {
    Provider.CLAUDE_CODE: claude_code,
    Provider.CODEX: codex,
    Provider.GEMINI: gemini,
}
"""A provider is a package: to add one, write it and name it here."""

KEYS_REMEMBERED: dict[Provider, int | None] = {
    Provider.CLAUDE_CODE: 64,  # only lines of one response repeat a key, and they stand close together
    Provider.CODEX: 0,
    Provider.GEMINI: None,  # any message can be replaced or rewound
}

REPEATS_LINES = frozenset({Provider.CLAUDE_CODE})
"""Whose logs may hold the same line twice: the second one is left out. Elsewhere equal texts are said twice."""

REPLAYS_ITEMS = frozenset({Provider.CODEX})
"""Whose identities only mean something between a log and the one that it says to replay: they are no ids of lines."""

MOST_COMMAS = 1_000_000
"""JSON with more of them isn't decoded."""

PATCHES: dict[Provider, Callable[[list[Record]], list[Record]]] = {Provider.GEMINI: gemini.as_patch}
"""How a document that was written again becomes a change of what is known of it; without it, it is read anew."""

MOST_FOLD, ALWAYS_GIVEN = 256, 64 * 1024 * 1024
"""A compressed file is read as far as it gives so many bytes for each of its own, or so many in all. Of 94 logs
(zstd, level 19) one grew 69-fold, half of them less than 6-fold."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK = 1024 * 1024
_COMPRESSED_CHUNK = 2048  # a hostile one grows 30,000-fold


class Seekable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes:
        """Give up to `size` bytes; none at the end."""

    def seek(self, position: int, /) -> int:
        """Go to a position."""


def recognize(record: Record) -> Provider | None:
    """The provider whose record this is; None if no provider claims it."""
    for provider, module in FORMATS.items():
        if module.recognizes(record):
            return provider
    return None


def unroll(document: Any) -> tuple[Provider, list[Record]] | None:
    """The records of a whole-file JSON document, with its provider."""
    for provider, module in FORMATS.items():
        records = module.unroll(document)
        if records is not None:
            return provider, list(records)
    return None


class Content:
    """The content of an open file from its beginning, decompressed where its first bytes say zstd.

    Damaged or truncated compressed data ends the content early, and so does what grows as no log does (`MOST_FOLD`);
    `damage` then says so.
    """

    def __init__(self, file: Seekable) -> None:
        self.damage: str | None = None
        self._file = file
        file.seek(0)
        self._compressed = file.read(len(_ZSTD_MAGIC)) == _ZSTD_MAGIC
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = bytearray()
        self._taken = self._given = 0
        file.seek(0)

    def skip_to(self, position: int) -> None:
        """Go to a position of the decompressed content; only once, before the first read."""
        if not self._compressed:
            self._file.seek(position)
            return
        while position > 0 and (skipped := self.read(min(position, _CHUNK))):
            position -= len(skipped)

    def read(self, size: int, /) -> bytes:
        """Give up to `size` bytes; none at the end."""
        if not self._compressed:
            return self._file.read(size)
        while not self._ready and self.damage is None:
            data = self._file.read(_COMPRESSED_CHUNK)
            if not data:
                if self._frame is None or not self._frame.eof:
                    self.damage = "the compressed file ends early: what could be read is indexed"
                break
            self._decompress(data)
            self._taken += len(data)
        piece = bytes(self._ready[:size])
        self._given += len(piece)
        if self._given > ALWAYS_GIVEN + MOST_FOLD * self._taken:
            self.damage = f"the compressed file grows more than {MOST_FOLD}-fold: what could be read is indexed"
            self._ready.clear()
            return b""
        del self._ready[:size]
        return piece

    def _decompress(self, data: bytes) -> None:
        while data:
            if self._frame is None or self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready += self._frame.decompress(data)
            except zstandard.ZstdError as error:
                self.damage = f"the compressed file is damaged ({error}): what could be read is indexed"
                return
            data = self._frame.unused_data if self._frame.eof else b""


def crowded(data: bytes) -> bool:
    """Whether JSON may hold too many values to be decoded: 20 MB of tiny ones would take 1.5 GB."""
    return len(data) > MOST_COMMAS and data.count(b",") > MOST_COMMAS


def decode(data: bytes) -> list[Any] | None:
    """Decode the JSON values of one line; several where lines were jammed together.

    None if it is no JSON, or too crowded.
    """
    if crowded(data):
        return None
    try:
        return [orjson.loads(data)]
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8", "replace")  # invalid UTF-8, lone surrogates, huge integers, NaN, a BOM
    try:
        return [json.loads(_without_surrogates(value)) for value in _jammed(text.lstrip("\ufeff \t\r\n"))]
    except (ValueError, RecursionError):
        return None


def completed(head: bytes) -> Any:
    """Decode the head of a JSON object that was cut off, with all that it left open closed; None if it can't be.

    Only to tell the format of a line that is too long to be parsed.
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
            return json.loads(candidate)
        except (ValueError, RecursionError):
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
