"""Many patterns at once: where in a text does one of them begin? Hyperscan answers in one pass, a gigabyte a second.

Nearly all texts hold no secret, so this is the only question that nearly all of them are asked. The patterns are first
looks: near every place where a rule finds something its first look matches, and the rule alone says what it is.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import disk_usage
from tempfile import mkstemp
from typing import NamedTuple, TypeAlias

import hyperscan


class ScannerError(ValueError):
    """A pattern that can't be looked for in linear time; the text says why."""


class Look(NamedTuple):
    """A pattern to look for."""

    pattern: str
    """As Hyperscan reads it: no look around, no reference back, no anchor."""
    any_case: bool = False
    once: bool = False
    """Whether it is enough to know that it is there."""
    from_start: bool = False
    """Whether it is told where it begins, which costs more than where it ends."""
    every_end: bool = False
    """Whether each of several ends in a row is told; else only the first of them."""


Hit: TypeAlias = tuple[int, int]
"""The character where a pattern begins or else ends (of one that is looked for once, any), and the pattern's number."""


class _Scratch(threading.local):
    """Hyperscan's working memory: threads may share a database, but each needs a scratch of its own."""

    def __init__(self, database: hyperscan.Database) -> None:
        self.own = hyperscan.Scratch(database)


class Scanner:
    """A set of patterns, compiled. Safe to use from several threads."""

    def __init__(self, looks: Sequence[Look], kept: Path | None = None) -> None:
        """`kept` is a file that keeps what was compiled for the next process, and may be gone at any time.

        Raises `ScannerError` for a pattern that Hyperscan doesn't take.
        """
        known = _kept(looks, kept)
        self._database = known or _compile(looks)
        if known is None and kept is not None:
            _keep(looks, self._database, kept)
        self._scratch = _Scratch(self._database)
        self.from_start = [look.from_start for look in looks]
        self._every_end = [look.every_end for look in looks]

    def hits(self, text: str) -> list[Hit]:
        """Everything that is found in a text without lone surrogates, in its order there."""
        data = text.encode()
        hits = sorted(set(self.places(data)))
        return hits if text.isascii() else in_characters(hits, data)

    def places(self, data: bytes) -> list[Hit]:
        """Everything that is found in UTF-8, by bytes, more than once where a pattern matches in several ways."""
        found: list[tuple[int, int, int]] = []
        ends: dict[int, int] = {}

        def note(look: int, start: int, end: int, _flags: int, _context: object) -> None:
            if ends.get(look, -2) + 1 != end or self._every_end[look]:
                found.append((look, start, end))
            ends[look] = end

        self._database.scan(data, match_event_handler=note, scratch=self._scratch.own)
        if not found:
            return []
        return [(start if self.from_start[look] else end, look) for look, start, end in found]


def _compile(looks: Sequence[Look]) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[look.pattern.encode() for look in looks],
            ids=list(range(len(looks))),
            elements=len(looks),
            flags=[_flags(look) for look in looks],
        )
    except hyperscan.error as error:
        raise ScannerError(str(error)) from None
    return database


def _sealed(looks: Sequence[Look], compiled: bytes) -> bytes:
    """What is kept: behind a digest of itself, of the patterns and of what compiled them."""
    made_of = repr((getattr(hyperscan, "__version__", ""), tuple(looks))).encode()
    return sha256(made_of + compiled).digest() + compiled


def _kept(looks: Sequence[Look], path: Path | None) -> hyperscan.Database | None:
    """What a file keeps of these patterns; None where there is none, or of others, or for another processor.

    One that others may have written is not read: it is code of a kind.
    """
    try:
        data = path.read_bytes() if path is not None and not path.stat().st_mode & _OTHERS_WRITE else b""
        compiled = data[_DIGEST:]
        if not compiled or _sealed(looks, compiled) != data:
            return None
        return hyperscan.loadb(compiled, hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.error):
        return None


def _keep(looks: Sequence[Look], database: hyperscan.Database, path: Path) -> None:
    """Keep what was compiled, for its owner alone; where there is little room, or none, nothing is kept."""
    try:
        if disk_usage(path.parent).free < _ROOM:
            return
        descriptor, made = mkstemp(dir=path.parent, prefix=f"{path.name}.")
    except OSError:
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_sealed(looks, hyperscan.dumpb(database)))
        os.replace(made, path)
    except OSError:
        Path(made).unlink(missing_ok=True)


_ROOM = 256 * 1024 * 1024
"""Bytes that must be free: the index comes first."""
_DIGEST = sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _flags(look: Look) -> int:
    flags = 0
    for asked, flag in (
        (look.any_case, hyperscan.HS_FLAG_CASELESS),
        (look.once, hyperscan.HS_FLAG_SINGLEMATCH),
        (look.from_start, hyperscan.HS_FLAG_SOM_LEFTMOST),
    ):
        flags |= flag if asked else 0
    return flags if look.pattern.isascii() else flags | hyperscan.HS_FLAG_UTF8


def in_characters(hits: Sequence[Hit], data: bytes) -> list[Hit]:
    """Places in UTF-8 as places in the text; what lies within a character lies where that begins."""
    counted, byte, character = [], 0, 0
    for place, look in hits:
        while place < len(data) and data[place] & 0xC0 == 0x80:
            place -= 1
        character += len(data[byte:place].decode())
        byte = place
        counted.append((character, look))
    return counted


@cache
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern for a closer look: compiled when it is first needed, for most never are."""
    return re.compile(pattern, flags)
