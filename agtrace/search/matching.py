"""Queries as conditions on a text: it contains the query or all its words, or matches a regular expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from agtrace_indexer.texts.blocks import BlockText
from agtrace_indexer.texts.pieces import piece_at
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.problems import InvalidParameter
from agtrace.search.deadline import Deadline

if TYPE_CHECKING:
    import regex


class Matcher(Protocol):
    """A condition that a text meets or doesn't."""

    @property
    def literals(self) -> Sequence[bytes]:
        """Byte strings that the folded text of every hit contains; empty if none are known."""

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that match; `places` are where the first literal can be."""

    def matched(self, text: str) -> str:
        """Return the first match in a text, verbatim; empty without any."""


def fold(query: str) -> bytes:
    """Return a query as it is compared: UTF-8, with A to Z in lower case and NUL as its symbol, as in stored texts."""
    return query.replace("\x00", "\u2400").encode("utf-8", "replace").lower()


class Contains(Struct, frozen=True):
    """Matches texts that contain a query, ignoring the case of A to Z but of no other letters."""

    query: str

    @property
    def literals(self) -> Sequence[bytes]:
        """The query, folded."""
        return (fold(self.query),) if self.query else ()

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that contain the query."""
        return _holding(fold(self.query), block, places)

    def matched(self, text: str) -> str:
        """Return the query: previews search for it in the same way."""
        return self.query


class ContainsAll:
    """Matches texts that contain every word of a query, anywhere and in any order; words are split at whitespace."""

    def __init__(self, query: str) -> None:
        words = {fold(word): word for word in reversed(query.split())}
        self.words = sorted(words, key=lambda word: (-len(word), word)) or [b""]
        """Each word once, folded, the longest first."""
        self._shown = words.get(self.words[0], "")

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest words."""
        return [word for word in self.words[:_ASKED_FOR] if word]

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that contain all words."""
        longest, *others = self.words
        found = _holding(longest, block, places)
        return {number for number in found if _has_all(others, block.data[block.start(number) : block.ends[number]])}

    def matched(self, text: str) -> str:
        """Return the longest word."""
        return self._shown


class ContainsInTurn(ContainsAll):
    """Matches turns that contain every word of a query, each in any of their events; `turn_scan` finds them.

    Applied to single events it matches those with the longest word: one of them represents the turn.
    """

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest word."""
        return super().literals[:1]

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that contain the longest word."""
        return _holding(self.words[0], block, places)

    def of_each_word(self, block: BlockText) -> list[set[int]]:
        """Return the numbers of the events in a block that contain the first word, the second, and so on."""
        folded = block.data.lower()
        return [_within(word, block, folded, 0) if word else set(range(len(block.ends))) for word in self.words]


_ASKED_FOR = 4
"""How many words of a query, the longest ones, are looked up in the word index: more would hardly narrow it down."""


def _has_all(words: list[bytes], text: bytes) -> bool:
    folded = text.lower() if words else b""
    return all(word in folded for word in words)


def _holding(wanted: bytes, block: BlockText, places: Sequence[int] | None) -> set[int]:
    """Return the numbers of the events in a block that hold a folded text; `places` are the pieces it can be in."""
    if not wanted:
        return set(range(len(block.ends)))
    if places is None:
        return _within(wanted, block, block.data.lower(), 0)
    spans = (piece_at(block.data, place) for place in places)
    return set().union(*(_within(wanted, block, block.data[start:end].lower(), start) for start, end in spans))


def _within(wanted: bytes, block: BlockText, folded: bytes, start: int) -> set[int]:
    """Return the numbers of the events that hold a folded text inside a piece of the block that begins at `start`."""
    found: set[int] = set()
    position = folded.find(wanted)
    while position >= 0:
        number = block.event_at(start + position)
        found.add(number)
        position = folded.find(wanted, max(block.ends[number] - start, position + 1))
    return found


class Matches:
    """Matches texts that match a regular expression anywhere; case is ignored, `^` and `$` match at every line.

    Raises `InvalidParameter` for an invalid expression, and `SearchTimeout` when the deadline passes: unlike `re`,
    the library `regex` checks the clock while it matches.
    """

    def __init__(self, pattern: str) -> None:
        import regex  # takes 10 ms, and few searches need it

        if _RECURSION.search(pattern):
            raise InvalidParameter("query", "a regular expression that refers to itself would use up all memory")
        plain = _ESCAPE_OR_CLASS.sub(".", pattern)
        if _COMMENTS.search(plain):
            raise InvalidParameter(
                "query", "invalid regular expression: comments (?#...) and the flag x aren't supported"
            )
        if _unrolled(plain) > _LARGEST:
            why = f"its repetitions expand to more than {_LARGEST:,} pieces"
            raise InvalidParameter("query", f"invalid regular expression: {why}")
        try:
            self._pattern: regex.Pattern[str] = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise InvalidParameter("query", f"invalid regular expression: {error}") from None
        self.literal = required_literal(pattern)
        self._is_local = _is_local(pattern)

    @property
    def literals(self) -> Sequence[bytes]:
        """The longest literal part of the expression."""
        return (self.literal,) if self.literal else ()

    def numbers(self, block: BlockText, places: Sequence[int] | None, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that match."""
        if self.literal and self.literal not in block.data.lower():
            return set()
        if self._is_local and not self._is_in(block.data.decode("utf-8", "replace"), deadline):
            return set()  # one search in a block takes half the time of one in each of its events
        return {number for number in range(len(block.ends)) if self._is_in(block.text(number), deadline)}

    def matched(self, text: str) -> str:
        """Return the first match; empty if it isn't found in a second."""
        try:
            found = self._pattern.search(text, timeout=_SHOWN_WITHIN, concurrent=True)
        except TimeoutError:
            return ""
        return found[0] if found else ""

    def _is_in(self, text: str, deadline: Deadline) -> bool:
        """Whether a text matches. The library's clock counts the time of all threads and may go off too early."""
        while True:
            try:
                return self._pattern.search(text, timeout=deadline.left, concurrent=True) is not None
            except TimeoutError:
                deadline.check()


_RECURSION = later(r"\(\?(?:R|0|[1-9]|&|P>)")
_COMMENTS = later(r"\(\?(?:#|[\w-]*x)")
"""Syntax that could hide repetitions from `_unrolled`."""

_LARGEST = 20_000
"""The most pieces of an expression: the library expands repetitions.

`a{9999999}` takes 3 GB; this many pieces take 0.1 s and 20 MB.
"""

_PIECE = later(r"\{(?P<times>[0-9]+)[^}]*\}|.", re.DOTALL)
_SHOWN_WITHIN = 1.0
"""Seconds for finding the match again for a preview."""

_LITERAL = later(r"[^\\.^$*+?{}()\[\]|]+")
_ESCAPE_OR_CLASS = later(r"\\[dDwWsSbBnrtAZ\W_]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ANCHORS = (r"\A", r"\Z", r"\B")
_MAYBE_NOT_LOCAL = later(r"[\\^$]|\(\?(?!:)|\(\*|[*+?}]\+")
_FOLDED_FROM_BEYOND_ASCII = later("[iksIKS]")
_SHORTEST_LITERAL = 3


def _is_local(pattern: str) -> bool:
    """Whether an expression that matches an event's text also matches within any longer text with that event in it.

    That isn't so where it may say what must not, or must, be around or between: anchors, lookarounds, possessive and
    atomic parts, flags. What isn't known to be local counts as if it weren't.
    """
    plain = _ESCAPE_OR_CLASS.sub(lambda found: found[0] if found[0] in _ANCHORS else ".", pattern)
    return _MAYBE_NOT_LOCAL.search(plain) is None


def _unrolled(plain: str) -> int:
    """Count the pieces of an expression without escapes and classes after its repetitions are expanded."""
    sizes, last = [0], 0  # of the open groups; of the last piece, which a repetition repeats
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
    """Return a folded literal that every match of a regular expression contains; empty if there is no obvious one.

    It is ASCII without `i`, `k` and `s`: for these the expression also matches letters that stored texts don't fold.
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
