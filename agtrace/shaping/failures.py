"""The failing lines of an output, summed up: how many, which tests failed, what the test runner counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

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


class _Kept:
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
        self._tests, self._errors, self._repeats, self._details = (_Kept(most, chars) for _ in range(4))
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
        names = _taken([_shown(line.name or "", _NAME) for line in self.tests_named()], room - first, _bytes_of)
        room -= sum(map(_bytes_of, names))
        ranked = [*self._errors.lines, *self._tests.lines, *self._repeats.lines]
        lines = _taken(ranked, room, _size)
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


def _taken(items: list[Any], room: int, size: Any) -> list[Any]:
    """Return the first items, as many as fit."""
    taken = []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        taken.append(item)
    return taken


def _shown(text: str, most: int) -> str:
    return cut(without_controls(text[: 4 * most]), most)


def _bytes_of(text: str) -> int:
    return len(orjson.dumps(text)) + 1


def _size(line: FailingLine) -> int:
    return _bytes_of(_shown(line.text, _TEXT)) + _PUNCTUATION
