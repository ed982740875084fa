"""Which words a text must have to hold a query, and where in a block it can stand: arithmetic for the word index.

`index/questions/candidates.py` asks the word index for these words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from agtrace_indexer.texts.pieces import OVERLAP, PIECES, words_of

Places: TypeAlias = dict[int, list[int] | None]
"""Block -> the numbers of its pieces that may hold the text; None: any of them."""

_EXACT_ASKED = 8
"""Whole words of a query that are looked up, the longest of them: more narrow little down."""

_READ_APART = 8
"""Pieces of a block that are read one by one; of more, the whole block is."""


class Cut(NamedTuple):
    """What may be a part of a word."""

    part: bytes
    begins: bool
    """Whether the word begins with it."""
    ends: bool
    """Whether the word ends with it."""


class Words(NamedTuple):
    """The words of a query."""

    whole: list[bytes]
    """The longest of those that texts have as they are, shortest first."""
    cut: list[Cut]
    """Those that the query may have cut, longest first."""


def words_in_query(query: bytes) -> Words:
    """The words of a folded query."""
    whole: set[bytes] = set()
    cut: list[Cut] = []
    for start, end in words_of(query):
        word, begins, ends = query[start:end], start > 0, end < len(query)
        if len(word) > OVERLAP:  # no piece need have it as a whole
            cut.append(Cut(word[:OVERLAP].decode("utf-8", "ignore").encode(), begins=False, ends=False))
        elif begins and ends:
            whole.add(word)
        else:
            cut.append(Cut(word, begins, ends))
    cut.sort(key=lambda word: -len(word.part))
    return Words(sorted(whole, key=len)[-_EXACT_ASKED:], cut)


def places(pieces: Iterable[int]) -> Places:
    """The places of pieces (block * `PIECES` + number), which come in order."""
    found: dict[int, list[int]] = {}
    for piece in pieces:
        block, number = divmod(piece, PIECES)
        found.setdefault(block, []).append(number)
    return {block: numbers if len(numbers) <= _READ_APART else None for block, numbers in found.items()}
