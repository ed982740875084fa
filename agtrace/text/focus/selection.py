"""Chooses the lines that are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agtrace.text.focus.blocks import Block
from agtrace.text.focus.gaps import longest_gap
from agtrace.text.focus.protected import Protected

MOST_KEPT = 0.4
"""The share of a text's lines that is kept for the question."""

FOR_PROTECTED = 0.2
"""The share of a text's lines that is kept beside those with failures, whatever the question."""

OF_BEST = 0.5
"""Blocks are kept down to this share of the best score."""

FILLED = 0.3
"""If the blocks kept are less than this share of the text, more are kept,"""

OF_BEST_TO_FILL = 0.25
"""down to this share of the best score,"""

MOST_FILLED = 80
"""but not more than this many lines."""


def chosen(blocks: Sequence[Block], scores: Sequence[float], protected: Protected, total: int) -> set[int]:
    """Return the lines to keep of a text with this many lines: those with failures, and the best blocks."""
    kept = set(protected.failing)
    room = _Room(kept, int(total * FOR_PROTECTED))
    for line in protected.around:
        room.take((line,))
    room = _Room(kept, max(int(total * MOST_KEPT), 1) - (len(kept) - len(protected.failing)))
    best = max(scores, default=0)
    for index in _ranked(scores, best * OF_BEST):
        room.take(_whole(blocks[index]))
    room = _Room(kept, min(int(total * FILLED) - len(kept), MOST_FILLED))
    for index in _ranked(scores, best * OF_BEST_TO_FILL):
        room.take(_whole(blocks[index]))
    return kept


def _whole(block: Block) -> tuple[int, ...]:
    return (*block.headers, *range(block.start, block.end))


class _Room:
    """Takes lines until there are as many as there may be."""

    def __init__(self, kept: set[int], most: int) -> None:
        self._kept = kept
        self._left = most

    def take(self, lines: Iterable[int]) -> None:
        new = set(lines) - self._kept
        if len(new) <= self._left:
            self._kept |= new
            self._left -= len(new)


def _ranked(scores: Sequence[float], least: float) -> list[int]:
    return sorted(
        (index for index, score in enumerate(scores) if score and score >= least), key=lambda index: -scores[index]
    )


def chosen_within(
    lines: Sequence[str], blocks: Sequence[Block], scores: Sequence[float], protected: Protected, most: int, last: int
) -> set[int]:
    """Return the lines to keep within this many characters, gaps included; `last` is the number of the last line."""
    room = _Characters(lines, most, longest_gap(last))
    telling = {line for block, score in zip(blocks, scores, strict=True) if score for line in range(*block[:2])}
    for line in sorted(protected.failing, key=lambda line: (protected.failing[line], line not in telling, line)):
        room.take((line,))
    for index in _ranked(scores, 0):
        block = blocks[index]
        own = range(block.start, block.end)
        if not room.take(_whole(block)) and not room.take(own):
            for line in own:
                room.take((line,))
        if room.full:
            break
    for line in protected.around:
        room.take((line,))
    return room.kept


class _Characters:
    """Takes lines as long as they fit, with a gap on one side of each stretch."""

    def __init__(self, lines: Sequence[str], most: int, gap: int) -> None:
        self.kept: set[int] = set()
        self._lines = lines
        self._gap = gap + 1
        self._left = most - self._gap

    @property
    def full(self) -> bool:
        """Whether hardly another line would fit."""
        return self._left < self._gap + 1

    def take(self, lines: Iterable[int]) -> bool:
        """Take these lines if all of them fit."""
        new = sorted(set(lines) - self.kept)
        stretches = sum(
            line - 1 not in self.kept and (not at or new[at - 1] != line - 1) for at, line in enumerate(new)
        )
        cost = stretches * self._gap + sum(len(self._lines[line]) + 1 for line in new)
        if cost > self._left:
            return False
        self.kept.update(new)
        self._left -= cost
        return True
