"""What a query asks of a text: to contain it, or its words, or to match a regular expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.pieces import pieces

from agtrace.problems import InvalidParameter
from agtrace.search.deadline import Deadline

if TYPE_CHECKING:
    import regex


class Matcher(Protocol):
    """A query that texts match or don't."""

    @property
    def literals(self) -> Sequence[bytes]:
        """Pieces that the folded text of every hit contains; none where nothing is known."""

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that match; `places` are where the first literal can stand."""

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
    def literals(self) -> Sequence[bytes]:
        """The query, folded."""
        return (fold(self.query),) if self.query else ()

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that contain the query."""
        return _holding(fold(self.query), block, places)

    def matched(self, text: str) -> str:
        """The query: previews look for it in the same way."""
        return self.query


class ContainsAll:
    """Texts that contain every word of a query, anywhere and in any order; a word is what stands between spaces."""

    def __init__(self, query: str) -> None:
        words = {fold(word): word for word in reversed(query.split())}
        self.words = sorted(words, key=lambda word: (-len(word), word)) or [b""]
        """Each word once, folded, the longest first."""
        self._shown = words.get(self.words[0], "")

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest of the words."""
        return [word for word in self.words[:_ASKED_FOR] if word]

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that contain all words."""
        longest, *others = self.words
        found = _holding(longest, block, places)
        return {number for number in found if _has_all(others, block.data[block.start(number) : block.ends[number]])}

    def matched(self, text: str) -> str:
        """The longest word."""
        return self._shown


class ContainsInTurn(ContainsAll):
    """Turns in which every word of a query stands, each in any of its events; `turn_scan` finds them.

    As a matcher of single events it finds those with the longest word: one of them stands for the turn.
    """

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest word."""
        return super().literals[:1]

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """The numbers of the events of a block that contain the longest word."""
        return _holding(self.words[0], block, places)

    def of_each_word(self, block: BlockText) -> list[set[int]]:
        """The numbers of the events of a block that contain the first word, the second, and so on."""
        folded = block.data.lower()
        return [_within(word, block, folded, 0) if word else set(range(len(block.ends))) for word in self.words]


_ASKED_FOR = 4
"""Words of a query that the word index is asked for, the longest of them: more narrow little down."""


def _has_all(words: list[bytes], text: bytes) -> bool:
    folded = text.lower() if words else b""
    return all(word in folded for word in words)


def _holding(wanted: bytes, block: BlockText, places: Sequence[int] | None) -> set[int]:
    """The numbers of the events of a block that hold a folded text; `places` are the pieces where it can stand."""
    if not wanted:
        return set(range(len(block.ends)))
    if places is None:
        return _within(wanted, block, block.data.lower(), 0)
    spans = pieces(block.data)
    return set().union(
        *(_within(wanted, block, block.data[start:end].lower(), start) for start, end in map(spans.__getitem__, places))
    )


def _within(wanted: bytes, block: BlockText, folded: bytes, start: int) -> set[int]:
    """The numbers of the events that hold a folded text within a piece of the block, which begins at `start`."""
    found: set[int] = set()
    position = folded.find(wanted)
    while position >= 0:
        number = block.event_at(start + position)
        found.add(number)
        position = folded.find(wanted, max(block.ends[number] - start, position + 1))
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
        plain = _ESCAPE_OR_CLASS.sub(".", pattern)
        if _COMMENTS.search(plain):
            raise InvalidParameter("query", "no regular expression: comments (?#...) and the flag x aren't read")
        if _unrolled(plain) > _LARGEST:
            why = f"written out, its repetitions are more than {_LARGEST:,} pieces"
            raise InvalidParameter("query", f"no regular expression: {why}")
        try:
            self._pattern: regex.Pattern[str] = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise InvalidParameter("query", f"no regular expression: {error}") from None
        self.literal = required_literal(pattern)

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest plain piece."""
        return (self.literal,) if self.literal else ()

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
        """Whether a text matches. The library's clock counts the time of all threads, and may stop it too early."""
        while True:
            try:
                return self._pattern.search(text, timeout=deadline.left, concurrent=True) is not None
            except TimeoutError:
                deadline.check()


_RECURSION = re.compile(r"\(\?(?:R|0|[1-9]|&|P>)")
_COMMENTS = re.compile(r"\(\?(?:#|[\w-]*x)")
"""What could hide repetitions from `_unrolled`."""

_LARGEST = 20_000
"""Pieces of an expression: the library writes repetitions out, `a{9999999}` in 3 GB; this many take 0.1 s and 20 MB."""

_PIECE = re.compile(r"\{(?P<times>[0-9]+)[^}]*\}|.", re.DOTALL)
_SHOWN_WITHIN = 1.0
"""Seconds to find the match again that a preview shows."""

_LITERAL = re.compile(r"[^\\.^$*+?{}()\[\]|]+")
_ESCAPE_OR_CLASS = re.compile(r"\\[dDwWsSbBnrtAZ\W_]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FOLDED_FROM_BEYOND_ASCII = re.compile("[iksIKS]")
_SHORTEST_LITERAL = 3


def _unrolled(plain: str) -> int:
    """How many pieces an expression has, without escapes and classes, once what it repeats is written out."""
    sizes, last = [0], 0  # of the groups that are open; of the last piece, which a repetition repeats
    for piece in _PIECE.finditer(plain):
        if piece["times"]:
            last *= max(int(piece["times"]), 1)
        elif piece[0] == ")" and len(sizes) > 1:
            last += sizes.pop()
        else:
            sizes[-1] += last
            last = 1
            if piece[0] == "(":
                sizes.append(0)
                last = 0
    return sum(sizes) + last


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
