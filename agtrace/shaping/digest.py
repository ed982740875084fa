"""Digests: the head and tail of a long text and every failing line in it, within limits of their own.

Characters are the main limit and lines the safety net; bytes are what the answer has left. The failing lines
come first, wherever they are; head and tail share the rest. Each limit is checked before a line is taken.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import orjson
from agtrace_schema.requests import Mode
from msgspec import Struct, field

from agtrace.shaping.replies import SHORT
from agtrace.text.chunking import escaped_size
from agtrace.text.failing_lines import Failing
from agtrace.text.lines import cut, without_controls

_TEXT = 200
_NAME = 160
_PUNCTUATION = 40
"""Bytes of JSON around a line, for its field names and number."""


class FailingLine(NamedTuple):
    """A line that reports a failure or belongs to one."""

    number: int
    """Counted from 1."""
    text: str
    name: str | None
    """The name of the failed test."""
    detail: bool = False
    """Whether it only belongs to a failure that another line reports."""


class _FirstLines:
    """The first lines of a kind, no more than an answer can hold."""

    def __init__(self, most: int, chars: int) -> None:
        self.lines: list[FailingLine] = []
        self._most, self._chars = most, chars

    def add(self, line: FailingLine) -> None:
        if len(self.lines) < self._most and self._chars > 0:
            self.lines.append(line)
            self._chars -= len(line.text)


class Failures:
    """The failing lines of an output, noted one by one: exact counts in bounded memory."""

    def __init__(self, most: int = 1000, chars: int = 100_000) -> None:
        self.count = 0
        """The number of lines that report a failure, without those that only belong to one."""
        self.first = self.last = 0
        """The numbers of the first and last of these lines."""
        self._explained = 0
        self._verdict: FailingLine | None = None
        self._tests, self._errors, self._repeats, self._details = (_FirstLines(most, chars) for _ in range(4))
        self._whole_names: set[str] = set()
        self._short_names: set[str] = set()

    def note(self, number: int, text: str, failing: Failing) -> None:
        """Add the next failing line."""
        line = FailingLine(number, text, failing.name, failing.kind == "detail")
        if failing.kind in ("error", "detail"):
            self._explained = self._explained or number
        if line.detail:
            self._details.add(line)
            return
        self.count += 1
        self.first, self.last = self.first or number, number
        if failing.kind == "verdict":
            if self._verdict:
                self._errors.add(self._verdict)
            self._verdict = line
        elif failing.kind == "test" and self._is_new(failing):
            self._tests.add(line)
        else:
            (self._errors if failing.kind == "error" else self._repeats).add(line)

    def _is_new(self, failing: Failing) -> bool:
        names = self._whole_names if failing.whole else self._short_names
        before = len(names)
        names.add(failing.name or "")
        return len(names) > before

    @property
    def tests(self) -> int:
        """The number of failed tests, each counted once.

        The shorter names in a tree of tests count only if the runner printed no full ones.
        """
        return len(self._whole_names or self._short_names)

    @property
    def explained(self) -> int:
        """The number of the first line that explains a failure, else of the first that reports one."""
        return self._explained or self.first

    @property
    def verdict(self) -> str | None:
        """The last summary of the test runner, in its own words."""
        return self._verdict and self._verdict.name

    def weightiest(self) -> Iterator[FailingLine]:
        """Yield the verdict, the first line of each failed test, errors, other lines of tests, then details."""
        if self._verdict:
            yield self._verdict
        yield from self._tests.lines
        yield from self._errors.lines
        yield from self._repeats.lines
        yield from self._details.lines

    def tests_named(self) -> list[FailingLine]:
        """Return the first line of each failed test that is counted."""
        return [line for line in self._tests.lines if line.name in self._whole_names] or self._tests.lines

    def counts(self) -> dict[str, Any]:
        """Return the counts, which are reported however little room there is."""
        verdict = {"verdict": _shown(self.verdict, _TEXT)} if self.verdict else {}
        return {"failing_lines": self.count, "failed_tests": self.tests, **verdict}

    def told(self, most_bytes: int) -> tuple[dict[str, Any], bool]:
        """Return the counts, the names and lines that fit, and `more` for the rest; and whether that is everything.

        Names go before lines, but room is kept for the first error.
        """
        room = most_bytes - len(orjson.dumps(self.counts())) - 80
        first = sum(_size(line) for line in self._errors.lines[:1])
        names = _fitting([_shown(line.name or "", _NAME) for line in self.tests_named()], room - first, _bytes_of)
        room -= sum(map(_bytes_of, names))
        ranked = [*self._errors.lines, *self._tests.lines, *self._repeats.lines]
        lines = _fitting(ranked, room, _size)
        verdict = bool(self._verdict)
        left = {"names": self.tests - len(names), "lines": self.count - len(lines) - verdict}
        more = {what: number for what, number in left.items() if number > 0}
        told = {
            **self.counts(),
            "names": names,
            "lines": [{"line": line.number, "text": _shown(line.text, _TEXT)} for line in sorted(lines)],
            "more": more,
        }
        return {what: value for what, value in told.items() if value != [] and value != {}}, not more


def _fitting(items: list[Any], room: int, size: Any) -> list[Any]:
    result = []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        result.append(item)
    return result


def _shown(text: str, most: int) -> str:
    return cut(without_controls(text[: 4 * most]), most)


def _bytes_of(text: str) -> int:
    return len(orjson.dumps(text)) + 1


def _size(line: FailingLine) -> int:
    return _bytes_of(_shown(line.text, _TEXT)) + _PUNCTUATION


class Limits(NamedTuple):
    """The limits of a digest."""

    chars: int
    lines: int
    width: int
    """Characters per line."""
    budget: int
    """Bytes of the whole answer."""


_MODES: dict[Mode, Limits] = {
    "minimal": Limits(chars=5_000, lines=100, width=200, budget=10_240),
    "standard": Limits(chars=40_000, lines=800, width=200, budget=40_960),
    "verbose": Limits(chars=200_000, lines=4_000, width=500, budget=102_400),
}


def of_mode(mode: Mode) -> Limits:
    """Return the limits of a mode, the same for every text."""
    return _MODES[mode]


OPENED = "start_line={gap}, end_line={end} shows them"
"""How the omitted lines of a text are read, from the first to the last of them."""

_OF_A_RUN, _FEW_LINES = 10, 20
"""Of a run with failed tests, besides what failed: one character in so many of the run, in so many lines at most."""

_NOTES = 400  # characters reserved for notes on the digest, and their lines:
_NOTE_LINES = 3
_JOINER = "\u200d"


class Digest(NamedTuple):
    """A shortened text."""

    text: str
    lines: int
    """The number of lines of the text that are shown, including cut ones."""
    shortened: bool
    omitted_failures: int
    """The number of failing lines that didn't fit."""
    omitted: tuple[int, int] | None
    """The numbers of the first and last line that aren't shown."""


class _Shown(NamedTuple):
    number: int
    text: str
    failing: bool


class Gathered(Struct):
    """The parts of a text that a digest may show, in bounded memory."""

    limits: Limits
    failures: Failures
    first: int
    """The number of the text's first line."""
    lines: int = 0
    chars: int = 0
    cut_lines: int = 0
    head: list[_Shown] = field(default_factory=list)
    tail: deque[_Shown] = field(default_factory=deque)
    _head_chars: int = 0
    _tail_chars: int = 0

    def take(self, text: str, failing: Failing | None) -> None:
        """Add the next line."""
        number, self.lines, self.chars = self.first + self.lines, self.lines + 1, self.chars + len(text) + 1
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

    def digest(self, most_bytes: int, opened: str = OPENED, *, lean: bool = False) -> Digest:
        """Return the digest, in at most this many bytes as JSON; `opened` says how the omitted lines are read.

        If `lean`, of a run with failed tests that isn't short hardly more is shown than what failed.
        """
        is_run, whole = lean and self.failures.tests > 0 and self.chars > SHORT, self._whole(most_bytes)
        if whole is not None and not is_run:
            return Digest(whole, self.lines, False, 0, None)
        limits = self.limits
        room = _Room(limits.chars - _NOTES, limits.lines - _NOTE_LINES, most_bytes - _NOTES - 2 * _NOTE_LINES)
        chosen, shown_failures = self._failing(room)
        left, rest = self.chars // _OF_A_RUN - sum(map(len, chosen.values())) - _NOTES, room
        if is_run:
            rest = _Room(min(room.chars, max(left, 0)), min(room.lines, _FEW_LINES), room.bytes)
        around = [line for line in self._around(rest, chosen) if line.number not in chosen]
        shown_failures += sum(line.failing for line in around)
        chosen |= {line.number: line.text for line in around}
        if whole is not None and len(chosen) == self.lines:
            return Digest(whole, self.lines, False, 0, None)
        lost = self.failures.count - shown_failures
        return self._composed(chosen, lost, room.reached(limits, most_bytes), opened)

    def _whole(self, most_bytes: int) -> str | None:
        if len(self.head) < self.lines or self.cut_lines:
            return None
        whole = "\n".join(line.text for line in self.head)
        return whole if len(whole) < self.limits.chars and escaped_size(whole) <= most_bytes else None

    def _failing(self, room: _Room) -> tuple[dict[int, str], int]:
        """Return the failing lines that fit and their details, by number, and how many of them report a failure.

        Failed tests are shown by name only if their lines don't all fit.
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
        """Return lines from the end, in half of the room, and from the beginning, in the rest."""
        half = room.half()
        end = half.take_all(line for line in reversed(self.tail) if line.number not in chosen)
        room.take_all(end)
        taken = {*chosen, *(line.number for line in end)}
        return end + room.take_all(line for line in self.head if line.number not in taken)

    def _composed(self, chosen: dict[int, str], lost: int, reached: str | None, opened: str) -> Digest:
        """Return the chosen lines in order, with a line after the head that counts the omitted ones."""
        left, last = self.lines - len(chosen), self.first + self.lines - 1
        if not left:
            note = f"... ({self.cut_lines:,} lines cut at {self.limits.width} characters)"
            return Digest("\n".join([*(chosen[n] for n in sorted(chosen)), note]), self.lines, True, 0, None)
        gap = next(number for number in range(self.first, last + 1) if number not in chosen)
        end = next(number for number in range(last, gap - 1, -1) if number not in chosen)
        numbered = "; numbered lines report failures" if self.failures.count > lost else ""
        marker = f"... {left:,} lines left out: {opened.format(gap=gap, end=end)}{numbered} ..."
        all_failures, tests = f"{self.failures.count:,} failing lines", f"{self.failures.tests:,} failed tests"
        lines = [chosen[number] for number in sorted(chosen) if number < gap]
        lines += [marker, *(chosen[number] for number in sorted(chosen) if number > gap)]
        lines += [f"... {lost:,} of {all_failures} left out; {tests} in all ..."] if lost else []
        return Digest("\n".join(lines + ([reached] if reached else [])), len(chosen), True, lost, (gap, end))

    def _numbered(self, number: int, text: str) -> str:
        return cut_line(f"{number}: {text}", self.limits.width)


def gather(lines: Iterable[tuple[str, Failing | None]], limits: Limits, *, first: int = 1) -> Gathered:
    """Read lines, each with the failure it reports; `first` is the number of the first line."""
    gathered = Gathered(limits, Failures(limits.lines, 4 * limits.chars), first)
    for text, failing in lines:
        gathered.take(text, failing)
    return gathered


def cut_line(text: str, most: int) -> str:
    """Cut a line to at most this many characters, including `...`, but not between a character and its accents."""
    if len(text) <= most:
        return text
    end = most - 3
    while end > most // 2 and (_belongs(text[end]) or text[end - 1] == _JOINER):
        end -= 1
    return text[:end] + "..."


def _belongs(character: str) -> bool:
    """Whether a character is displayed as part of the previous one: an accent, a joiner, a skin tone."""
    return character == _JOINER or unicodedata.category(character) in ("Mn", "Me") or "🏻" <= character <= "🏿"


class _Room(Struct):
    """The room left within the limits."""

    chars: int
    lines: int
    bytes: int
    refused: set[str] = field(default_factory=set)
    """The limits that some line would have exceeded."""

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
        """Return half of the room as a room of its own."""
        return _Room(self.chars // 2, self.lines // 2, self.bytes // 2)

    def reached(self, limits: Limits, most_bytes: int) -> str | None:
        """Return the line that names the limit reached; None if there is none."""
        if "chars" in self.refused:
            return f"... (char limit reached: {limits.chars} chars)"
        if "lines" in self.refused:
            return f"... (line limit reached: {limits.lines} lines)"
        return f"... (size limit reached: {most_bytes} bytes)" if self.refused else None
