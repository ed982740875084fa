"""Tells which parts of a large text are worth a closer look: those around rare words of the question, and failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from agtrace.text.focus.gaps import spans
from agtrace.text.focus.words import Question
from agtrace.text.scan import lines_with, tester

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
    found = list(lines_with(lines, tester(f"(?i:{'|'.join(map(re.escape, forms))})"))) if forms else []
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
    exact = {form for term in question.terms for form in term.forms}
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
    """Return the lines with the most of these words first."""

    def lacking(line: int) -> int:
        text = lines[line][:_LONGEST_LINE].lower()
        return -sum(weight for form, weight in forms.items() if form in text)

    return sorted(found, key=lacking)
