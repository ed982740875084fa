"""How deep the suite looks.

Where every pair of two long lists could be tried, a run tries a part in which each member of both has its turn, and of
what is drawn at random it draws a part; with AGTRACE_THOROUGH=1 in the environment (`make thorough`) it tries all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = "AGTRACE_THOROUGH" in os.environ

SECOND = 1.0 if THOROUGH else 300.0
"""How long what ends within a second may take: in an ordinary run, beside other programs, it is only awaited."""

_Of = TypeVar("_Of")
_Number = TypeVar("_Number", int, float)


def part(everything: Sequence[_Of], number: int, every: int) -> Sequence[_Of]:
    """Return one of `every` parts of a sequence, which together are all of it; all of it in a thorough run."""
    return everything if THOROUGH else everything[number % every :: every]


def depth(usual: _Number, thorough: _Number) -> _Number:
    """Return how many of something a run tries: fewer usually, more in a thorough run."""
    return thorough if THOROUGH else usual


def examples(thorough: int) -> int:
    """Return how many examples Hypothesis draws for a law: a fifth of those of a thorough run, at least eight."""
    return depth(max(thorough // 5, min(thorough, 8)), thorough)
