"""The built-in pruner keeps what an answer needs (cases/README.md).

Each case has the same weight; all lines of a case that isn't pruned are kept, so its recall is 1 and its share kept
100 %. Diffs, which are never pruned, count for the recall, but not for the share kept.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.pruning.evaluation import Pruned, faults, prune, quality, yardsticks
from tests.pruning.labelled import KINDS, LARGE, Case, large_cases, read_cases

CASES = read_cases()


@pytest.fixture(scope="module")
def pruned() -> list[Pruned]:
    return [prune(case) for case in CASES]


def test_most_required_lines_are_kept_with_few_others_and_no_failing_line_is_lost(pruned: list[Pruned]) -> None:
    """Mean recall of at least 0.85 at a mean share of at most 40 % of lines kept of all but diffs."""
    assert faults(pruned) == [], "\n" + quality(pruned) + "\n\n" + yardsticks(pruned)


def test_it_chooses_better_than_the_simple_ways(pruned: list[Pruned]) -> None:
    applied = [one for one in pruned if one.applied]
    ours = sum(one.recall for one in applied)
    for name in ("first lines", "BM25 by line"):
        assert ours > sum(one.yardstick(name) for one in applied), name


def test_there_are_cases_of_every_kind_and_some_without_a_word_in_common() -> None:
    kinds = Counter(case.kind for case in CASES)
    assert min(kinds[kind] for kind in KINDS) >= 8, kinds
    assert min(Counter(case.half for case in CASES).values()) >= 150
    assert 0.05 <= sum(not case.lexical for case in CASES) / len(CASES) <= 0.2


def test_cases_are_as_the_readme_says() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.kind in KINDS and case.question and case.required <= _not_blank(case), case.id
        assert 40 <= len(case.lines) <= 600 and len(case.text) > 1_500, case.id
        assert len(case.required) <= 20 or case.kind == "diff", case.id
        assert case.kind != "diff" or case.required == _not_blank(case), case.id


def test_large_cases_are_of_100_kb_and_at_least_forty() -> None:
    large = large_cases(CASES)
    assert len(large) >= 40
    assert all(LARGE - 2_000 < len(case.text) <= LARGE for case in large)


def _not_blank(case: Case) -> set[int]:
    return {number for number, line in enumerate(case.lines, 1) if line.strip()}
