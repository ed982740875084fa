"""Divides a text into blocks: by indentation where it has some, else by paragraphs, else line by line.

How deep a line stands is told whatever numbers, paths or times the lines begin with (`layout`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from agtrace_schema.patterns import later
from msgspec import Struct

BLANK = -1
"""The level of a line without characters."""

DEEPEST_LEVEL = 400
"""Lines that stand deeper than this stand equally deep."""

_BELOW_HEADINGS = 10
_SAMPLE = 400
_MOST = 0.7

_NUMBERED = later(r" *(\d+)(?:\t|→| ?[:|│] ?|-)")
_STAMPED = later(  # a line of a log of several jobs, with the time, or with both
    r"(?:[^\t]{1,80}\t[^\t]{1,80}\t|\[[^\]]{1,80}\] +\| ?|[\w.-]{1,40} +\| )?"
    r"(?:[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,Z+:-]*[\])]? ?|\[?\d\d:\d\d:\d\d[\d.,]*\]? |#\d+ \d+\.\d+ )?"
)
_FOUND = later(r"(?!\W*\d+[:/-])((?:[A-Za-z]:)?[^\s:]+?)[:-](\d+)[:-](?:\d+:)?")  # a time is no path
_HEADING = later(r"(#{1,6}) \S")
_BANNER = later(r"([=_*-])\1{2,} .*\w.* \1{3,}$")
_BANNERS = {"=": 1, "*": 1, "_": 2, "-": 3}
_SECTIONS = ("##[group]", "::group::", "[INFO] --- ", "> Task :", "---- ", "FAIL ", "PASS ", "RUN ", "● ")
_SECTION = 4
_LONGEST_PREFIX = 400
TRACEBACK = "Traceback (most recent call last)"
_LONGEST_TRACEBACK = 1000
_GO_FRAME = later(r"\s+\S+\.(?:go|s):\d+")


class Layout(Struct, frozen=True):
    """The levels of a text's lines, and where it begins anew."""

    levels: list[int]
    """How deep each line stands; BLANK where it has no characters."""
    ranges: list[tuple[int, int]]
    """Stretches of lines (the second number is the line after) that have nothing to do with each other."""
    bare: Sequence[str]
    """The lines without their numbers."""


def layout(lines: Sequence[str], looked: Sequence[tuple[int, int]]) -> Layout:
    """Tell how a text is laid out in the stretches that are looked at; elsewhere no line has a level."""
    found = _mostly(lines, _FOUND)
    counted = not found and _counted(lines)
    levels, ranges, bare = [BLANK] * len(lines), [], list(lines)
    for start, end in looked:
        part = lines[start:end]
        if found:
            places = [_FOUND.match(line[:_LONGEST_PREFIX]) for line in part]
            levels[start:end] = _levels(_without(part, places))
            ranges += [(start + one, start + after) for one, after in _places(places)]
            continue
        if counted:
            part = _without(part, [_NUMBERED.match(line[:_LONGEST_PREFIX]) for line in part])
            bare[start:end] = part
        if _mostly(part, _STAMPED):
            part = _without(part, [_STAMPED.match(line[:_LONGEST_PREFIX]) for line in part])
        levels[start:end] = _levels(part)
        ranges.append((start, end))
    return Layout(levels, ranges, bare)


def _mostly(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    sample = [line[:_LONGEST_PREFIX] for line in lines[:_SAMPLE] if line.strip()]
    return sum(found is not None and found.end() > 0 for found in map(pattern.match, sample)) > _MOST * len(sample)


def _counted(lines: Sequence[str]) -> bool:
    """Whether most lines begin with a number that is one more than that of the line before."""
    sample = [_NUMBERED.match(line[:_LONGEST_PREFIX]) for line in lines[:_SAMPLE]]
    numbers = [int(begun[1][:9]) if begun else None for begun in sample]
    steps = sum(a is not None and b is not None and b - a == 1 for a, b in pairwise(numbers))
    return steps > _MOST * max(len(numbers) - 1, 1)


def _without(lines: Sequence[str], begun: Sequence[re.Match[str] | None]) -> list[str]:
    return [line[match.end() :] if match else line for line, match in zip(lines, begun, strict=True)]


def _places(found: Sequence[re.Match[str] | None]) -> list[tuple[int, int]]:
    places = [(match[1], int(match[2][:9])) if match else None for match in found]
    begins = [0]
    begins += [
        index
        for index, (one, other) in enumerate(pairwise(places), 1)
        if one is None or other is None or one[0] != other[0] or other[1] - one[1] not in (0, 1)
    ]
    return [*pairwise(begins), (begins[-1], len(places))]


def _levels(lines: Sequence[str]) -> list[int]:
    levels = [_depth(line) for line in lines]
    _join_tracebacks(lines, levels)
    headings = _headings(lines)
    if not headings:
        return levels
    below = _BELOW_HEADINGS
    return [headings.get(index, level + below if level != BLANK else BLANK) for index, level in enumerate(levels)]


def _join_tracebacks(lines: Sequence[str], levels: list[int]) -> None:
    """Put the last line of a traceback below its first, and both lines of a frame of Go at one level."""
    for index, line in enumerate(lines):
        if TRACEBACK in line[:_LONGEST_PREFIX]:
            last, most = index + 1, min(index + _LONGEST_TRACEBACK, len(lines))
            while last < most and levels[last] > levels[index]:
                last += 1
            if last < most and levels[last] == levels[index]:
                levels[last] += 1
        elif line[:1] == "\t" and _GO_FRAME.match(line[:_LONGEST_PREFIX]) and index and levels[index - 1] >= 0:
            levels[index] = levels[index - 1]


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


def _headings(lines: Sequence[str]) -> dict[int, int]:
    found = {}
    alone = 0
    for index, line in enumerate(lines):
        if line[:1] == "#" and (heading := _HEADING.match(line)):
            found[index] = len(heading[1])
            after = lines[index + 1] if index + 1 < len(lines) else ""
            alone += not after.strip() or not lines[index - 1].strip()
        elif line[:1] in _BANNERS and line[:3] == line[:1] * 3 and (banner := _BANNER.match(line[:300])):
            found[index] = _BANNERS[banner[1]]
            alone += 1
        elif line.startswith(_SECTIONS):
            found[index] = _SECTION
            alone += 1
    return found if alone >= 2 and alone >= _MOST * len(found) else {}


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
    headers: tuple[int, ...] = ()
    description: tuple[int, ...] = ()
    """Lines that tell what is below the last of the headers."""

    def block(self, start: int, end: int, *, loose: bool = False) -> Block:
        return Block(start, end, self.headers, (*self.headers, *self.description), loose)


class _Division:
    def __init__(self, lines: Sequence[str], levels: Sequence[int], largest: int, in_time: Callable[[], None]) -> None:
        self.found: list[Block] = []
        self._lines = lines
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
        if above.headers and end - start <= LARGEST:  # evenly, as they belong to the same thing: frames of a traceback
            pieces = -(-(end - start) // self._largest)
            bounds = [start + (end - start) * piece // pieces for piece in range(pieces + 1)]
            self.found += [above.block(one, after) for one, after in pairwise(bounds)]
            return
        begins = [index for index in range(start, end) if index == start or self._levels[index] != BLANK]
        self.found += [above.block(one, after, loose=True) for one, after in pairwise([*begins, end])]
