"""Where in a text a gate opens: found by halves, so that most of the text is looked at once or twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

_SMALL = 160
"""Characters below which halving costs more than it saves."""


class Window(NamedTuple):
    """A part of a text."""

    start: int
    end: int
    whole: bool
    """Whether it ends where a line does: what is found in it would go no further."""


def windows(text: str, gate: Callable[[str], bool], reach: int, *, in_lines: bool = True) -> list[Window]:
    """The parts of a text for which a gate opens, in their order and apart from each other.

    A part is a few lines, or where nothing can be told from lines, or a line is very long, the surroundings of what
    the gate found: `reach` characters are looked at behind where that begins.
    """
    found: list[Window] = []
    for window in _halves(text, gate, reach, in_lines, Window(0, len(text), True)):
        if found and window.start < found[-1].end:
            found[-1] = Window(found[-1].start, window.end, window.whole)
        else:
            found.append(window)
    return found


def _halves(text: str, gate: Callable[[str], bool], reach: int, in_lines: bool, window: Window) -> Iterator[Window]:
    start, end, whole = window
    if not gate(text[start:end] if end - start < len(text) else text):
        return
    middle = (start + end) // 2
    split = _line_end(text, start, middle, end) if in_lines and end - start > _SMALL else 0
    if split:
        yield from _halves(text, gate, reach, in_lines, Window(start, split - 1, True))
        yield from _halves(text, gate, reach, in_lines, Window(split, end, whole))
    elif end - start > 3 * reach:
        yield from _halves(text, gate, reach, in_lines, Window(start, middle + reach, False))
        yield from _halves(text, gate, reach, in_lines, Window(middle, end, whole))
    else:
        yield window


def _line_end(text: str, start: int, middle: int, end: int) -> int:
    """Where the line in the middle ends, or else begins; 0 where all is one line."""
    after = text.find("\n", middle, end - 1) + 1
    return after or text.rfind("\n", start, middle) + 1
