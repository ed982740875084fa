"""Parts of long texts: those that say most of what was asked for, on one line, whole sentences where possible."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agtrace_indexer.redact import redact
from agtrace_schema.patterns import later

from agtrace.text.lines import without_controls

LOOKED_AT = 40_000
"""Characters of a text in which the best part is looked for."""

LONGEST = 500
"""The most characters of a text in an answer that wasn't asked for as such (R-008)."""

_LITTLE = 1.25
"""A text that is longer only by so much is shown whole: what is cut off is often the point."""

_TWO = 400
"""From so many characters on there is room for a second part, with words that the first one lacks."""

_FIRST_OF_TWO = 0.6
_RARE = 8
"""A word that a text has at most so often is worth a second part."""

_SHORT, _SHORTEST = 5, 3
"""The length of a word up to which its stem lacks one letter instead of two, and the least length of a stem."""

_BEFORE, _ALIGNED = 0.2, 60
"""The share of a part that stands before its first word, and how many characters more may be, for a whole sentence."""

_ENDING = 0.85
"""A part ends with a sentence that ends behind this share of it."""

_SENTENCE = later(r"[.!?:;]['\"`*)]{0,3} |- (?=[A-Z*`\"])")
"""Where a sentence or a part of it begins."""

_END = later(r"[.!?]['\"`*)]{0,3} ")
"""Where a sentence ends."""


class _Place(NamedTuple):
    start: int
    """Where the first of its words stands."""
    words: frozenset[str]


def excerpt(text: str, words: Sequence[str], most: int) -> str:
    """Return at most so many characters of a text on one line, where most of the words stand; else its beginning.

    If there is much room and a rare word stands elsewhere, the line has two parts. Secrets are masked before cutting.
    """
    seen = " ".join(without_controls(redact(text[:LOOKED_AT])).split())
    if len(seen) <= max(min(most * _LITTLE, LONGEST), most):
        return seen
    found = list(stems_in(seen, words))
    parts = _two(found, most) if most >= _TWO else []
    return _joined(seen, [_bounds(seen, *part) for part in parts or [(_best_place(found, most).start, most)]])


def stems_in(text: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield where words of a text, or parts of a name such as `readFile`, begin with the stems of these."""
    stems = "|".join(re.escape(_stem(word)) for word in words if word)
    found = re.finditer(stems, text, re.IGNORECASE) if stems else iter(())
    return (match for match in found if _begins(text, match.start()))


def _stem(word: str) -> str:
    """Return what the forms of a word have in common, more or less."""
    return word[: max(len(word) - (2 if len(word) > _SHORT else 1), _SHORTEST)]


def _begins(text: str, at: int) -> bool:
    """Whether a word or a part of a name begins at a place; it does anywhere in scripts that don't divide words."""
    before, first = text[at - 1 : at], text[at]
    return not (before.isalnum() and first.isascii()) or (first.isupper() and not before.isupper())


def _best_place(found: Sequence[re.Match[str]], most: int) -> _Place:
    """Where a part of this length begins that holds the most different words; 0 where none stands."""
    within: deque[tuple[int, str]] = deque()
    held = Counter[str]()
    best = _Place(0, frozenset())
    for match in found:  # `within` is what the part that ends here can hold
        within.append((match.start(), match[0].casefold()))
        held[within[-1][1]] += 1
        while within[0][0] <= match.start() - most * 4 // 5:
            _, gone = within.popleft()
            held[gone] -= 1
            if not held[gone]:
                del held[gone]
        if len(held) > len(best.words):
            best = _Place(within[0][0], frozenset(held))
    return best


def _two(found: Sequence[re.Match[str]], most: int) -> list[tuple[int, int]]:
    """Where two parts begin, and how long they are, the second one with words that the first one lacks.

    Empty if there are no such words, or if they stand so near that one part holds them, too.
    """
    length = round(most * _FIRST_OF_TWO)
    best = _best_place(found, length)
    often = Counter(match[0].casefold() for match in found)
    lacked = [match for match in found if match[0].casefold() not in best.words and often[match[0].casefold()] <= _RARE]
    if not lacked:
        return []
    second = _best_place(lacked, most - length)
    if abs(second.start - best.start) < most * (1 - _BEFORE):
        return []
    return sorted([(best.start, length), (second.start, most - length)])


def _bounds(text: str, place: int, most: int) -> tuple[int, int]:
    """Return where a part begins and ends: with sentences if these do so nearby, else between words."""
    start = max(place - round(most * _BEFORE), 0)
    ends = [found.end() for found in _SENTENCE.finditer(text, max(start - _ALIGNED, 0), place)]
    if start:
        start = ends[-1] if ends else text.find(" ", start) + 1
    last = min(start + most, len(text))
    if last == len(text):
        return start, last
    whole = [found.end() - 1 for found in _END.finditer(text, start + round(most * _ENDING), last)]
    between = text.rfind(" ", start + most // 2, last)
    return start, whole[-1] if whole else between if between > 0 else last


def _joined(text: str, parts: Sequence[tuple[int, int]]) -> str:
    """Put parts of a text, in their order, on a line that shows where something is left out."""
    line, reached = "", 0
    for start, end in parts:
        start = max(start, reached)
        if start >= end:
            continue
        line += ("..." if start > reached else "") + (" " if line and start > reached else "") + text[start:end]
        reached = end
    return line + ("..." if reached < len(text) else "")
