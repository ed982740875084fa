"""Digests: the head and the tail of a long text with every failing line of it, within limits of their own.

Characters are the limit that counts, lines the safety net; bytes are what the answer leaves. The failing lines
go first, wherever they stand; head and tail share the rest. Each limit is checked before a line is taken.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from agtrace_schema.requests import Mode

from agtrace.shaping.failures import Failures
from agtrace.text.chunking import escaped_size
from agtrace.text.failing_lines import Failing


class Limits(NamedTuple):
    """What a digest may take."""

    chars: int
    lines: int
    width: int
    """Characters of a line."""
    budget: int
    """Bytes of the answer around it."""


LIMITS: dict[Mode, Limits] = {
    "minimal": Limits(5_000, 100, 200, 10_240),
    "standard": Limits(40_000, 800, 200, 40_960),
    "verbose": Limits(200_000, 4_000, 500, 102_400),
}
"""Fixed, whatever the text is."""

_NOTES = 400  # characters for what is said about the digest, and its lines:
_NOTE_LINES = 3
_JOINER = "\u200d"


class Digest(NamedTuple):
    """A text made shorter."""

    text: str
    lines: int
    """Of the text that are shown, cut ones too."""
    shortened: bool
    omitted_failures: int
    """Failing lines that found no room."""
    omitted: tuple[int, int] | None
    """The numbers of the first and the last line that aren't shown."""


class _Shown(NamedTuple):
    number: int
    text: str
    failing: bool


@dataclass(slots=True)
class Gathered:
    """What of a text a digest can show, in bounded memory."""

    limits: Limits
    failures: Failures
    first: int
    """The number of the text's first line."""
    lines: int = 0
    cut_lines: int = 0
    head: list[_Shown] = field(default_factory=list)
    tail: deque[_Shown] = field(default_factory=deque)
    _head_chars: int = 0
    _tail_chars: int = 0

    def take(self, text: str, failing: Failing | None) -> None:
        """Take in the next line."""
        number, self.lines = self.first + self.lines, self.lines + 1
        short = cut_line(text, self.limits.width)
        self.cut_lines += short is not text
        if failing:
            self.failures.note(number, short, failing)
        line = _Shown(number, short, failing is not None and failing.kind != "detail")
        if len(self.head) < self.limits.lines and self._head_chars <= self.limits.chars:
            self.head.append(line)
            self._head_chars += len(short) + 1
        self.tail.append(line)
        self._tail_chars += len(short) + 1
        while len(self.tail) > self.limits.lines or self._tail_chars > self.limits.chars + self.limits.width:
            self._tail_chars -= len(self.tail.popleft().text) + 1

    def digest(self, most_bytes: int) -> Digest:
        """The digest, in at most so many bytes as JSON."""
        whole = self._whole(most_bytes)
        if whole is not None:
            return Digest(whole, self.lines, False, 0, None)
        limits = self.limits
        room = _Room(limits.chars - _NOTES, limits.lines - _NOTE_LINES, most_bytes - _NOTES - 2 * _NOTE_LINES)
        chosen, shown_failures = self._failing(room)
        around = [line for line in self._around(room, chosen) if line.number not in chosen]
        shown_failures += sum(line.failing for line in around)
        chosen |= {line.number: line.text for line in around}
        return self._composed(chosen, self.failures.count - shown_failures, room.reached(limits, most_bytes))

    def _whole(self, most_bytes: int) -> str | None:
        """The text as it is, where all of it is within the limits."""
        if len(self.head) < self.lines or self.cut_lines:
            return None
        whole = "\n".join(line.text for line in self.head)
        return whole if len(whole) < self.limits.chars and escaped_size(whole) <= most_bytes else None

    def _failing(self, room: _Room) -> tuple[dict[int, str], int]:
        """The failing lines that fit, by number, with what belongs to them, and how many tell of a failure.

        Failed tests are shown by name alone where their lines don't all fit.
        """
        named = self.failures.tests_named()
        by_name = not room.holds(self._numbered(line.number, line.text) for line in named)
        tests = {line.number for line in named} if by_name else set()
        chosen: dict[int, str] = {}
        count = 0
        for line in self.failures.weightiest():
            text = self._numbered(line.number, line.name if line.number in tests and line.name else line.text)
            if room.take(text):
                chosen[line.number] = text
                count += not line.detail
        return chosen, count

    def _around(self, room: _Room, chosen: dict[int, str]) -> list[_Shown]:
        """Half of the room for the end, the rest for the beginning."""
        half = room.half()
        end = half.take_all(line for line in reversed(self.tail) if line.number not in chosen)
        room.take_all(end)
        taken = {*chosen, *(line.number for line in end)}
        return end + room.take_all(line for line in self.head if line.number not in taken)

    def _composed(self, chosen: dict[int, str], lost: int, reached: str | None) -> Digest:
        """The chosen lines in order, with a line behind the head that counts what is left out."""
        left, last = self.lines - len(chosen), self.first + self.lines - 1
        if not left:
            note = f"... ({self.cut_lines:,} lines cut at {self.limits.width} characters)"
            return Digest("\n".join([*(chosen[n] for n in sorted(chosen)), note]), self.lines, True, 0, None)
        gap = next(number for number in range(self.first, last + 1) if number not in chosen)
        end = next(number for number in range(last, gap - 1, -1) if number not in chosen)
        numbered = "; lines with a number tell of failures" if self.failures.count > lost else ""
        marker = f"... {left:,} lines left out: start_line={gap}, end_line={end} shows them{numbered} ..."
        all_failures, tests = f"{self.failures.count:,} failing lines", f"{self.failures.tests:,} failed tests"
        lines = [chosen[number] for number in sorted(chosen) if number < gap]
        lines += [marker, *(chosen[number] for number in sorted(chosen) if number > gap)]
        lines += [f"... {lost:,} of {all_failures} left out; {tests} in all ..."] if lost else []
        return Digest("\n".join(lines + ([reached] if reached else [])), len(chosen), True, lost, (gap, end))

    def _numbered(self, number: int, text: str) -> str:
        return cut_line(f"{number}: {text}", self.limits.width)


def gather(
    lines: Iterable[tuple[str, Failing | None]], limits: Limits, *, first: int = 1, failures: Failures | None = None
) -> Gathered:
    """Read lines, each with what it tells of a failure; `first` is the number of the first one."""
    gathered = Gathered(limits, failures or Failures(limits.lines, 4 * limits.chars), first)
    for text, failing in lines:
        gathered.take(text, failing)
    return gathered


def cut_line(text: str, most: int) -> str:
    """Cut a line to at most this many characters, `...` included, and not between a character and its accents."""
    if len(text) <= most:
        return text
    end = most - 3
    while end > most // 2 and (_belongs(text[end]) or text[end - 1] == _JOINER):
        end -= 1
    return text[:end] + "..."


def _belongs(character: str) -> bool:
    """Whether a character is shown as part of the one before: an accent, a joiner, a shade of skin."""
    return character == _JOINER or unicodedata.category(character) in ("Mn", "Me") or "🏻" <= character <= "🏿"


@dataclass(slots=True)
class _Room:
    """What is left of the limits."""

    chars: int
    lines: int
    bytes: int
    refused: set[str] = field(default_factory=set)
    """The limits that a line didn't keep."""

    def take(self, text: str) -> bool:
        """Take a line if it fits."""
        chars, size = len(text) + 1, escaped_size(text) + 2
        left = {"chars": self.chars - chars, "lines": self.lines - 1, "bytes": self.bytes - size}
        over = {limit for limit, rest in left.items() if rest < 0}
        if over:
            self.refused |= over
            return False
        self.chars, self.lines, self.bytes = left["chars"], left["lines"], left["bytes"]
        return True

    def take_all(self, lines: Iterable[_Shown]) -> list[_Shown]:
        """Take lines up to the first that doesn't fit."""
        return list(takewhile(lambda line: self.take(line.text), lines))

    def holds(self, lines: Iterable[str]) -> bool:
        """Whether all of these lines would fit."""
        trial = _Room(self.chars, self.lines, self.bytes)
        return all(trial.take(line) for line in lines)

    def half(self) -> _Room:
        """Half of it, to be taken from."""
        return _Room(self.chars // 2, self.lines // 2, self.bytes // 2)

    def reached(self, limits: Limits, most_bytes: int) -> str | None:
        """The line that says which limit a line didn't keep."""
        if "chars" in self.refused:
            return f"... (char limit reached: {limits.chars} chars)"
        if "lines" in self.refused:
            return f"... (line limit reached: {limits.lines} lines)"
        return f"... (size limit reached: {most_bytes} bytes)" if self.refused else None
