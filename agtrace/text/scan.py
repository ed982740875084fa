"""Finds the lines of a large text that match a pattern, with Rust's regex engine: linear, and many lines at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

AT_ONCE = 256
"""The lines that are tested together; if one of them may match, their halves are,"""

ONE_BY_ONE = 8
"""down to so many lines."""

_ENGINE = "pydantic_core"
_UNSEEN, _A_LINE = 20_000, 100
"""Characters for which a test holds unseen, and those that stand for the time that any line takes."""


def tester(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a text has a match; it also holds for a text that Rust can't read (lone surrogates).

    The pattern is compiled by the first test.
    """
    matches = cache(partial(_validator, pattern))
    return lambda text: matches()(text) or not readable(text)


def tester_of_much(pattern: str) -> Callable[[str], bool]:
    """Return such a test that, until the engine is loaded, holds for the first texts unseen, if they are short.

    For commands that look at a few lines: to load the engine takes longer than to look at what it would leave out.
    Threads may share it: at worst, some more texts pass unseen.
    """
    test, left = tester(pattern), [_UNSEEN]

    def may(text: str) -> bool:
        if left[0] <= 0 or _ENGINE in sys.modules:
            return test(text)
        left[0] -= len(text) + _A_LINE
        return True

    return may


def _validator(pattern: str) -> Callable[[str], bool]:
    from pydantic_core import SchemaValidator, core_schema  # takes a while, and few commands need it

    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    return SchemaValidator(schema).isinstance_python


def readable(text: str) -> bool:
    """Return whether Rust can read a text: it accepts no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def lines_with(lines: Sequence[str], test: Callable[[str], bool]) -> Iterator[int]:
    """Yield the numbers of the lines for which a test holds that holds for a text if it does for any of its lines."""
    for start in range(0, len(lines), AT_ONCE):
        yield from _within(lines, start, min(start + AT_ONCE, len(lines)), test)


def _within(lines: Sequence[str], start: int, end: int, test: Callable[[str], bool]) -> Iterator[int]:
    if end - start <= ONE_BY_ONE:
        yield from (line for line in range(start, end) if test(lines[line]))
        return
    if not test("\n".join(lines[start:end])):
        return
    middle = (start + end) // 2
    yield from _within(lines, start, middle, test)
    yield from _within(lines, middle, end, test)
