"""The patterns for lines that report failures take linear time, whatever a line repeats: none holds up the server."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import chain

import pytest

from agtrace.text.failing_lines import LOOKED_AT, RULES, Rule
from tests.agtrace.test_failures import ERRORS, FAILED_TESTS, VERDICTS

SLOW = 0.02
"""The seconds of CPU that nothing linear takes for a line of LOOKED_AT characters, by far."""

PUMPS = 60
"""The lines that are made for a rule."""

EXAMPLES = (
    *(line for _, line, _ in FAILED_TESTS),
    *(line for _, line, _ in VERDICTS),
    *ERRORS,
    "Failed 3/10 test programs. 1/30 subtests failed.",
    "2026-11-20T10:00:00.123Z ##[error]The process failed",
    "<tool_use_error>No such tool</tool_use_error>",
    "tide.o: in function `ebb': undefined reference to `flow'",
    "./spec/tide_spec.rb:12:in `ebb' (Tide::EbbError)",
    "tests/test_tide.py:12: EbbError",
    "bash: line 1:  4711 Segmentation fault (core dumped)",
)
PIECES = ("1 ", "11 ", "1", "a ", "a", "a.", ".", " > a", " ", "  ─", "::a", "(", "(1,1", "1 failed, ", "- ", ":1: ")
HOSTILE = (
    "Tests: " + "11 " * 60 + "xfailed",
    "Tests: " + "1 " * 60 + " failed",
    "html" + " > div" * 60 + " failed",
    "." * 1990 + " <<<",
    "  1) [b] › " + "a" + " " * 1980 + "a",
    "1 failed in 1s" + " " * 1980 + "=x",
    "1 error, " * 220 + "x",
    "FAILED (errors=" + "1" * 1980,
    "not ok" + " " * 1000 + "x" * 980 + " # todo",
    "not ok " + "1" * 1980 + " # todo",
    "line 1:" + " " * 1980 + "x",
)
"""Lines for which patterns were exponential or quadratic."""


def slow(rule: Rule, line: str) -> bool:
    """Return whether a pattern takes too long for a line, thrice in a row."""
    return all(_seconds(rule, line) > SLOW for _ in range(3))


def _seconds(rule: Rule, line: str) -> float:
    begun = time.thread_time()
    rule.pattern.match(line)
    return time.thread_time() - begun


def growing(begin: str, piece: str, end: str) -> Iterator[str]:
    """Yield lines with more and more of a piece: of exponential time is seen enough before it takes for ever."""
    most = (LOOKED_AT - len(begin) - len(end)) // len(piece)
    for times in chain(range(2, min(most, 32), 2), (most,)):
        yield begin + piece * times + end


def pumped(rule: Rule, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield the beginnings of examples for a rule, something to repeat after them, and an end."""
    examples = [line for line in EXAMPLES if rule.pattern.match(line)]
    for _ in range(PUMPS):
        line = chance.choice(examples)
        at = chance.randint(0, len(line))
        own = line[chance.randint(0, at) : at]
        yield line[:at], chance.choice((*PIECES, own or " ")), chance.choice(("", "\x01", line[at:] + "\x01"))


@pytest.mark.parametrize("number", range(len(RULES)))
def test_a_pattern_is_linear(number: int) -> None:
    for pump in pumped(RULES[number], random.Random(number)):
        assert not any(slow(RULES[number], line) for line in growing(*pump)), pump


@pytest.mark.parametrize("line", HOSTILE, ids=[line[:12] for line in HOSTILE])
def test_a_line_made_to_be_slow_is_not(line: str) -> None:
    for rule in RULES:
        assert not slow(rule, line), rule.pattern.pattern
