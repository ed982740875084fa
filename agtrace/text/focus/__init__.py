"""Keeps the lines of a text that a question is about, without a model: `focus`.

A text is divided into blocks (`layout.py`, `blocks.py`), which are compared with the question's words (`words.py`,
`thesaurus.py`, `scoring.py`); of a large text only parts are (`large.py`). The best are kept (`selection.py`), as are
failures (`protected.py`); what is left out is told (`gaps.py`). Diffs stay whole (`diffs.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from agtrace.text import failing_lines
from agtrace.text.focus.blocks import blocks
from agtrace.text.focus.diffs import is_diff
from agtrace.text.focus.gaps import longest_gap, spans, widened, written
from agtrace.text.focus.large import LARGE, LONG, looked_at
from agtrace.text.focus.layout import layout
from agtrace.text.focus.protected import protected
from agtrace.text.focus.scoring import scores
from agtrace.text.focus.selection import Characters, chosen, chosen_within
from agtrace.text.focus.words import Finder, Question, identifiers

LEAST_SHARE_SAVED = 0.2
LEAST_SAVED = 1000
"""A text is left whole where less than this share, or fewer than these characters, would be saved."""

LEAST_ROOM = 200
"""The least `most_chars`; a smaller one counts as this."""

_AT_ONCE = 500

Reason = Literal["empty", "diff", "no_telling_words", "saves_too_little", "too_slow"]


class Focused(Struct, frozen=True):
    """What is kept of a text."""

    text: str
    """The kept lines in their order, each gap as one line `(N lines left out: A-B)`."""
    kept: tuple[tuple[int, int], ...]
    """The stretches of kept lines by number, inclusive; the text's first line has the number `first_line`."""
    kept_lines: int
    total_lines: int


class Unfocused(Struct, frozen=True):
    """Why a text is left as it is."""

    reason: Reason


class _TooSlow(Exception):
    """The time for a text is over."""


def focus(
    text: str,
    question: str,
    *,
    first_line: int = 1,
    most_chars: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    seconds: float = 0.2,
) -> Focused | Unfocused:
    """Keep the lines of a text that a question is about, and those that report failures.

    A line is what `text.split("\\n")` gives; a final newline makes no further line. Without `most_chars`, about 40 % of
    the lines are kept at most, beside those that report failures. With it, the result has at most that many characters
    (or LEAST_ROOM): failures come first, and a line is cut only if it wouldn't fit by itself.

    The text is left whole if that takes longer than these seconds by this clock.
    """
    ends = clock() + seconds

    def in_time() -> None:
        if clock() > ends:
            raise _TooSlow

    if not text.strip():
        return Unfocused("empty")
    if is_diff(text):
        return Unfocused("diff")
    try:
        return _focused(text, question, first_line, most_chars, in_time)
    except _TooSlow:
        return Unfocused("too_slow")


def _focused(
    text: str, question: str, first: int, most_chars: int | None, in_time: Callable[[], None]
) -> Focused | Unfocused:
    lines = text.removesuffix("\n").split("\n")
    words = Question.of(question)
    failures = list(failing_lines.found(lines, examining=in_time))
    looked = [(0, len(lines))]
    if len(text) > LARGE or len(lines) > LONG:
        looked = looked_at(lines, words, [index for index, _ in failures])
    in_time()
    laid_out = layout(lines, looked)
    in_time()
    found = _found(laid_out.bare, looked, words, in_time)
    divided = blocks(laid_out.bare, laid_out, in_time)
    scored = scores(divided, [sum(map(len, lines[one.start : one.end])) for one in divided], found, words)
    in_time()
    if not any(scored):
        return Unfocused("no_telling_words")
    kept_whatever = protected(lines, failures, looked)
    if most_chars is None:
        kept = chosen(divided, scored, kept_whatever, len(lines))
    else:
        room = Characters(lines, max(most_chars, LEAST_ROOM), longest_gap(first + len(lines) - 1))
        lines = room.lines
        kept = chosen_within(divided, scored, kept_whatever, found, room)
    in_time()
    stretches = widened(spans(kept), lines, first, single=most_chars is None)
    return _told(written(stretches, lines, first), stretches, text, first, len(lines))


def _told(result: str, kept: Sequence[tuple[int, int]], text: str, first: int, total: int) -> Focused | Unfocused:
    saved = len(text) - len(result)
    if saved < LEAST_SAVED or saved < LEAST_SHARE_SAVED * len(text):
        return Unfocused("saves_too_little")
    numbers = tuple((first + start, first + end) for start, end in kept)
    return Focused(result, numbers, sum(end - start + 1 for start, end in kept), total)


def _found(
    lines: Sequence[str], looked: Sequence[tuple[int, int]], words: Question, in_time: Callable[[], None]
) -> dict[int, list[int]]:
    """Return the numbers of the question's words in each of these lines that has any, in the order of the lines."""
    written: dict[int, list[str]] = {}
    for start, end in looked:
        for some in range(start, end, _AT_ONCE):
            written |= {line: identifiers(lines[line]) for line in range(some, min(some + _AT_ONCE, end))}
            in_time()
    telling = Finder(words).telling({identifier for some in written.values() for identifier in some})
    in_time()
    return {
        index: [number for identifier in some for number in telling.get(identifier, ())]
        for index, some in written.items()
        if not telling.keys().isdisjoint(some)
    }
