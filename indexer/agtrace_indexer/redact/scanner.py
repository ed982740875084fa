"""Many patterns at once: where in a text does one of them begin? Hyperscan answers in one pass, a gigabyte a second.

Nearly all texts hold no secret, so this is the only question that nearly all of them are asked. The patterns are first
looks: whatever a rule finds begins where its first look does, and the rule alone says what it is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
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


Hit: TypeAlias = tuple[int, int]
"""The character where a pattern begins or else ends (of one that is looked for once, any), and the pattern's number."""


class _Scratch(threading.local):
    """Hyperscan's working memory: threads may share a database, but each needs a scratch of its own."""

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
        self._from_start = [look.from_start for look in looks]

    def hits(self, text: str) -> list[Hit]:
        """Everything that is found in a text without lone surrogates, in its order there."""
        found: list[tuple[int, int, int]] = []
        data = text.encode()

        def note(look: int, start: int, end: int, _flags: int, _context: object) -> None:
            found.append((look, start, end))

        self._database.scan(data, match_event_handler=note, scratch=self._scratch.own)
        if not found:
            return []
        hits = sorted({(start if self._from_start[look] else end, look) for look, start, end in found})
        return hits if text.isascii() else _in_characters(hits, data)


def _flags(look: Look) -> int:
    flags = 0
    for asked, flag in (
        (look.any_case, hyperscan.HS_FLAG_CASELESS),
        (look.once, hyperscan.HS_FLAG_SINGLEMATCH),
        (look.from_start, hyperscan.HS_FLAG_SOM_LEFTMOST),
    ):
        flags |= flag if asked else 0
    return flags if look.pattern.isascii() else flags | hyperscan.HS_FLAG_UTF8


def _in_characters(hits: Sequence[Hit], data: bytes) -> list[Hit]:
    """Places in UTF-8 as places in the text; what lies within a character lies where that begins."""
    counted, byte, character = [], 0, 0
    for place, look in hits:
        while place < len(data) and data[place] & 0xC0 == 0x80:
            place -= 1
        character += len(data[byte:place].decode())
        byte = place
        counted.append((character, look))
    return counted
