"""Chooses the lines that are kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence

from agtrace.text.focus.blocks import Block
from agtrace.text.focus.gaps import spans
from agtrace.text.focus.protected import Protected

MOST_KEPT = 0.4
"""The share of a text's lines that is kept for the question,"""

MOST_LINES = 250
"""but not more than this many."""

FOR_PROTECTED = 0.15
"""The share of a text's lines that is kept beside those with failures, whatever the question."""

OF_BEST = 0.5
"""Blocks are kept down to this share of the best score."""

SURE, UNSURE = 17.0, 8.0
"""The best score from which it is likely, and below which it isn't, that the best blocks have the answer."""

FILLED_IF_SURE, FILLED = 0.3, 0.37
"""If the blocks kept are less than this share of the text, more are kept, those with the best scores,"""

OF_BEST_TO_FILL = 0.08
"""down to this share of the best score,"""

HOLE = 3
"""No fewer lines than this are left out between two that are kept."""

MOST_FILLED = 100
"""but not more than this many lines."""

_CUT = "..."


def chosen(blocks: Sequence[Block], scores: Sequence[float], protected: Protected, total: int) -> set[int]:
    """Return the lines to keep of a text with this many lines: those with failures, and the best blocks."""
    kept = set(protected.failing)
    room = _Room(kept, min(int(total * FOR_PROTECTED), MOST_LINES))
    for line in (*protected.around, *_by_score(protected.details, blocks, scores)):
        room.take((line,))
    best = max(scores, default=0)
    ranked = _ranked(scores, best * OF_BEST_TO_FILL)
    kept.update(_whole(blocks[ranked[0]]) if ranked else ())
    room = _Room(kept, min(int(total * MOST_KEPT), MOST_LINES) - (len(kept) - len(protected.failing)))
    for index in ranked:
        if scores[index] >= best * OF_BEST:
            room.take(_whole(blocks[index]))
    room = _Room(kept, min(min(int(total * _filled(best)), MOST_LINES) - len(kept), MOST_FILLED))
    for index in ranked:
        room.take(_whole(blocks[index]))
    return kept


def _filled(best: float) -> float:
    """Return the share of a text to fill: more of it where the best score is small."""
    sure = min(max((best - UNSURE) / (SURE - UNSURE), 0), 1)
    return FILLED + (FILLED_IF_SURE - FILLED) * sure


def _whole(block: Block) -> tuple[int, ...]:
    return (*block.headers, *range(block.start, block.end))


class _Room:
    """Takes lines until there are as many as there may be, with those that would be left out alone between them."""

    def __init__(self, kept: set[int], most: int) -> None:
        self._kept = kept
        self._left = most

    def take(self, lines: Iterable[int]) -> None:
        new = set(lines) - self._kept
        new |= self._holes(new)
        if len(new) <= self._left:
            self._kept |= new
            self._left -= len(new)

    def _holes(self, new: set[int]) -> set[int]:
        """Return the few lines that would be left out between these and those that are kept."""
        holes: set[int] = set()
        for start, end in spans(new):
            for edge, step in ((start, -1), (end, 1)):
                for far in range(2, HOLE + 2):
                    if edge + step * far in self._kept:
                        holes.update(range(edge + step, edge + step * far, step))
                        break
        return holes - new - self._kept


def _ranked(scores: Sequence[float], least: float) -> list[int]:
    return sorted(
        (index for index, score in enumerate(scores) if score and score >= least), key=lambda index: -scores[index]
    )


def chosen_within(
    blocks: Sequence[Block],
    scores: Sequence[float],
    protected: Protected,
    telling: Container[int],
    room: Characters,
) -> set[int]:
    """Return the lines to keep within some characters; `telling` has the lines with words of the question."""
    for line in sorted(protected.failing, key=lambda line: (protected.failing[line], line not in telling, line)):
        room.take((line,))
    for index in _ranked(scores, 0):
        if room.full:
            break
        block = blocks[index]
        own = range(block.start, block.end)
        if not room.take(_whole(block)) and not room.take(own):
            for line in sorted(own, key=lambda line: line not in telling):
                room.take((line,))
    for line in (*protected.around, *protected.details):
        room.take((line,))
    return room.kept


def _by_score(lines: Iterable[int], blocks: Sequence[Block], scores: Sequence[float]) -> list[int]:
    """Return the lines in the order of their blocks' scores."""
    starts = [block.start for block in blocks]
    return sorted(lines, key=lambda line: -scores[bisect_right(starts, line) - 1])


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: max(most - len(_CUT), 0)] + _CUT


class Characters:
    """Takes lines as long as they fit, with a gap before each stretch and one at the end."""

    def __init__(self, lines: Sequence[str], most: int, gap: int) -> None:
        self.kept: set[int] = set()
        self.lines = [_cut(line, most - 2 * (gap + 1) - 1) for line in lines]
        """The lines, those cut that wouldn't fit with a gap before and after them."""
        self._gap = gap + 1
        self._left = most - self._gap

    @property
    def full(self) -> bool:
        """Whether hardly another line would fit."""
        return self._left <= self._gap

    def take(self, lines: Iterable[int]) -> bool:
        """Take these lines if all of them fit."""
        new = set(lines) - self.kept
        stretches = sum(line - 1 not in self.kept and line - 1 not in new for line in new)
        cost = stretches * self._gap + sum(len(self.lines[line]) + 1 for line in new)
        if cost > self._left:
            return False
        self.kept |= new
        self._left -= cost
        return True
