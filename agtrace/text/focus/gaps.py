"""Writes the lines that are kept, and what was left out between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise


def gap(first: int, last: int) -> str:
    """Return the line that stands for those left out, given the numbers of the first and the last of them."""
    return f"({last - first + 1} lines left out: {first}-{last})"


def longest_gap(last: int) -> int:
    """Return the most characters of a gap in a text whose last line has this number."""
    return len(gap(last, last)) + len(str(last))


def spans(kept: Iterable[int]) -> list[tuple[int, int]]:
    """Return the stretches of these lines, inclusive."""
    found: list[tuple[int, int]] = []
    for line in sorted(kept):
        if found and found[-1][1] == line - 1:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    return found


def widened(kept: list[tuple[int, int]], lines: Sequence[str], first: int, *, single: bool) -> list[tuple[int, int]]:
    """Add lines that cost no more than the gap that stood for them; with `single`, each that is left out alone."""
    ends = [(-1, -1), *kept, (len(lines), len(lines))]
    more = [
        range(before + 1, after)
        for (_, before), (after, _) in pairwise(ends)
        if after - before > 1 and not _worth(lines, before + 1, after - 1, first, single)
    ]
    if not more:
        return kept
    return spans(
        {line for start, end in kept for line in range(start, end + 1)} | {line for one in more for line in one}
    )


def _worth(lines: Sequence[str], start: int, end: int, first: int, single: bool) -> bool:
    if single and start == end:
        return False
    size = len(gap(first + start, first + end))
    return sum(len(lines[line]) + 1 for line in range(start, min(end + 1, start + size))) - 1 > size


def written(kept: Sequence[tuple[int, int]], lines: Sequence[str], first: int) -> str:
    """Write the kept lines, each gap as a line; the first line of the text has the number `first`."""
    ends = [(-1, -1), *kept, (len(lines), len(lines))]
    pieces: list[str] = []
    for (_, before), (start, end) in pairwise(ends):
        if start - before > 1:
            pieces.append(gap(first + before + 1, first + start - 1))
        pieces += lines[start : end + 1]
    return "\n".join(pieces)
