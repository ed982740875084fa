"""How a text is laid out: how deep each line stands, whatever numbers or paths the lines begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from agtrace_schema.patterns import later
from msgspec import Struct

BLANK = -1
"""The level of a line without characters."""

DEEPEST = 400
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
        levels[start:end] = _levels(_unstamped(part))
        ranges.append((start, end))
    return Layout(levels, ranges, bare)


def _unstamped(lines: Sequence[str]) -> Sequence[str]:
    if not _mostly(lines, _STAMPED):
        return lines
    return _without(lines, [_STAMPED.match(line[:_LONGEST_PREFIX]) for line in lines])


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
    """Return the stretches of lines that follow each other in one file."""
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
        before = len(line[: min(before, DEEPEST)].expandtabs(4))
    if before % 2 and (bare[:2] in ("* ", "*/") or bare.rstrip() == "*"):
        before -= 1  # a line of a comment stands as deep as the line that opens it
    return min(before, DEEPEST)


def _headings(lines: Sequence[str]) -> dict[int, int]:
    """Return the levels of lines that stand above all that follows: headings of Markdown, banners of test runners."""
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
