"""Chooses the lines of a text that are kept: the blocks a question is about, and failures whatever the question.

Blocks are scored with BM25, what stands above a block counting as well; kept whatever the question are failures with
their frames, verdicts, and both ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import log

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.text.failing_lines import Failing
from agtrace.text.focus.blocks import Block
from agtrace.text.focus.words import Question

# -- scores ----------------------------------------------------------------------------------------

SATURATION = 1.2
LENGTH_MATTERS = 0.3
"""k1 and b of BM25."""

IN_HEADER = 0.5
"""What a word counts in a line above a block."""

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
    above = {
        block.about: {number for line in block.about for number in found.get(line, ())}
        for block in blocks
        if block.about
    }
    average = sum(lengths) / max(len(lengths), 1) or 1
    plain = [0.0] * len(blocks)
    for index, block in enumerate(blocks):
        count, inherited = counts.get(index), above.get(block.about)
        if count or inherited:
            plain[index] = _score(count or {}, inherited or (), lengths[index] / average, weights)
    return _nearby(blocks, _spread(blocks, plain))


def _counts(blocks: Sequence[Block], found: Mapping[int, Sequence[int]]) -> dict[int, Counter[int]]:
    """Count the words in the blocks that have any, by the number of the block; `found` is in the order of the lines."""
    counts: dict[int, Counter[int]] = {}
    at = 0
    for line, numbers in found.items():
        while blocks[at].end <= line:
            at += 1
        count = counts.setdefault(at, Counter())
        count.update(numbers)
    return counts


def _score(counts: Mapping[int, float], above: Collection[int], length: float, weights: Mapping[int, float]) -> float:
    slack = SATURATION * (1 - LENGTH_MATTERS + LENGTH_MATTERS * min(length, 4))
    score = 0.0
    for number in sorted({*counts, *above}):
        count = counts.get(number, 0) + (IN_HEADER if number in above else 0)
        score += weights.get(number, 0) * count * (SATURATION + 1) / (count + slack)
    return score


def _spread(blocks: Sequence[Block], plain: Sequence[float]) -> list[float]:
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


# -- lines that are kept whatever the question ----------------------------------------------------

FIRST, LAST = 2, 4
"""The lines kept at both ends of an output."""

MOST_DETAILS = 6
"""The lines kept after a line with a failure that belong to it."""

FIRST_FRAMES, LAST_FRAMES = 7, 14
"""The lines kept of a traceback."""

MOST_VERDICTS = 12

_TRACEBACK = later(r"\W*Traceback \(most recent call last\):")
_LONGEST_TRACEBACK = 1000
_BELONGS = later(r"\s+(?:at |-->|\||\d+ +\||\^|\.{3} \d+ more|File \")|\tat |E  |> |\s*\^|Caused by: |\s+raise ")
_VERDICT = later(
    r"[=\s]*\d+ (?:passed|passing|tests? passed)\b|test result: |Tests?:? +\d+ passed|BUILD SUCCESS|Ran \d+ tests? in"
    r"|Found 0 errors|Success: no issues|All checks passed|\s*OK$|ok +\t|Finished `?\w+|\[INFO\] BUILD|PASS$"
    r"|Successfully |exit code:? \d|Process exited"
)


_LOGGED = later(
    r"\W*(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\b|time=|\w{3} [ \d]\d \d\d:)"
)
_SAMPLE = 200


class Protected(Struct, frozen=True):
    """Lines by how certainly they are kept."""

    failing: dict[int, int]
    """The lines that report a failure, each with its rank: 0 a verdict, 1 a failed test, 2 an error."""
    around: list[int]
    """Verdicts of what went well, both ends: kept as far as there is room, in this order."""
    details: list[int]
    """Frames, and what else belongs to failures: those of failures that the question is about come first."""


_RANKS = {"verdict": 0, "test": 1, "error": 2}


def protected(
    lines: Sequence[str], failures: Sequence[tuple[int, Failing]], looked: Sequence[tuple[int, int]]
) -> Protected:
    """Return the protected lines of an output, given the failures in it, and the stretches to find others in."""
    failing = {index: _RANKS[told.kind] for index, told in failures if told.kind != "detail"}
    details = [index for index, told in failures if told.kind == "detail"]
    verdicts: list[int] = []
    tracebacks: list[int] = []
    for start, end in looked:
        for index in range(start, end):
            line = lines[index][:200]
            if "Traceback" in line and _TRACEBACK.match(line):
                tracebacks.append(index)
            elif index not in failing and _VERDICT.match(line):
                verdicts.append(index)
    frames = [line for index in tracebacks for line in _frames(index, lines, failing)]
    after = [line for index in failing for line in _after(index, lines)]
    ends = (
        [*range(len(lines) - 1, max(len(lines) - 1 - LAST, -1), -1), *range(min(FIRST, len(lines)))]
        if failing or verdicts or _is_log(lines)
        else []
    )
    return Protected(failing, [*verdicts[-MOST_VERDICTS:], *ends], [*frames, *details, *after])


def _is_log(lines: Sequence[str]) -> bool:
    sample = lines[:_SAMPLE]
    return sum(_LOGGED.match(line[:100]) is not None for line in sample) * 2 > len(sample)


def _frames(index: int, lines: Sequence[str], failing: dict[int, int]) -> list[int]:
    indented = index + 1
    last = min(index + _LONGEST_TRACEBACK, len(lines))
    while indented < last and indented not in failing and "Traceback (" not in lines[indented]:
        indented += 1
    whole = list(range(index, indented))
    return whole if len(whole) <= FIRST_FRAMES + LAST_FRAMES else whole[:FIRST_FRAMES] + whole[-LAST_FRAMES:]


def _after(index: int, lines: Sequence[str]) -> Iterator[int]:
    for line in range(index + 1, min(index + 1 + MOST_DETAILS, len(lines))):
        if not _BELONGS.match(lines[line][:200]):
            return
        yield line


# -- the choice -----------------------------------------------------------------------------------

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
    result = set(protected.failing)
    room = _Room(result, min(int(total * FOR_PROTECTED), MOST_LINES))
    starts = [block.start for block in blocks]
    details = sorted(protected.details, key=lambda line: -scores[bisect_right(starts, line) - 1])
    for line in (*protected.around, *details):
        room.take((line,))
    best = max(scores, default=0)
    ranked = _ranked(scores, best * OF_BEST_TO_FILL)
    result.update(_whole(blocks[ranked[0]]) if ranked else ())
    room = _Room(result, min(int(total * MOST_KEPT), MOST_LINES) - (len(result) - len(protected.failing)))
    for index in ranked:
        if scores[index] >= best * OF_BEST:
            room.take(_whole(blocks[index]))
    sure = min(max((best - UNSURE) / (SURE - UNSURE), 0), 1)
    room = _Room(
        result,
        min(min(int(total * (FILLED + (FILLED_IF_SURE - FILLED) * sure)), MOST_LINES) - len(result), MOST_FILLED),
    )
    for index in ranked:
        room.take(_whole(blocks[index]))
    return result


def _whole(block: Block) -> tuple[int, ...]:
    return (*block.headers, *range(block.start, block.end))


class _Room:
    """Takes lines until there are as many as there may be, with those that would be left out alone between them."""

    def __init__(self, kept: set[int], most: int) -> None:
        self._kept = kept
        self._left = most

    def take(self, lines: Iterable[int]) -> None:
        new = set(lines) - self._kept
        holes: set[int] = set()
        for start, end in spans(new):
            for edge, step in ((start, -1), (end, 1)):
                for far in range(2, HOLE + 2):
                    if edge + step * far in self._kept:
                        holes.update(range(edge + step, edge + step * far, step))
                        break
        new |= holes - new - self._kept
        if len(new) <= self._left:
            self._kept |= new
            self._left -= len(new)


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


# -- what is written ------------------------------------------------------------------------------


def gap(first: int, last: int) -> str:
    """Return the line that stands for those left out, given the numbers of the first and the last of them."""
    return f"({last - first + 1} lines left out: {first}-{last})"


def longest_gap(last: int) -> int:
    """Return the most characters of a gap in a text whose last line has this number."""
    return len(gap(last, last)) + len(str(last))


def spans(kept: Iterable[int]) -> list[tuple[int, int]]:
    """Return the stretches of these lines, inclusive."""
    result: list[tuple[int, int]] = []
    for line in sorted(kept):
        if result and result[-1][1] == line - 1:
            result[-1] = (result[-1][0], line)
        else:
            result.append((line, line))
    return result


def widened(runs: list[tuple[int, int]], lines: Sequence[str], first: int, *, single: bool) -> list[tuple[int, int]]:
    """Add lines that cost no more than the gap that stood for them; with `single`, each that is left out alone."""
    ends = [(-1, -1), *runs, (len(lines), len(lines))]
    more = [
        range(before + 1, after)
        for (_, before), (after, _) in pairwise(ends)
        if after - before > 1 and not _worth(lines, before + 1, after - 1, first, single)
    ]
    if not more:
        return runs
    return spans(
        {line for start, end in runs for line in range(start, end + 1)} | {line for one in more for line in one}
    )


def _worth(lines: Sequence[str], start: int, end: int, first: int, single: bool) -> bool:
    if single and start == end:
        return False
    size = len(gap(first + start, first + end))
    return sum(len(lines[line]) + 1 for line in range(start, min(end + 1, start + size))) - 1 > size


def write_lines(kept: Sequence[tuple[int, int]], lines: Sequence[str], first: int) -> str:
    """Write the kept lines, each gap as a line; the first line of the text has the number `first`."""
    ends = [(-1, -1), *kept, (len(lines), len(lines))]
    pieces: list[str] = []
    for (_, before), (start, end) in pairwise(ends):
        if start - before > 1:
            pieces.append(gap(first + before + 1, first + start - 1))
        pieces += lines[start : end + 1]
    return "\n".join(pieces)
