"""A question put to a text in an answer: the lines that it is about, in so many bytes, or why there are none.

Texts in answers are focused by the built-in pruner only, whatever service the settings name, and after redaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from agtrace_schema.answers import Pruning
from agtrace_schema.model import dump

from agtrace.settings.limits import limits
from agtrace.text.chunking import escaped_size, line_count
from agtrace.text.focus import Focused, Unfocused, focus
from agtrace.text.focus.selection import gap

MOST_CHARS = 4_194_304
"""The most characters of a text, or of the texts of a page, that are looked through: a second's work."""

_SECONDS = 2.0
"""Of the processor, so that the same question has the same answer on a busy machine."""

_SMALL = 3
"""A text up to so many times the room is asked for what suits the question; of a longer one the best fills the room."""

_TRIES = 4
_LEAST_CHARS = 8


def refused(chars: int) -> Pruning | None:
    """Return why texts of so many characters aren't looked at; None if they may be."""
    pruner = limits().settings.pruner
    if not pruner.enabled or pruner.endpoint == "none" or not limits().protected:
        return Pruning(reason="disabled_or_unconfigured")
    if chars > MOST_CHARS:
        return Pruning(reason="input_too_large", summary=f"more than {MOST_CHARS:,} characters")
    return None


def focused(
    text: str, question: str, most: int, *, first_line: int = 1, size: Callable[[str], int] = escaped_size
) -> Focused | Pruning:
    """Return the lines of a redacted text that a question is about, or why not.

    They take at most `most` as `size` measures, by default bytes as JSON.
    """
    why = refused(len(text))
    if why is not None:
        return why
    chars = most * len(text) // max(size(text), 1)
    room = None if len(text) <= _SMALL * chars else chars
    for _ in range(_TRIES):
        result = focus(text, question, first_line=first_line, most_chars=room, clock=time.thread_time, seconds=_SECONDS)
        if isinstance(result, Unfocused):
            if result.reason == "too_slow":
                return Pruning(attempted=True, fallback=True, error="timeout", summary="the text takes too long")
            return Pruning(attempted=True, reason="not_prunable", summary=result.reason.replace("_", " "))
        if not gaps(result, first_line):
            return Pruning(attempted=True, reason="not_prunable", summary="its lines are too long")
        taken = size(result.text)
        if taken <= most:
            return result
        fits = len(result.text) * most // taken
        room = max(fits if room is None else min(fits, room * 9 // 10), _LEAST_CHARS)
    return nothing(text, first_line)


def nothing(text: str, first_line: int = 1) -> Focused:
    """Return a text of which no line has room."""
    total = line_count(text)
    return Focused(gap(first_line, first_line + total - 1), (), 0, total)


def applied(kept_lines: int, total_lines: int) -> dict[str, Any]:
    """Return what an answer says of a text that was focused."""
    return dump(Pruning(attempted=True, applied=True, kept_lines=kept_lines, total_lines=total_lines))


def gaps(found: Focused, first_line: int = 1) -> list[tuple[int, int]]:
    """Return the stretches of lines that were left out."""
    last = first_line + found.total_lines - 1
    ends = [first_line, *(end + 1 for _, end in found.kept)]
    begins = [*(start - 1 for start, _ in found.kept), last]
    return [(start, end) for start, end in zip(ends, begins, strict=True) if start <= end]


def cut_lines(found: Focused, lines: Sequence[str], first_line: int = 1) -> list[str]:
    """Return which of the lines kept of a text are shown in part, and how much of each."""
    shown, told, before = iter(found.text.split("\n")), [], first_line - 1
    for start, end in found.kept:
        if start > before + 1:
            next(shown)
        before = end
        for number in range(start, end + 1):
            part, whole = next(shown), lines[number - first_line]
            if part != whole:
                told.append(f"line {number}: {len(part)} of {len(whole)} chars")
    return told
