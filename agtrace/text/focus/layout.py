"""How a text is laid out: how deep each line stands, whatever numbers or paths the lines begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

BLANK = -1
"""The level of a line without characters."""

DEEPEST = 400
"""Lines that stand deeper than this stand equally deep."""

_BELOW_HEADINGS = 10
_SAMPLE = 400
_MOST = 0.7

_NUMBERED = re.compile(r" *(\d+)(?:\t|→|[:|] ?)")
_FOUND = re.compile(r"(?!\W*\d+[:/-])((?:[A-Za-z]:)?[^\s:]+?)[:-](\d+)[:-](?:\d+:)?")  # a time is no path
_HEADING = re.compile(r"(#{1,6}) \S")
_BANNER = re.compile(r"([=_*-])\1{2,} .*\w.* \1{3,}$")
_BANNERS = {"=": 1, "*": 1, "_": 2, "-": 3}
_LONGEST_PREFIX = 400


class Layout(NamedTuple):
    """The levels of a text's lines, and where it begins anew."""

    levels: list[int]
    """How deep each line stands; BLANK where it has no characters."""
    ranges: list[tuple[int, int]]
    """Stretches of lines (the second number is the line after) that have nothing to do with each other."""


def layout(lines: Sequence[str]) -> Layout:
    """Tell how a text is laid out."""
    ranges = [(0, len(lines))]
    bare: Sequence[str] = lines
    if _mostly(lines, _FOUND):
        found = [_FOUND.match(line[:_LONGEST_PREFIX]) for line in lines]
        bare = _without(lines, found)
        ranges = _places(found)
    elif _counted(lines):
        bare = _without(lines, [_NUMBERED.match(line[:_LONGEST_PREFIX]) for line in lines])
    return Layout(_levels(bare), ranges)


def _mostly(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    sample = [line[:_LONGEST_PREFIX] for line in lines[:_SAMPLE] if line.strip()]
    return sum(map(bool, map(pattern.match, sample))) > _MOST * len(sample)


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
    headings = _headings(lines)
    if not headings:
        return levels
    below = _BELOW_HEADINGS
    return [headings.get(index, level + below if level != BLANK else BLANK) for index, level in enumerate(levels)]


def _depth(line: str) -> int:
    bare = line.lstrip()
    if not bare:
        return BLANK
    before = len(line) - len(bare)
    if before and "\t" in line[:before]:
        before = len(line[: min(before, DEEPEST)].expandtabs(4))
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
    return found if alone >= 2 and alone >= _MOST * len(found) else {}
