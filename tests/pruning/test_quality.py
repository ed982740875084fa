"""The built-in pruner keeps what an answer needs (cases/README.md).

Each case has the same weight; all lines of a case that isn't pruned are kept, so its recall is 1 and its share kept
100 %. Diffs, which are never pruned, count for the recall, but not for the share kept.
"""

from __future__ import annotations

import pytest

from tests.pruning.evaluation import Pruned, faults, prune, quality, read_cases


@pytest.fixture(scope="module")
def pruned() -> list[Pruned]:
    return [prune(case) for case in read_cases()]


@pytest.mark.thorough
def test_most_required_lines_are_kept_with_few_others_and_no_failing_line_is_lost(pruned: list[Pruned]) -> None:
    """Mean recall of at least 0.85 at a mean share of at most 40 % of lines kept of all but diffs."""
    assert faults(pruned) == [], "\n" + quality(pruned)
