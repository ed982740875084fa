"""A few hundred mutated logs and requests: the same laws as in the long run (`python -m tests.fuzz`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.campaign import batches, run
from tests.fuzz.conversation import converse
from tests.fuzz.judging import judge
from tests.fuzz.mutants import Mutant, mutant
from tests.fuzz.sources import Source, authored
from tests.fuzz.ways import NAMES

LOGS = 30
REQUESTS = 120


@pytest.mark.parametrize("way", NAMES)
def test_no_mutation_of_a_log_breaks_a_law(way: str) -> None:
    """Nothing raises or hangs, every line is accounted for, intact lines keep their texts, and any way to the index
    gives the same one; answers about it keep the contract."""
    random = Random(way)
    assert judge([mutant(authored(), random) for _ in range(LOGS)], random, [way], asked=10) == []


def test_no_mutation_of_a_request_breaks_a_law() -> None:
    """Each gets an answer within the contract or an error with a code, and the server lives on."""
    assert converse(Random("requests"), REQUESTS) == []


def lines(number: int) -> Source:
    """A log of many lines."""
    return [source for source in authored() if not source.document and len(source.lines) > 8][number]


def test_a_log_of_which_a_line_never_reached_the_index_breaks_the_laws() -> None:
    source = lines(0)
    made = Mutant(source, source.path, source.content)
    assert judge([made], Random(1)) == []
    missing = b"".join(line + b"\n" for line in [*source.lines[:4], *source.lines[5:]])
    broken = replace(made, compressed=missing)  # what is read isn't what it should hold
    assert {finding.law for finding in judge([broken], Random(1))} == {"counted", "kept"}


def test_a_long_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    said: list[str] = []
    wanted = [*batches("suite", 30, 0)]
    assert run(wanted, tmp_path, 1, said.append).total() == 0
    assert (len(said), len((tmp_path / "progress.jsonl").read_text().splitlines())) == (1, 1)
    run(wanted, tmp_path, 1, said.append)
    assert len(said) == 1, "nothing was left to do"
