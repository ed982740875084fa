"""Keeps the lines of a text that a question is about, without a model: `focus`.

A text is divided into blocks (`blocks.py`), which are compared with the question's words (`words.py`); of a large text
only parts are. The best are kept (`selection.py`), as are failures; what is left out is told. Diffs stay whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from agtrace_schema.patterns import later
from msgspec import Struct

from agtrace.text import failing_lines
from agtrace.text.focus.blocks import blocks, layout
from agtrace.text.focus.selection import (
    Characters,
    chosen,
    chosen_within,
    longest_gap,
    protected,
    scores,
    spans,
    widened,
    write_lines,
)
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
    failures = list(failing_lines.failing_lines_in(lines, examining=in_time))
    looked = [(0, len(lines))]
    if len(text) > LARGE or len(lines) > LONG:
        looked = looked_at(lines, words, [index for index, _ in failures])
    in_time()
    laid_out = layout(lines, looked)
    in_time()
    found = _word_hits(laid_out.bare, looked, words, in_time)
    divided = blocks(laid_out, looked, in_time)
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
    result = write_lines(stretches, lines, first)
    total = len(lines)
    saved = len(text) - len(result)
    if saved < LEAST_SAVED or saved < LEAST_SHARE_SAVED * len(text):
        return Unfocused("saves_too_little")
    numbers = tuple((first + start, first + end) for start, end in stretches)
    return Focused(result, numbers, sum(end - start + 1 for start, end in stretches), total)


def _word_hits(
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


# -- large texts: which parts are worth a closer look -----------------------------------------------

LARGE, LONG = 200_000, 6_000
"""A text with more characters, or with more lines, is looked at in part."""

MOST_LINES = 1500
"""About the most lines that are looked at closely, beside those with failures."""

AROUND, AROUND_FAILURES, ENDS = 8, 6, 30
"""The lines looked at before and after one with a word of the question, around a failure, and at both ends."""

MOST_FAILURES = 100
"""The failures around which lines are looked at: the first and the last."""

MOST_FOUND = 1500
"""Words are searched for, those of the question and the rarest first, as long as about so many lines have one."""

_SAMPLES, _OF_LINES = 20, 40
_SHORTEST = 3
_LONGEST_LINE = 2000


def looked_at(lines: Sequence[str], question: Question, failing: Sequence[int]) -> list[tuple[int, int]]:
    """Return the stretches of lines to look at; the second number is the line after. `failing` report failures."""
    forms = _rare(lines, question)
    found = list(failing_lines.lines_with(lines, tuple(forms)))
    looked = {*range(min(ENDS, len(lines))), *range(max(len(lines) - ENDS, 0), len(lines))}
    half = MOST_FAILURES // 2
    for line in {*failing[:half], *failing[-half:]}:
        looked.update(_around(line, AROUND_FAILURES, len(lines)))
    for line in _best(found, lines, forms):
        if len(looked) > MOST_LINES:
            break
        looked.update(_around(line, AROUND, len(lines)))
    return [(start, end + 1) for start, end in spans(looked)]


def _around(line: int, more: int, total: int) -> range:
    return range(max(line - more, 0), min(line + more + 1, total))


def _rare(lines: Sequence[str], question: Question) -> dict[str, int]:
    """Return the words of a question that few lines have, by a sample of them, with their weights."""
    step = max(len(lines) // _SAMPLES, _OF_LINES)
    sample = [line[:_LONGEST_LINE] for start in range(0, len(lines), step) for line in lines[start : start + _OF_LINES]]
    joined = "\n".join(sample).lower()
    exact = {term.form for term in question.terms}
    like = {form for term in question.terms for form in term.like} - exact
    rare: dict[str, int] = {}
    left = MOST_FOUND * len(sample) / max(len(lines), 1)
    for forms, weight in ((exact, 2), (like, 1)):
        counts = {form: joined.count(form) for form in sorted(forms) if len(form) >= _SHORTEST}
        for form in sorted(counts, key=counts.__getitem__):
            left -= counts[form]
            if left < 0 and rare:
                break
            rare[form] = weight
    return rare


def _best(found: Iterable[int], lines: Sequence[str], forms: Mapping[str, int]) -> list[int]:
    def lacking(line: int) -> int:
        text = lines[line][:_LONGEST_LINE].lower()
        return -sum(weight for form, weight in forms.items() if form in text)

    return sorted(found, key=lacking)


# -- diffs -----------------------------------------------------------------------------------------

_BEGUN = r"^(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*"
_PATTERN = (
    rf"(?m){_BEGUN}(?:@@+ (?:-\d+(?:,\d+)? )+\+\d+(?:,\d+)? @@"  # a hunk; of a merge with several parents
    r"|diff --(?:git|cc|combined) \S"
    r"|--- \S[^\n]*\n(?: *\d+[\t→])?(?:\x1b\[[\d;]*m)*\+\+\+ \S"
    r"|\*{15}$"
    r"|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\n[<>] )"
)
_DIFF = later(_PATTERN)
_MARKS = ("@@ -", "diff --", "+++ ", 15 * "*", "\n< ", "\n> ")
"""One of these is in every diff."""


def is_diff(text: str) -> bool:
    """Tell whether a text is a diff or contains one: unified, of a merge, with context, or plain."""
    return any(mark in text for mark in _MARKS) and _DIFF.search(text) is not None
