"""Long tests take turns, and none is left out for ever (`long_tests.py`)."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.documents import ROOT
from tests.long_tests import PARTS, listed, part_of

ENTRIES = listed()


def test_every_long_test_has_its_turn_and_the_parts_take_alike() -> None:
    taken: dict[int, float] = defaultdict(float)
    for seconds, test in ENTRIES:
        part = part_of(test)
        assert part is not None
        taken[part] += seconds
    assert set(taken) == set(range(1, PARTS + 1))
    assert max(taken.values()) < 1.2 * min(taken.values())


def test_all_cases_of_a_long_test_have_their_turn_together() -> None:
    name = next(test for _, test in ENTRIES if "::" in test)
    assert part_of(f"{name}[one]") == part_of(f"{name}[two]") == part_of(name)


def test_a_short_test_is_run_always() -> None:
    assert part_of("tests/test_long_tests.py::test_a_short_test_is_run_always") is None


@pytest.mark.parametrize("test", [test for _, test in ENTRIES])
def test_what_is_listed_exists(test: str) -> None:
    file, _, function = test.partition("::")
    name = function.rpartition("::")[2]
    assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
