"""How much each block of a text has to do with a question: BM25, with what stands above a block counted as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log

from agtrace.text.focus.blocks import Block
from agtrace.text.focus.words import Question

SATURATION = 1.2
LENGTH_MATTERS = 0.3
"""k1 and b of BM25."""

IN_HEADER = 0.5
"""What a word counts in a line above a block."""

IN_FIRST_LINE = 1.3
"""What a word counts in the first line of a block of several lines."""

COMMON = 0.6
"""A word in more than this share of the blocks doesn't tell them apart."""

NEXT_LINE, LINE_AFTER = 0.6, 0.45
"""What a line of a longer stretch gets of the scores of those around it."""

NEXT_BLOCK = 0.15

NEARBY, HALVED = 0.3, 8
"""The share of a score that the blocks around have if it is larger than theirs; halved after each so many lines."""

ELSEWHERE = 0.5
"""The share that goes on to a block with other lines above it."""


def scores(
    blocks: Sequence[Block], lengths: Sequence[int], found: Mapping[int, Sequence[int]], question: Question
) -> list[float]:
    """Return the score of each block: 0 where no word of the question tells it from others.

    `lengths` are the characters of each block; `found` has the numbers of the question's words for the lines with some.
    """
    counts = _counts(blocks, found)
    own = Counter(number for count in counts.values() for number in count)
    weights = {
        number: question.weight(number) * log(1 + (len(blocks) - count + 0.5) / (count + 0.5))
        for number, count in own.items()
        if count <= COMMON * len(blocks)
    }
    above = {block.about: _above(block.about, found) for block in blocks if block.about}
    average = sum(lengths) / max(len(lengths), 1) or 1
    plain = [0.0] * len(blocks)
    for index, block in enumerate(blocks):
        count, inherited = counts.get(index), above.get(block.about)
        if count or inherited:
            plain[index] = _score(count or {}, inherited or (), lengths[index] / average, weights)
    return _nearby(blocks, _spread(blocks, plain))


def _counts(blocks: Sequence[Block], found: Mapping[int, Sequence[int]]) -> dict[int, dict[int, float]]:
    """Count the words in the blocks that have any, by the number of the block; `found` is in the order of the lines."""
    counts: dict[int, dict[int, float]] = {}
    at = 0
    for line, numbers in found.items():
        while blocks[at].end <= line:
            at += 1
        block, count = blocks[at], counts.setdefault(at, {})
        each = IN_FIRST_LINE if line == block.start and block.end - line > 1 else 1
        for number in numbers:
            count[number] = count.get(number, 0) + each
    return counts


def _above(lines: Sequence[int], found: Mapping[int, Sequence[int]]) -> set[int]:
    return {number for line in lines for number in found.get(line, ())}


def _score(counts: Mapping[int, float], above: Collection[int], length: float, weights: Mapping[int, float]) -> float:
    slack = SATURATION * (1 - LENGTH_MATTERS + LENGTH_MATTERS * min(length, 4))
    score = 0.0
    for number in sorted({*counts, *above}):
        count = counts.get(number, 0) + (IN_HEADER if number in above else 0)
        score += weights.get(number, 0) * count * (SATURATION + 1) / (count + slack)
    return score


def _spread(blocks: Sequence[Block], plain: Sequence[float]) -> list[float]:
    """Let blocks gain from those around them that have the same headers."""
    spread = list(plain)
    for index, score in enumerate(plain):
        if not score:
            continue
        for distance, share in ((-2, LINE_AFTER), (-1, NEXT_LINE), (1, NEXT_LINE), (2, LINE_AFTER)):
            other = index + distance
            if not 0 <= other < len(blocks) or blocks[other].headers != blocks[index].headers:
                continue
            if blocks[index].loose and blocks[other].loose:
                spread[other] = max(spread[other], score * share)
            elif abs(distance) == 1:
                spread[other] += NEXT_BLOCK * score
    return spread


def _nearby(blocks: Sequence[Block], scores: Sequence[float]) -> list[float]:
    """Let what stands near a block that fits be worth more than what stands far from any."""
    near = list(scores)
    forth = range(len(blocks))
    for order in (forth, reversed(forth)):
        carried, before = 0.0, None
        for index in order:
            block = blocks[index]
            if carried and before is not None:
                carried *= ELSEWHERE if block.headers != before.headers else 1
                near[index] = max(near[index], carried)
            carried = max(carried, NEARBY * scores[index]) * 0.5 ** ((block.end - block.start) / HALVED)
            before = block
    return near
