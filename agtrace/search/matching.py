"""Queries as conditions on a text: it contains the query, or matches a regular expression; and the time limit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from agtrace_indexer.parallel.processes import single
from agtrace_indexer.texts.blocks import BlockText
from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.problems import InvalidParameter, SearchTimeout
from agtrace.settings import SEARCH_TIMEOUT_SECONDS
from agtrace.settings.limits import stopped

if TYPE_CHECKING:
    import regex


_SHORTEST_TIME = 0.001


class Deadline:
    """A moment after which a search gives up."""

    def __init__(self, seconds: float = SEARCH_TIMEOUT_SECONDS) -> None:
        self._seconds = seconds
        self._stop = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds left, never 0: some libraries take 0 for no limit."""
        return max(self._stop - time.monotonic(), _SHORTEST_TIME)

    @property
    def passed(self) -> bool:
        """Whether the time is up, or nobody waits for the result any more."""
        return time.monotonic() > self._stop or stopped()

    @property
    def problem(self) -> SearchTimeout:
        """The error to raise once the time is up."""
        return SearchTimeout(self._seconds)

    def check(self) -> None:
        """Raise `SearchTimeout` if the time is up."""
        if self.passed:
            raise self.problem


def fold(query: str) -> bytes:
    """Return a query as it is compared: UTF-8, with A to Z in lower case and NUL as its symbol, as in stored texts."""
    return query.replace("\x00", "\u2400").encode("utf-8", "replace").lower()


class Contains(Struct, frozen=True):
    """Matches texts that contain a query, ignoring the case of A to Z but of no other letters."""

    query: str

    @property
    def literals(self) -> Sequence[bytes]:
        """Byte strings that the folded text of every hit contains: the query."""
        return (fold(self.query),) if self.query else ()

    def numbers(self, block: BlockText, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that contain the query."""
        wanted, found = fold(self.query), set[int]()
        if not wanted:
            return set(range(len(block.ends)))
        folded = block.data.lower()
        position = folded.find(wanted)
        while position >= 0:
            number = block.event_at(position)
            found.add(number)
            position = folded.find(wanted, max(block.ends[number], position + 1))
        return found

    def matched(self, text: str, deadline: Deadline) -> str:
        """Return the query: previews search for it in the same way."""
        return self.query


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

    def numbers(self, block: BlockText, deadline: Deadline) -> set[int]:
        """Return the numbers of the events in a block that match."""
        if self.literal and self.literal not in block.data.lower():
            return set()
        if self._is_local and not self._is_in(block.data.decode("utf-8", "replace"), deadline):
            return set()  # one search in a block takes half the time of one in each of its events
        return {number for number in range(len(block.ends)) if self._is_in(block.text(number), deadline)}

    def matched(self, text: str, deadline: Deadline) -> str:
        """Return the first match; empty without any."""
        return self._first(text, deadline) or ""

    def _is_in(self, text: str, deadline: Deadline) -> bool:
        return self._first(text, deadline) is not None

    def _first(self, text: str, deadline: Deadline) -> str | None:
        """Return the first match. What takes long is left to a process of its own, which can be stopped."""
        try:
            match = self._pattern.search(text, timeout=min(deadline.left, _ALONE), concurrent=True)
            return match and match[0]
        except TimeoutError:
            deadline.check()
        request: bytes | None = json.dumps([self._pattern.pattern, text]).encode()
        with single(sys.executable, "-P", "-c", _SEARCHING) as process:
            while True:
                try:
                    found_there, _ = process.communicate(request, timeout=_LOOK)
                except subprocess.TimeoutExpired:
                    deadline.check()
                    request = None  # the process has it
                    continue
                first: str | None = json.loads(found_there)
                return first


_ALONE, _LOOK = 0.1, 0.03
"""Seconds for which a text is matched in this process, and between two looks at whether to go on in another one."""

_SEARCHING = (
    "import json, regex, sys; pattern, text = json.load(sys.stdin)\n"
    "found = regex.search(pattern, text, regex.IGNORECASE | regex.MULTILINE); print(json.dumps(found and found[0]))"
)

Matcher: TypeAlias = Contains | Matches
"""A condition that a text meets or doesn't."""

_RECURSION = later(r"\(\?(?:R|0|[1-9]|&|P>)")
_COMMENTS = later(r"\(\?(?:#|[\w-]*x)")
"""Syntax that could hide repetitions from `_unrolled`."""

_LARGEST = 20_000
"""The most pieces of an expression: the library expands repetitions.

`a{9999999}` takes 3 GB; this many pieces take 0.1 s and 20 MB.
"""

_PIECE = later(r"\{(?P<times>[0-9]+)[^}]*\}|.", re.DOTALL)

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
    for match in _LITERAL.finditer(plain):
        optional = plain[match.end() : match.end() + 1] in ("?", "*", "{")
        piece = match[0][:-1] if optional else match[0]
        before = plain[: match.start()]
        if piece.isascii() and not ("{" in before and before.rfind("{") > before.rfind("}")):
            plainest += _FOLDED_FROM_BEYOND_ASCII.split(piece)
    longest = max(plainest, key=len, default="")
    return fold(longest) if len(longest) >= _SHORTEST_LITERAL else b""
