"""Divides a text into blocks: by indentation where it has some, else by paragraphs, else line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.text.focus.layout import BLANK, TRACEBACK, Layout

LARGEST = 30
"""The most lines of a block."""

TOGETHER = 8
"""Short units inside of something are put together as long as they have no more lines than this."""

SMALLEST_LIMIT = 10
SHARE = 0.12
"""The share of a text's lines that a block may have, within these limits."""

_DEEPEST = 8
_LONGEST_SIGNATURE = 12
_CONTINUES = later(
    r"\d+ +\||[\s\d:|→-]*"
    r"(?:[)\]}]|Caused by: |\.{3} \d+ more|"
    r"end\b|else\b|elif\b|except\b|catch\b|finally\b|rescue\b|ensure\b|then\b|fi\b|done\b|esac\b|<\/)"
)
_CLOSED = later(r"[\s\d:|→-]*[)\]}]+[,;]*\s*$")
_OPENS = later(r"[\s\d:|→-]*[\[{(]+\s*$")
_QUOTES = later(r"[\s\d:|→-]*[rRuUbB]{0,2}(\"\"\"|\'\'\')")
_NAMES = later(r"[\s\d:|→-]*[\"\']?(?:name|id|key|title|path|file|type|kind|ref|uri|url|code)\b", re.IGNORECASE)
_LONGEST_COMMENT = 12
_MOST_VALUES = 8
_CLOSES_SIGNATURE = later(r"[\s\d:|→-]*[)\]]")


class Block(Struct, frozen=True):
    """Lines that belong together, from `start` to before `end`."""

    start: int
    end: int
    headers: tuple[int, ...]
    """The lines that stand above: class, function, section, the key of an object in JSON."""
    about: tuple[int, ...] = ()
    """Those lines, and others that tell what the block is about: a comment above, a docstring, names in an object."""
    loose: bool = False
    """Whether it is a line that was taken out of a longer stretch."""


def blocks(lines: Sequence[str], layout: Layout, in_time: Callable[[], None]) -> list[Block]:
    """Return blocks that together are all the lines, in their order; `in_time` is called now and then."""
    largest = min(max(int(len(lines) * SHARE), SMALLEST_LIMIT), LARGEST)
    division = _Division(lines, layout.levels, largest, in_time)
    for start, end in layout.ranges:
        division.divide(start, end, _Above(), 0)
    return division.found


class _Above(Struct, frozen=True):
    """What stands above a stretch of lines."""

    headers: tuple[int, ...] = ()
    description: tuple[int, ...] = ()
    """Lines that tell what is below the last of the headers."""

    def block(self, start: int, end: int, *, loose: bool = False) -> Block:
        return Block(start, end, self.headers, (*self.headers, *self.description), loose)


class _Division:
    """Divides stretches of one text."""

    def __init__(self, lines: Sequence[str], levels: Sequence[int], largest: int, in_time: Callable[[], None]) -> None:
        self.found: list[Block] = []
        self._lines = lines
        self._levels = levels
        self._largest = largest
        self._in_time = in_time

    def divide(self, start: int, end: int, above: _Above, depth: int) -> None:
        """Append the blocks of a stretch of lines."""
        if end - start <= self._largest and (depth or end - start < self._largest // 2):
            if end > start:
                self.found.append(above.block(start, end))
            return
        self._in_time()
        lowest = min([level for level in self._levels[start:end] if level != BLANK], default=BLANK)
        if depth >= _DEEPEST or lowest == BLANK:
            self._line_by_line(start, end, above)
            return
        units = self._units(start, end, lowest)
        if len(units) == 1:
            self._headed(start, end, above, depth, lowest)
            return
        for one, after in pairwise([*self._merged(units, end, depth), end]):
            self.divide(one, after, above, depth + 1)

    def _units(self, start: int, end: int, lowest: int) -> list[int]:
        """Return where paragraphs and bodies begin that stand at the lowest level."""
        levels, begins, before, closed = self._levels, [start], BLANK, False
        for index in range(start, end):
            level = levels[index]
            if level == lowest and index > start:
                deeper_before = before > lowest
                blank_before = levels[index - 1] == BLANK
                leading = deeper_before and len(begins) == 1 and levels[start] > lowest
                line = self._lines[index][:80]
                if leading or ((deeper_before or blank_before or closed) and not _CONTINUES.match(line)):
                    begins.append(index)
                closed = deeper_before and _CLOSED.match(line) is not None
            if level != BLANK:
                before = level
        return begins

    def _merged(self, units: Sequence[int], end: int, depth: int) -> list[int]:
        """Return where units begin if short ones inside of something are put together."""
        if not depth:
            return list(units)
        merged = [units[0]]
        for one, after in pairwise([*units[1:], end]):
            if after - merged[-1] > TOGETHER:
                merged.append(one)
        return merged

    def _headed(self, start: int, end: int, above: _Above, depth: int, lowest: int) -> None:
        """Divide a single unit: what stands above its body, and the body."""
        header = self._header(start, end, lowest)
        if header is None:
            self._line_by_line(start, end, above)
            return
        after = self._end_of_signature(header, end, lowest)
        if after - start > self._largest:
            self._line_by_line(start, header, above)
            start = header
        self.found.append(above.block(start, after))
        comment = range(max(start, header - _LONGEST_COMMENT), header)
        named, values = self._values(header, end) if _OPENS.match(self._lines[header][:80]) else ((), ())
        raised = [end - 1] if TRACEBACK in self._lines[header] else []
        description = (*raised, *comment, *self._docstring(after, end), *values)
        headers = (*above.headers, *range(header, after), *named)
        self.divide(after, end, _Above(headers, description), depth + 1)

    def _docstring(self, start: int, end: int) -> Sequence[int]:
        """Return the lines of a docstring that begins at this line."""
        begun = _QUOTES.match(self._lines[start][:80]) if start < end else None
        if not begun:
            return ()
        most = min(end, start + _LONGEST_COMMENT)
        rest = self._lines[start][begun.end() :]
        ends = (line for line in range(start + 1, most) if begun[1] in self._lines[line])
        return range(start, start + 1 if begun[1] in rest else next(ends, most - 1) + 1)

    def _values(self, header: int, end: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return, of an object without a name above it, the line that names it, and its values that aren't objects."""
        level = self._levels[header + 1]
        values = [
            line
            for line in range(header + 1, min(end, header + 1 + 40 * _MOST_VALUES))
            if self._levels[line] == level and (line + 1 == end or self._levels[line + 1] <= level)
        ][:_MOST_VALUES]
        return [line for line in values if _NAMES.match(self._lines[line][:80])][:1], values

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

    def _line_by_line(self, start: int, end: int, above: _Above) -> None:
        """Make each line a block, with the blank ones that follow it."""
        if above.headers and end - start <= LARGEST:
            self._evenly(start, end, above)
            return
        begins = [index for index in range(start, end) if index == start or self._levels[index] != BLANK]
        self.found += [above.block(one, after, loose=True) for one, after in pairwise([*begins, end])]

    def _evenly(self, start: int, end: int, above: _Above) -> None:
        """Make blocks of about the same length of lines that belong to the same thing: the frames of a traceback."""
        pieces = -(-(end - start) // self._largest)
        bounds = [start + (end - start) * piece // pieces for piece in range(pieces + 1)]
        self.found += [above.block(one, after) for one, after in pairwise(bounds)]
