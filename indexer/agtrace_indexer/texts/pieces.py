"""Pieces and words: how the text of a block is cut up for the word index.

A piece is what the word index calls a document: some kilobytes of a block, which share a little with the next piece so
that no short text is cut in two. A word is what FTS5's tokenizer makes one. The measurements are those of
`index/word_index.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PIECES = 32
"""The pieces of a block, at most, that have a rowid of their own in `words`: block * PIECES + piece."""

OVERLAP = 128
"""Bytes that neighbouring pieces share at least: a text that is no longer stands in one piece as a whole."""

_PIECE = 2 * 1024
"""Bytes of text that are one document. Smaller ones narrow phrases of common words down better, larger ones are
quicker to index: 1 KB 5.6 s, 2 KB 4.9 s, 4 KB 4.5 s, 8 KB 4.4 s; blocks that may hold `class`, `provides` and `two`:
93, 171, 261, 365."""

_NEXT_SPACE = 64
"""Bytes that a piece grows at most so that it ends at a space, not within a word: half a word is one more word."""

_LONGEST = 32 * 1024
"""Bytes of a word that FTS5 keeps: a block with a longer one is always scanned."""

_ANY_WORD = re.compile(rb"[0-9a-z_./\x80-\xff-]+")
_LONG_WORD = re.compile(rb"[0-9A-Za-z_./\x80-\xff-]{%d}" % _LONGEST)


def pieces(text: bytes) -> list[tuple[int, int]]:
    """Where the pieces of the text of a block begin and end: at most `PIECES`, each with a part of the next one."""
    size = max(_PIECE, -(-len(text) // PIECES))
    starts = [_space(text, at) for at in range(size, len(text), size)]
    return list(zip([0, *starts], [*(_space(text, at + OVERLAP) for at in starts), len(text)], strict=True))


def _space(text: bytes, at: int) -> int:
    """The next space, if one is near."""
    found = text.find(b" ", at, at + _NEXT_SPACE)
    return at if found < 0 else found


def words_of(folded: bytes) -> list[tuple[int, int]]:
    """Where the words of a folded text begin and end, as FTS5's tokenizer cuts it."""
    return [found.span() for found in _ANY_WORD.finditer(folded)]


def words_in(texts: Iterable[bytes]) -> set[bytes]:
    """All words of the pieces of some texts, folded; a word that a piece cuts is there in the parts that FTS5 has."""
    found: set[bytes] = set()
    for text in texts:
        folded = text.lower()
        for start, end in pieces(folded):
            found.update(_ANY_WORD.findall(folded, start, end))
    return found


def has_long_word(piece: bytes) -> bool:
    """Whether a piece holds a word that is too long for FTS5."""
    return len(piece) > _LONGEST and _LONG_WORD.search(piece) is not None
