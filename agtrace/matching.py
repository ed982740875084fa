"""What a query asks of a text: to contain a piece, or to match a regular expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agtrace_indexer.blocks import BlockText
from agtrace_indexer.words import pieces

from agtrace.deadline import Deadline
from agtrace.problems import InvalidParameter

if TYPE_CHECKING:
    import regex


class Matcher(Protocol):
    """A query that texts match or don't."""

    @property
    def literal(self) -> bytes:
        """A piece that the folded text of every hit contains; empty where nothing is known."""

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that match; `places` are the pieces where the literal can stand."""

    def matched(self, text: str) -> str:
        """The first place of a text that matches, as it stands there; empty where none does."""


def fold(query: str) -> bytes:
    """A query as it is compared: UTF-8, A to Z as a to z, NUL by its symbol as in the stored texts."""
    return query.replace("\x00", "\u2400").encode("utf-8", "replace").lower()


@dataclass(frozen=True, slots=True)
class Contains:
    """Texts that contain a query: A to Z are folded, other letters are not."""

    query: str

    @property
    def literal(self) -> bytes:
        """The query, folded."""
        return fold(self.query)

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that contain the query."""
        wanted = self.literal
        if not wanted:
            return set(range(len(block.ends)))
        if places is None:
            return _holding(wanted, block, 0, len(block.data))
        spans = pieces(block.data)
        return set().union(*(_holding(wanted, block, *spans[place]) for place in places))

    def matched(self, text: str) -> str:
        """The query: previews look for it in the same way."""
        return self.query


def _holding(wanted: bytes, block: BlockText, start: int, end: int) -> set[int]:
    """The numbers of the events that hold a folded text between two positions of the block."""
    data = block.data[start:end].lower()
    found: set[int] = set()
    position = data.find(wanted)
    while position >= 0:
        number = block.event_at(start + position)
        found.add(number)
        position = data.find(wanted, max(block.ends[number] - start, position + 1))
    return found


class Matches:
    """Texts that match a regular expression somewhere; letters are folded, `^` and `$` are ends of lines.

    Raises `InvalidParameter` for one that can't be read, and `SearchTimeout` when the deadline passes: the library
    `regex` looks at the clock while it matches, which `re` doesn't.
    """

    def __init__(self, pattern: str) -> None:
        import regex  # 10 ms, and few searches need it

        if _RECURSION.search(pattern):
            raise InvalidParameter("query", "a regular expression that refers to itself takes all memory there is")
        try:
            self._pattern: regex.Pattern[str] = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise InvalidParameter("query", f"no regular expression: {error}") from None
        self.literal = required_literal(pattern)

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that match."""
        if self.literal and self.literal not in block.data.lower():
            return set()
        return {number for number in range(len(block.ends)) if self._is_in(block.text(number), deadline)}

    def matched(self, text: str) -> str:
        """The first match."""
        try:
            found = self._pattern.search(text, timeout=_SHOWN_WITHIN, concurrent=True)
        except TimeoutError:
            return ""
        return found[0] if found else ""

    def _is_in(self, text: str, deadline: Deadline) -> bool:
        try:
            return self._pattern.search(text, timeout=deadline.left, concurrent=True) is not None
        except TimeoutError:
            raise deadline.problem from None


_RECURSION = re.compile(r"\(\?(?:R|0|[1-9]|&|P>)")
_SHOWN_WITHIN = 1.0
"""Seconds to find the match again that a preview shows."""

_LITERAL = re.compile(r"[^\\.^$*+?{}()\[\]|]+")
_ESCAPE_OR_CLASS = re.compile(r"\\[dDwWsSbBnrtAZ\W_]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FOLDED_FROM_BEYOND_ASCII = re.compile("[iksIKS]")
_SHORTEST_LITERAL = 3


def required_literal(pattern: str) -> bytes:
    """A piece that every match of a regular expression contains, folded; empty where that isn't plain to see.

    Only ASCII, and without `i`, `k` and `s`: the expression takes other letters for these that the stored texts keep.
    """
    plain = _ESCAPE_OR_CLASS.sub(".", pattern)
    if any(sign in plain for sign in ("|", "(", "\\", "[", "]")):
        return b""
    plainest: list[str] = []
    for found in _LITERAL.finditer(plain):
        optional = plain[found.end() : found.end() + 1] in ("?", "*", "{")
        piece = found[0][:-1] if optional else found[0]
        before = plain[: found.start()]
        if piece.isascii() and not ("{" in before and before.rfind("{") > before.rfind("}")):
            plainest += _FOLDED_FROM_BEYOND_ASCII.split(piece)
    longest = max(plainest, key=len, default="")
    return fold(longest) if len(longest) >= _SHORTEST_LITERAL else b""
