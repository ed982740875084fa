"""Who wrote each line of a text, given the edits that are known of it, oldest first.

The edits are undone, newest first, to find what the file was before them; then they are done again, and each line
remembers the edit that put it there. A line that an edit only repeats, as context or in a file written whole, keeps its
author. An edit whose text isn't there, because something else changed the file in between, is left out of that; at the
end, lines that nobody wrote are compared with what edits added, such ones first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from agtrace.health.facts.changes import tells
from agtrace.health.facts.edits import Edit, Replacement

_MOST_COMPARED = 4_000_000
"""Pairs of lines beyond which lines that are frequent don't begin a match, which is less exact and much faster."""

_LEAST_RUN = 2
"""Lines that must agree, one after the other, unless a single one is there but once."""

_MOST_PLACES = 20
"""Places that are tried to undo an edit."""

Author = int | None
"""The position of an edit among all that are known; None for a line that none of them wrote."""


class Run(NamedTuple):
    """Lines that two texts have in common."""

    one: int
    """The first of them in one text, counted from 0."""
    other: int
    size: int


def authors(present: Sequence[str], edits: Sequence[Edit], replayed: Sequence[bool]) -> list[Author]:
    """Return the author of each line; those edits that aren't to be replayed are of other copies of the file."""
    own = [number for number, edit in enumerate(edits) if replayed[number] and not edit.cell]
    before, kept = _before(present, [edits[number] for number in own])
    state = _State(before)
    done = {number for n, number in enumerate(own) if n not in kept and state.apply(edits[number], number)}
    found: list[Author] = [None] * len(present)
    for there, here, size in agreeing(state.lines, present):
        found[here : here + size] = state.authors[there : there + size]
    newest_first = sorted(range(len(edits)), key=lambda number: (number in done, -number))
    _by_text(present, edits, newest_first, found)
    return found


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends, whether these are LF or CRLF, as an editor numbers them."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


class _State:
    """A file at a moment of its history, with the author of each line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.authors: list[Author] = [None] * len(self.lines)

    def apply(self, edit: Edit, author: Author) -> bool:
        """Do an edit; return whether all of it could be done. What can be done, is."""
        if edit.deletes or edit.whole is not None:
            self._put(0, len(self.lines), lines_of(edit.whole or ""), author)
            return True
        done = [self._replace(part, author) for part in edit.replacements]
        return all(done)

    def _replace(self, part: Replacement, author: Author) -> bool:
        if not part.old:
            return self._insert(part, author)
        text = "\n".join(self.lines)
        places = list(_places(text, part.old, part))
        if not part.every:  # tools refuse a text that isn't unique: the others weren't there
            places = sorted(places, key=lambda place: not _is_whole(text, place, part.old))[:1]
        for place in reversed(places):  # from the end, as later ones move
            self._replace_at(text, place, part, author)
        return bool(places)

    def _replace_at(self, text: str, place: int, part: Replacement, author: Author) -> None:
        """Replace the text at a place of all lines, joined, and with it the lines that it is part of."""
        end = place + len(part.old)
        start, stop = text.rfind("\n", 0, place) + 1, text.find("\n", end)
        whole = text[start:place] + part.new + text[end : len(text) if stop < 0 else stop]
        after = whole.split("\n") if whole or not part.lines else []
        self._put(text.count("\n", 0, place), text.count("\n", 0, end) + 1, after, author)

    def undo(self, part: Replacement) -> bool:
        """Undo a replacement where its text is; if at several places, where it can have been made. Return whether."""
        undone = _undone(part)
        text = "\n".join(self.lines)
        places = list(islice(_places(text, undone.old, undone), _MOST_PLACES))
        if part.every or not part.old:
            return self._replace(undone, None)
        for place in places:
            before = f"{text[:place]}{undone.new}{text[place + len(undone.old) :]}"
            if len(places) == 1 or before.count(part.old) == 1:  # tools refuse a text that isn't unique
                self._replace_at(text, place, undone, None)
                return True
        return False

    def _insert(self, part: Replacement, author: Author) -> bool:
        new = lines_of(part.new)
        place = len(self.lines)
        if isinstance(part.after, int):
            place = min(max(part.after, 0), place)
        elif part.after is not None:
            stripped = [line.strip() for line in self.lines]
            if part.after not in stripped:
                return False
            place = stripped.index(part.after) + 1
        self._put(place, place, new, author)
        return True

    def _put(self, first: int, end: int, new: Sequence[str], author: Author) -> None:
        """Replace some lines; those that stay the same keep their authors."""
        by: list[Author] = [author] * len(new)
        for old, now, size in agreeing(self.lines[first:end], new):
            by[now : now + size] = self.authors[first + old : first + old + size]
        self.lines[first:end], self.authors[first:end] = new, by


def _places(text: str, sought: str, part: Replacement) -> Iterator[int]:
    """Yield where a text is, without overlaps; whole lines only where lines begin and end."""
    at = text.find(sought)
    while at >= 0:
        if not part.lines or _is_whole(text, at, sought):
            yield at
            at = text.find(sought, at + len(sought))
        else:
            at = text.find(sought, at + 1)


def _is_whole(text: str, place: int, sought: str) -> bool:
    """Whether a text at this place of another one begins and ends with lines."""
    end = place + len(sought)
    return (place == 0 or text[place - 1] == "\n") and (end == len(text) or text[end] == "\n")


def _before(present: Sequence[str], edits: Sequence[Edit]) -> tuple[list[str], set[int]]:
    """Return the lines that a file had before its first edit, and the edits that are still in them.

    What was there before a file was written whole isn't known, and taken to be the same.
    """
    whole = next((number for number, edit in enumerate(edits) if edit.whole is not None), len(edits))
    if whole == 0 and edits:
        return [], set()
    state, kept = _State(present), set()
    for number, edit in reversed(list(enumerate(edits))):
        if edit.whole is not None:
            state = _State(lines_of(edit.whole))
            continue
        undone = [state.undo(part) for part in reversed(edit.replacements) if part.new]
        if number < whole and not all(undone):
            kept.add(number)
    return state.lines, kept


def _undone(part: Replacement) -> Replacement:
    new = part.new if part.old else part.new.removesuffix("\n")
    return Replacement(new, part.old, lines=part.lines or not part.old, every=part.every)


def agreeing(one: Sequence[str], other: Sequence[str]) -> Iterator[Run]:
    """Yield runs of lines that two texts have in common, in order.

    Lines that each text has but once are matched first, and the others between them ("patience diff", by Bram Cohen):
    brackets and blank lines, which are everywhere, don't decide what belongs together.
    """
    most = min(len(one), len(other))
    begin = next((n for n in range(most) if one[n] != other[n]), most)
    end = next((n for n in range(most - begin) if one[-1 - n] != other[-1 - n]), most - begin)
    if begin:
        yield Run(0, 0, begin)
    here, there = begin, begin
    for n, m in [*_anchors(one, other, begin, end), (len(one) - end, len(other) - end)]:
        yield from _between(one, other, Run(here, there, 0), (n, m))
        if n < len(one) - end:
            yield Run(n, m, 1)
        here, there = n + 1, m + 1
    if end:
        yield Run(len(one) - end, len(other) - end, end)


def _anchors(one: Sequence[str], other: Sequence[str], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the longest series of lines that each text has but once, in the same order in both: where in each."""
    first, second = one[begin : len(one) - end], other[begin : len(other) - end]
    counts, others = Counter(first), Counter(second)
    places = {line: place for place, line in enumerate(second, begin) if others[line] == 1}
    pairs = [
        (n, places[line]) for n, line in enumerate(first, begin) if counts[line] == 1 and line in places and tells(line)
    ]
    tails: list[int] = []  # the smallest end of an increasing series of each length, and the pair that it ends with
    ends: list[int] = []
    behind: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        behind.append(ends[length - 1] if length else -1)
        tails[length : length + 1], ends[length : length + 1] = [place], [number]
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = behind[at]
    return found[::-1]


def _between(one: Sequence[str], other: Sequence[str], begin: Run, end: tuple[int, int]) -> Iterator[Run]:
    """Yield the runs in common between two places of both texts."""
    first, second = one[begin.one : end[0]], other[begin.other : end[1]]
    if not first or not second:
        return
    rough = len(first) * len(second) > _MOST_COMPARED
    for here, there, size in SequenceMatcher(None, first, second, autojunk=rough).get_matching_blocks():
        if size:
            yield Run(begin.one + here, begin.other + there, size)


def _by_text(present: Sequence[str], edits: Sequence[Edit], in_order: Sequence[int], found: list[Author]) -> None:
    """Give lines without an author to the first of the edits that added the same lines."""
    times = Counter(present)
    for number in in_order:
        if None not in found:
            return
        for new, is_added in _added(edits[number]):
            for here, there, size in agreeing(present, new):
                run = [line for line in new[there : there + size] if tells(line)]
                if not run or (size < _LEAST_RUN and times[run[0]] > 1):
                    continue
                for offset in range(size):
                    if found[here + offset] is None and is_added[there + offset]:
                        found[here + offset] = number


def _added(edit: Edit) -> Iterator[tuple[list[str], list[bool]]]:
    """Yield the texts that an edit puts in, as lines, with whether each is new."""
    parts = edit.replacements if edit.whole is None else (Replacement("", edit.whole),)
    for part in parts:
        new = lines_of(part.new)
        is_new = [True] * len(new)
        for _, now, size in agreeing(lines_of(part.old) if part.old else [], new):
            is_new[now : now + size] = [False] * size
        yield new, is_new
