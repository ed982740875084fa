"""Divides a text into blocks: by indentation where it has some, else by paragraphs, else line by line.

Numbers of lines, which those who show a file put before its lines, are passed over (`layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from agtrace_schema.patterns import later
from msgspec import Struct

BLANK = -1
"""The level of a line without characters."""

DEEPEST_LEVEL = 400
"""Lines that stand deeper than this stand equally deep."""

_SAMPLE = 400
_MOST = 0.7
_NUMBERED = later(r" *(\d+)(?:\t|→| ?[:|│] ?|-)")
_LONGEST_PREFIX = 400


class Layout(Struct, frozen=True):
    """How deep the lines of a text stand."""

    levels: list[int]
    """BLANK for a line that has no characters, or isn't looked at."""
    bare: Sequence[str]
    """The lines without their numbers."""


def layout(lines: Sequence[str], looked: Sequence[tuple[int, int]]) -> Layout:
    """Tell how a text is laid out in the stretches that are looked at; elsewhere no line has a level."""
    counted, levels, bare = _is_numbered(lines), [BLANK] * len(lines), list(lines)
    for start, end in looked:
        if counted:
            bare[start:end] = map(_without_number, lines[start:end])
        levels[start:end] = map(_depth, bare[start:end])
    return Layout(levels, bare)


def _is_numbered(lines: Sequence[str]) -> bool:
    """Whether most lines begin with a number that is one more than that of the line before."""
    sample = [_NUMBERED.match(line[:_LONGEST_PREFIX]) for line in lines[:_SAMPLE]]
    numbers = [int(begun[1][:9]) if begun else None for begun in sample]
    steps = sum(a is not None and b is not None and b - a == 1 for a, b in pairwise(numbers))
    return steps > _MOST * max(len(numbers) - 1, 1)


def _without_number(line: str) -> str:
    begun = _NUMBERED.match(line[:_LONGEST_PREFIX])
    return line[begun.end() :] if begun else line


def _depth(line: str) -> int:
    bare = line.lstrip()
    if not bare:
        return BLANK
    before = len(line) - len(bare)
    if before and "\t" in line[:before]:
        before = len(line[: min(before, DEEPEST_LEVEL)].expandtabs(4))
    if before % 2 and (bare[:2] in ("* ", "*/") or bare.rstrip() == "*"):
        before -= 1  # a line of a comment stands as deep as the line that opens it
    return min(before, DEEPEST_LEVEL)


LARGEST = 30
"""The most lines of a block."""

TOGETHER = 8
"""Short units inside of something are put together as long as they have no more lines than this."""

SMALLEST_LIMIT = 10
SHARE = 0.12
"""The share of a text's lines that a block may have, within these limits."""

_DEEPEST = 8
_LONGEST_COMMENT = 12


class Block(Struct, frozen=True):
    """Lines that belong together, from `start` to before `end`."""

    start: int
    end: int
    headers: tuple[int, ...]
    """The lines that stand above: class, function, the key of an object in JSON."""
    about: tuple[int, ...] = ()
    """Those lines, and others that tell what the block is about: a comment above."""
    loose: bool = False
    """Whether it is a line that was taken out of a longer stretch."""


def blocks(layout: Layout, looked: Sequence[tuple[int, int]], in_time: Callable[[], None]) -> list[Block]:
    """Return blocks that together are all the lines that are looked at; `in_time` is called now and then."""
    largest = min(max(int(len(layout.levels) * SHARE), SMALLEST_LIMIT), LARGEST)
    division = _Division(layout.levels, largest, in_time)
    for start, end in looked:
        division.divide(start, end, _Above(), 0)
    return division.found


class _Above(Struct, frozen=True):
    headers: tuple[int, ...] = ()
    description: tuple[int, ...] = ()
    """Lines that tell what is below the last of the headers."""

    def block(self, start: int, end: int, *, loose: bool = False) -> Block:
        return Block(start, end, self.headers, (*self.headers, *self.description), loose)


class _Division:
    def __init__(self, levels: Sequence[int], largest: int, in_time: Callable[[], None]) -> None:
        self.found: list[Block] = []
        self._levels = levels
        self._largest = largest
        self._in_time = in_time

    def divide(self, start: int, end: int, above: _Above, depth: int) -> None:
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
        levels, begins, before = self._levels, [start], BLANK
        for index in range(start, end):
            level = levels[index]
            if level == lowest and index > start and (before > lowest or levels[index - 1] == BLANK):
                begins.append(index)
            if level != BLANK:
                before = level
        return begins

    def _merged(self, units: Sequence[int], end: int, depth: int) -> list[int]:
        if not depth:
            return list(units)
        merged = [units[0]]
        for one, after in pairwise([*units[1:], end]):
            if after - merged[-1] > TOGETHER:
                merged.append(one)
        return merged

    def _headed(self, start: int, end: int, above: _Above, depth: int, lowest: int) -> None:
        header = self._header(start, end, lowest)
        if header is None:
            self._line_by_line(start, end, above)
            return
        if header + 1 - start > self._largest:
            self._line_by_line(start, header, above)
            start = header
        self.found.append(above.block(start, header + 1))
        comment = tuple(range(max(start, header - _LONGEST_COMMENT), header))
        self.divide(header + 1, end, _Above((*above.headers, header), comment), depth + 1)

    def _header(self, start: int, end: int, lowest: int) -> int | None:
        before = None
        for index in range(start, end):
            level = self._levels[index]
            if level == lowest:
                before = index
            elif level > lowest and before is not None:
                return before
        return None

    def _line_by_line(self, start: int, end: int, above: _Above) -> None:
        """Make each line a block, with the blank ones that follow it."""
        if above.headers and end - start <= LARGEST:  # evenly, as they belong to the same thing: frames of a traceback
            pieces = -(-(end - start) // self._largest)
            bounds = [start + (end - start) * piece // pieces for piece in range(pieces + 1)]
            self.found += [above.block(one, after) for one, after in pairwise(bounds)]
            return
        begins = [index for index in range(start, end) if index == start or self._levels[index] != BLANK]
        self.found += [above.block(one, after, loose=True) for one, after in pairwise([*begins, end])]
