"""Divides a text into blocks: by indentation where it has some, else by paragraphs, else line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from agtrace.text.focus.layout import BLANK, Layout

LARGEST = 30
"""The most lines of a block."""

SMALLEST_LIMIT = 6
SHARE = 0.12
"""The share of a text's lines that a block may have, within these limits."""

_DEEPEST = 8
_LONGEST_SIGNATURE = 12
_CONTINUES = re.compile(
    r"\d+ +\||[\s\d:|→-]*"
    r"(?:[)\]}]|end\b|else\b|elif\b|except\b|catch\b|finally\b|rescue\b|ensure\b|then\b|fi\b|done\b|esac\b|<\/)"
)
_CLOSES_SIGNATURE = re.compile(r"[\s\d:|→-]*[)\]]")


class Block(NamedTuple):
    """Lines that belong together, from `start` to before `end`."""

    start: int
    end: int
    headers: tuple[int, ...]
    """The lines that stand above: class, function, section, the key of an object in JSON."""
    loose: bool = False
    """Whether it is a line that was taken out of a longer stretch."""


def blocks(lines: Sequence[str], layout: Layout, in_time: Callable[[], None]) -> list[Block]:
    """Return blocks that together are all the lines, in their order; `in_time` is called now and then."""
    largest = min(max(int(len(lines) * SHARE), SMALLEST_LIMIT), LARGEST)
    division = _Division(lines, layout.levels, largest, in_time)
    for start, end in layout.ranges:
        division.divide(start, end, (), 0)
    return division.found


class _Division:
    """Divides stretches of one text."""

    def __init__(self, lines: Sequence[str], levels: Sequence[int], largest: int, in_time: Callable[[], None]) -> None:
        self.found: list[Block] = []
        self._lines = lines
        self._levels = levels
        self._largest = largest
        self._in_time = in_time

    def divide(self, start: int, end: int, headers: tuple[int, ...], depth: int) -> None:
        """Append the blocks of a stretch of lines."""
        if end - start <= self._largest and (depth or end - start < self._largest // 2):
            if end > start:
                self.found.append(Block(start, end, headers))
            return
        self._in_time()
        lowest = min((level for level in self._levels[start:end] if level != BLANK), default=BLANK)
        if depth >= _DEEPEST or lowest == BLANK:
            self._line_by_line(start, end, headers)
            return
        units = self._units(start, end, lowest)
        if len(units) == 1:
            self._headed(start, end, headers, depth, lowest)
            return
        for one, after in zip(units, [*units[1:], end], strict=True):
            self.divide(one, after, headers, depth + 1)

    def _units(self, start: int, end: int, lowest: int) -> list[int]:
        """Return where paragraphs and bodies begin that stand at the lowest level."""
        levels, begins, before = self._levels, [start], BLANK
        for index in range(start, end):
            level = levels[index]
            if level == lowest and index > start:
                deeper_before = before > lowest
                blank_before = levels[index - 1] == BLANK
                leading = deeper_before and len(begins) == 1 and levels[start] > lowest
                if leading or ((deeper_before or blank_before) and not _CONTINUES.match(self._lines[index][:80])):
                    begins.append(index)
            if level != BLANK:
                before = level
        return begins

    def _headed(self, start: int, end: int, headers: tuple[int, ...], depth: int, lowest: int) -> None:
        """Divide a single unit: what stands above its body, and the body."""
        header = self._header(start, end, lowest)
        if header is None:
            self._line_by_line(start, end, headers)
            return
        after = self._end_of_signature(header, end, lowest)
        if after - start > self._largest:
            self._line_by_line(start, header, headers)
            start = header
        self.found.append(Block(start, after, headers))
        self.divide(after, end, (*headers, *range(header, after)), depth + 1)

    def _header(self, start: int, end: int, lowest: int) -> int | None:
        """Return the first line at the lowest level that deeper ones follow."""
        before = None
        for index in range(start, end):
            level = self._levels[index]
            if level == lowest:
                before = index
            elif level > lowest and before is not None:
                return before
        return None

    def _end_of_signature(self, header: int, end: int, lowest: int) -> int:
        """Return the line after a header, which may have its arguments on lines of their own."""
        for index in range(header + 1, min(header + _LONGEST_SIGNATURE, end - 1)):
            if self._levels[index] == lowest:
                closes = _CLOSES_SIGNATURE.match(self._lines[index][:80]) and self._levels[index + 1] > lowest
                return index + 1 if closes else header + 1
        return header + 1

    def _line_by_line(self, start: int, end: int, headers: tuple[int, ...]) -> None:
        """Make each line a block, with the blank ones that follow it."""
        begins = [index for index in range(start, end) if index == start or self._levels[index] != BLANK]
        self.found += [Block(one, after, headers, True) for one, after in pairwise([*begins, end])]
