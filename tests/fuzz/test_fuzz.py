"""Mutated logs, and the laws that hold for the index of any log."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import REAL_LOGS
from tests.depth import THOROUGH, depth
from tests.fuzz.judging import judge
from tests.fuzz.mutants import Mutant, mutant
from tests.fuzz.sources import authored, below
from tests.fuzz.ways import NAMES

pytestmark = pytest.mark.thorough

LOGS = 30
"""The number of mutants in a batch, which share an index."""


@pytest.mark.parametrize("way", NAMES)
@settings(max_examples=depth(1, 500), suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_no_mutation_of_a_log_breaks_a_law(way: str, seed: int) -> None:
    """Nothing raises or hangs, every line is accounted for, intact lines keep their texts, and any way to the index
    gives the same one."""
    random = Random(f"{way}/{seed}")
    sources = (*authored(), *(log for folder in REAL_LOGS for log in below(folder))) if THOROUGH else authored()
    assert judge([mutant(sources, random) for _ in range(LOGS)], random, [way]) == []


def test_a_log_of_which_a_line_never_reached_the_index_breaks_the_laws() -> None:
    source = next(source for source in authored() if not source.document and len(source.lines) > 8)
    made = Mutant(source, source.path, source.content)
    assert judge([made], Random(1)) == []
    missing = b"".join(line + b"\n" for line in [*source.lines[:4], *source.lines[5:]])
    broken = replace(made, compressed=missing)  # what is read isn't what it should hold
    assert {finding.law for finding in judge([broken], Random(1))} == {"counted", "kept"}
