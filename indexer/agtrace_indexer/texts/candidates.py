"""The words that a text must contain to match a query, and the parts of a block that may match.

This is the arithmetic; `index/questions/candidates.py` looks these words up in the word index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple, TypeAlias

from agtrace_indexer.texts.pieces import OVERLAP, PIECES, words_of

Places: TypeAlias = Mapping[int, list[int] | None]
"""Block -> the numbers of its pieces that may contain the text; None: any of them."""

_EXACT_ASKED = 8
"""The longest whole words of a query, as many as are looked up: more narrow little down."""

_READ_APART = 8
"""The most pieces of a block that are read one by one; if there are more, the whole block is read."""


class Narrowed(NamedTuple):
    """The blocks that may contain a text, as far as words narrow them down."""

    places: Places | None
    """None if they don't."""
    final: bool
    """Whether a thorough look would find the same."""


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


class Pieces(Mapping[int, list[int] | None]):
    """The places of pieces (block * `PIECES` + number), and of blocks of which any piece may contain the text.

    A search opens few of many blocks: which pieces of one these are is found when it is asked.
    """

    def __init__(self, pieces: Set[int], whole: Set[int]) -> None:
        self._pieces, self._whole = pieces, whole
        self._blocks = whole | {piece // PIECES for piece in pieces}

    def __getitem__(self, block: int) -> list[int] | None:
        if block not in self._blocks:
            raise KeyError(block)
        first = block * PIECES
        numbers = [number for number in range(PIECES) if first + number in self._pieces]
        return None if block in self._whole or len(numbers) > _READ_APART else numbers

    def __contains__(self, block: object) -> bool:
        return block in self._blocks

    def __iter__(self) -> Iterator[int]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)
