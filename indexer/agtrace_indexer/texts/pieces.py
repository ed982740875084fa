"""Pieces and words: how the text of a block is divided for the word index, and a query that is looked up in it.

A piece is a document of the word index: some kilobytes of a block, overlapping slightly with the next piece so that no
short text is cut in two. A word is what FTS5's tokenizer takes for one. The measurements are those in
`index/word_index.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

PIECES = 32
"""The maximum number of pieces of a block that have a rowid of their own in `words`: block * PIECES + piece."""

OVERLAP = 128
"""The minimum number of bytes that neighbouring pieces share: a text no longer than this lies within one piece."""

_PIECE = 4 * 1024
"""Bytes of text in one document. Smaller ones narrow down phrases of common words better, larger ones are faster to
index: 1 KB 5.6 s, 2 KB 4.9 s, 4 KB 4.5 s, 8 KB 4.4 s; blocks that may contain `class`, `provides` and `two`: 93, 171,
261, 365."""

_NEXT_SPACE = 64
"""The most bytes by which a piece is extended to end at a space rather than within a word, as half a word is an
additional word."""

_LONGEST = 32 * 1024
"""The most bytes of a word that FTS5 keeps: a block with a longer word is always scanned."""

_ANY_WORD = re.compile(rb"[0-9a-z_./\x80-\xff-]+")
_LONG_WORD = re.compile(rb"[0-9A-Za-z_./\x80-\xff-]{%d}" % _LONGEST)


def pieces(text: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each piece of a block's text: at most `PIECES`, each overlapping the next one."""
    return [piece_at(text, number) for number in range(max(-(-len(text) // _size(text)), 1))]


def piece_at(text: bytes, number: int) -> tuple[int, int]:
    """Return the start and end of one piece of a block's text."""
    size = _size(text)
    start, following = number * size, (number + 1) * size
    end = _space(text, _space(text, following) + OVERLAP) if following < len(text) else len(text)
    return _space(text, start) if start else 0, end


def _size(text: bytes) -> int:
    return max(_PIECE, -(-len(text) // PIECES))


def _space(text: bytes, at: int) -> int:
    """Return the position of the next space if one is near, else the given position."""
    found = text.find(b" ", at, at + _NEXT_SPACE)
    return at if found < 0 else found


def words_of(folded: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each word of a folded text, as FTS5's tokenizer divides it."""
    return [found.span() for found in _ANY_WORD.finditer(folded)]


def words_in(texts: Iterable[bytes]) -> set[bytes]:
    """Return all folded words in the pieces of some texts; a word cut between pieces is included in FTS5's parts."""
    found: set[bytes] = set()
    for text in texts:
        folded = text.lower()
        for start, end in pieces(folded):
            found.update(_ANY_WORD.findall(folded, start, end))
    return found


def has_long_word(piece: bytes) -> bool:
    """Whether a piece contains a word that is too long for FTS5."""
    return len(piece) > _LONGEST and _LONG_WORD.search(piece) is not None


# -- queries ---------------------------------------------------------------------------------------

_EXACT_ASKED = 8
"""The longest whole words of a query, as many as are looked up: more narrow little down."""


class Cut(NamedTuple):
    """A text that may be only a part of a word."""

    part: bytes
    begins: bool
    """Whether the word begins with it."""
    ends: bool
    """Whether the word ends with it."""


class Words(NamedTuple):
    """The words of a query."""

    whole: list[bytes]
    """The longest words that texts must contain exactly as they are, shortest first."""
    cut: list[Cut]
    """Words that the query may have cut, longest first."""


def words_in_query(query: bytes) -> Words:
    """Return the words of a folded query."""
    whole: set[bytes] = set()
    cut: list[Cut] = []
    for start, end in words_of(query):
        word, begins, ends = query[start:end], start > 0, end < len(query)
        if len(word) > OVERLAP:  # no piece need contain all of it
            cut.append(Cut(word[:OVERLAP].decode("utf-8", "ignore").encode(), begins=False, ends=False))
        elif begins and ends:
            whole.add(word)
        else:
            cut.append(Cut(word, begins, ends))
    cut.sort(key=lambda word: -len(word.part))
    return Words(sorted(whole, key=len)[-_EXACT_ASKED:], cut)
