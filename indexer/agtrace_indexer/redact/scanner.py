"""Many patterns at once: where in a text does one of them begin? Hyperscan answers in one pass, a gigabyte a second.

Nearly all texts hold no secret, so this is the only question that nearly all of them are asked. The patterns are first
looks: whatever a rule finds begins where its first look does, and the rule alone says what it is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import hyperscan


class ScannerError(ValueError):
    """A pattern that can't be looked for in linear time; the text says why."""


class Look(NamedTuple):
    """A pattern to look for."""

    pattern: str
    """As Hyperscan reads it: no look around, no reference back, no anchor."""
    any_case: bool = False
    once: bool = False
    """Whether it is enough to know that it is there: it is then told without its place."""


class Hit(NamedTuple):
    """Where a pattern was found."""

    start: int
    """Character at which it begins; 0 where it was looked for once."""
    look: int
    """The number of the pattern."""


class _Scratch(threading.local):
    """Hyperscan's working memory: threads share a database, and each has a scratch of its own, as its manual demands."""

    def __init__(self, database: hyperscan.Database) -> None:
        self.own = hyperscan.Scratch(database)


class Scanner:
    """A set of patterns, compiled. Safe to use from several threads."""

    def __init__(self, looks: Sequence[Look]) -> None:
        """Raises `ScannerError` for a pattern that Hyperscan doesn't take."""
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        try:
            self._database.compile(
                expressions=[look.pattern.encode() for look in looks],
                ids=list(range(len(looks))),
                elements=len(looks),
                flags=[_flags(look) for look in looks],
            )
        except hyperscan.error as error:
            raise ScannerError(str(error)) from None
        self._scratch = _Scratch(self._database)

    def hits(self, text: str) -> list[Hit]:
        """Everything that is found in a text without lone surrogates, by where it begins."""
        found: list[tuple[int, int]] = []
        data = text.encode()
        self._database.scan(data, match_event_handler=_note, context=found, scratch=self._scratch.own)
        if not found:
            return []
        places = sorted(set(found))
        return [Hit(*place) for place in (places if text.isascii() else _in_characters(places, data))]


def _note(look: int, start: int, end: int, flags: int, found: list[tuple[int, int]]) -> None:
    found.append((start, look))


def _flags(look: Look) -> int:
    flags: int = hyperscan.HS_FLAG_SINGLEMATCH if look.once else hyperscan.HS_FLAG_SOM_LEFTMOST
    if look.any_case:
        flags |= hyperscan.HS_FLAG_CASELESS
    return flags if look.pattern.isascii() else flags | hyperscan.HS_FLAG_UTF8


def _in_characters(places: Sequence[tuple[int, int]], data: bytes) -> list[tuple[int, Any]]:
    """Places in UTF-8 as places in the text; what begins within a character begins with it."""
    counted, byte, character = [], 0, 0
    for place, look in places:
        start = place
        while start < len(data) and data[start] & 0xC0 == 0x80:
            start -= 1
        character += len(data[byte:start].decode())
        byte = start
        counted.append((character, look))
    return counted
