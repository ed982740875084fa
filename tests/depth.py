"""How deep the suite looks.

Where every pair of two long lists could be tried, a run tries a part in which each member of both has its turn; with
AGTRACE_THOROUGH=1 in the environment it tries all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = "AGTRACE_THOROUGH" in os.environ

_Of = TypeVar("_Of")


def part(everything: Sequence[_Of], number: int, every: int) -> Sequence[_Of]:
    """Return one of `every` parts of a sequence, which together are all of it; all of it in a thorough run."""
    return everything if THOROUGH else everything[number % every :: every]
