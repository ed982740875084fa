"""Searching for many patterns at once: Hyperscan finds where any of them begins in one pass, at a gigabyte a second.

Nearly all texts have no secret, so for nearly all of them this is the only search. The patterns are first looks: a
first look matches near every place where a rule finds something, and only the rule decides what it is.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from shutil import disk_usage
from tempfile import mkstemp
from typing import Any, TypeAlias

from msgspec import Struct

try:
    import hyperscan
except ImportError:  # Windows on ARM has no wheel
    hyperscan = None  # type: ignore[assignment]  # as where it is


class ScannerError(ValueError):
    """A pattern can't be searched for in linear time; the message says why."""


class Look(Struct, frozen=True):
    """A pattern to search for."""

    pattern: str
    """The pattern, for Hyperscan: without lookaround, back reference or anchor."""
    any_case: bool = False
    once: bool = False
    """Whether it is enough to know that it occurs."""
    from_start: bool = False
    """Whether hits are reported by their start, which costs more than by their end."""
    sparse: bool = False
    """Whether a hit tells of all within `APART` bytes behind it, rather than of those that end one after the other."""


Hit: TypeAlias = tuple[int, int]
"""The position at which a pattern starts or else ends (any, for one that need only occur), and the pattern's number."""
APART = 64


class _Scratch(threading.local):
    """Hyperscan's working memory: threads may share a database, but each needs a scratch of its own."""

    def __init__(self, database: Any) -> None:
        self.own = hyperscan and hyperscan.Scratch(database)


class _Patterns:
    """Stands in for Hyperscan's database where there is none: masking takes fifty times as long, and no linear time."""

    def __init__(self, looks: Sequence[Look]) -> None:
        import regex

        self._patterns = [regex.compile(look.pattern, look.any_case * regex.IGNORECASE) for look in looks]

    def scan(self, data: bytes, match_event_handler: Callable[..., None], scratch: None) -> None:
        """Call the handler with number, start and end of each match, in bytes; `scratch` is Hyperscan's."""
        text = data.decode()
        at = range(len(text) + 1) if text.isascii() else [0, *accumulate(len(sign.encode()) for sign in text)]
        for number, pattern in enumerate(self._patterns):
            for match in pattern.finditer(text, overlapped=True):
                match_event_handler(number, at[match.start()], at[match.end()], 0, None)


class Scanner:
    """A set of patterns, compiled. Safe to use from several threads."""

    def __init__(self, looks: Sequence[Look], kept: Path | None = None) -> None:
        """`kept` is a file that keeps the compiled patterns for the next process, and may vanish at any time.

        Raises `ScannerError` for a pattern that Hyperscan doesn't accept.
        """
        kept = kept if hyperscan else None
        known = _load_kept(looks, kept)
        self._database = known or _compile(looks)
        if known is None and kept is not None:
            _keep(looks, self._database, kept)
        self._scratch = _Scratch(self._database)
        self._from_start = [look.from_start for look in looks]
        self._sparse = [look.sparse for look in looks]

    def hits(self, text: str) -> list[Hit]:
        """Return all hits in a text without lone surrogates, in order."""
        return self.hits_in([text]).get(0, [])

    def hits_in(self, texts: Sequence[str]) -> dict[int, list[Hit]]:
        """Do the same for many texts in one pass over all of them: the number of a text with hits -> its hits.

        Before each text stands a line break, so that what a name begins with has something before it; a hit that begins
        with that is one at the beginning of the text.
        """
        encoded = [text.encode() for text in texts]
        places = self._places(b"".join(b"\n" + data for data in encoded))
        if not places:
            return {}
        starts = [*accumulate((len(data) + 1 for data in encoded), initial=1)]
        until: dict[int, int] = {}
        hits: dict[int, set[Hit]] = defaultdict(set)
        for look, start, end in places:
            place = start if self._from_start[look] else end
            if place < until.get(look, 0):
                continue
            number = max(bisect_right(starts, start + 1 if self._from_start[look] else end - 1) - 1, 0)
            if self._sparse[look]:
                until[look] = min(place + APART, starts[number + 1])
            hits[number].add((max(place - starts[number], 0), look))
        return {
            number: sorted(found) if texts[number].isascii() else in_characters(sorted(found), encoded[number])
            for number, found in hits.items()
        }

    def _places(self, data: bytes) -> list[tuple[int, int, int]]:
        """Return (look, start, end) for all hits, more than once if a pattern matches in several ways."""
        result: list[tuple[int, int, int]] = []
        ends: dict[int, int] = {}

        def note(look: int, start: int, end: int, _flags: int, _context: object) -> None:
            if ends.get(look, -2) + 1 != end or self._sparse[look]:
                result.append((look, start, end))
            ends[look] = end

        self._database.scan(data, match_event_handler=note, scratch=self._scratch.own)
        return result


def _compile(looks: Sequence[Look]) -> Any:
    if hyperscan is None:
        return _Patterns(looks)
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
    """Return the contents of the file: compiled patterns after a digest of them, their sources and the compiler."""
    made_of = repr((getattr(hyperscan, "__version__", ""), tuple(looks))).encode()
    digest = blake2b(made_of, digest_size=_DIGEST)
    digest.update(compiled)
    return digest.digest() + compiled


def _load_kept(looks: Sequence[Look], path: Path | None) -> Any:
    """Load these patterns from a file; return None if there are none, or others, or for another processor.

    A file that others can write to is not read, as it is executable code of a kind.
    """
    try:
        data = path.read_bytes() if path is not None and not path.stat().st_mode & _OTHERS_WRITE else b""
        compiled = data[_DIGEST:]
        if not compiled or _sealed(looks, compiled) != data:
            return None
        return hyperscan.loadb(compiled, hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.error):
        return None


def _keep(looks: Sequence[Look], database: Any, path: Path) -> None:
    """Keep the compiled patterns, readable only by their owner; do nothing if there is too little room."""
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
"""Bytes that must be free, as the index comes first."""
_DIGEST = 32
"""Bytes of the digest."""
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
    """Convert positions in UTF-8 to positions in the text; a position within a character becomes its start."""
    counted, byte, character = [], 0, 0
    for place, look in hits:
        while place < len(data) and data[place] & 0xC0 == 0x80:
            place -= 1
        character += len(data[byte:place].decode())
        byte = place
        counted.append((character, look))
    return counted


class Looking(Struct):
    """How closely a rule looks at one text."""

    reach: int
    """The characters from a place on that it looks at: the whole text, unless it looks from very many places."""
    tables: dict[tuple[str, tuple[int, ...]], int]
    """Where the rows end that were gone through, by the separator of a table and the strengths of its header."""
    tried: set[int]
    """Where it has looked: near places lead to the same beginning."""
    last: int = 0
    """The last place that it looked from."""


@cache
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern for a closer look when it is first needed, as most never are."""
    return re.compile(pattern, flags)
