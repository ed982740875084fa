"""What the command measures is what it says: a text of six lines, of which the pruner is said to keep some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from agtrace.text.focus import Focused, Unfocused
from tests.pruning.evaluation import Pruned, faults, mean, percentile
from tests.pruning.labelled import Case, CaseError, read_cases
from tests.pruning.yardsticks import at_random, by_line, first, words

TEXT = "def load(path):\n    return read(path)\n\ndef save(path):\n    write(path)\nERROR: disk full\n"
CASE = Case("own", "a1", "python", "Where is the path saved?", TEXT, frozenset({4, 5}), True, "a test")


def pruned(*kept: tuple[int, int], text: str) -> Pruned:
    """Return the case as if these runs of lines were kept."""
    return Pruned(CASE, Focused(text, kept, sum(end - start + 1 for start, end in kept), 6), 1.0)


def test_recall_and_shares_are_of_required_lines_of_lines_and_of_characters() -> None:
    text = "def load(path):\n(2 lines left out: 2-3)\ndef save(path):\n(2 lines left out: 5-6)"
    one = pruned((1, 1), (4, 4), text=text)
    assert (one.recall, one.lost, one.lines_kept) == (0.5, {5}, 2 / 6)
    assert one.characters_kept == len(text) / len(TEXT)
    assert one.failing_lost == [6]
    assert "a1: line 6 reports a failure and is lost" in faults([one])


def test_all_is_kept_of_a_text_that_is_not_pruned() -> None:
    one = Pruned(CASE, Unfocused("no_telling_words"), 1.0)
    assert (one.recall, one.lines_kept, one.characters_kept, one.failing_lost) == (1, 1, 1, [])
    assert faults([one]) == ["100.0% of lines kept is above 40%"]


def test_an_answer_that_does_not_hold_what_it_says_it_keeps_is_a_fault() -> None:
    one = pruned((4, 6), text="def save(path):\n    write(path)")
    assert one.untrue() == "lines that are said to be kept aren't in the text: [6]"


def test_simple_ways_choose_as_many_lines_as_they_may() -> None:
    assert first(CASE, 2) == {1, 2}
    assert by_line(CASE, 1) == {5}, "the shortest line with the word"
    assert len(at_random(CASE, 3)) == 3 and at_random(CASE, 3) == at_random(CASE, 3)
    assert len(by_line(CASE, 99)) == len(first(CASE, 99)) == len(at_random(CASE, 99)) == 6
    assert words("maxBufferSize HTTPServer load_file2") == [
        "max",
        "buffer",
        "size",
        "http",
        "server",
        "load",
        "file",
        "2",
    ]


def test_means_and_percentiles_are_of_the_values() -> None:
    assert mean([1, 2, 6]) == 3
    assert [percentile(range(1, 101), share) for share in (0.5, 0.95, 1)] == [50, 95, 100]


def test_halves_are_read_plain_or_compressed_and_faults_of_a_case_are_told(tmp_path: Path) -> None:
    given = {"id": "b1", "kind": "prose", "question": "Why?", "text": "a\n\nc\n", "required": [3], "lexical": False}
    written = json.dumps({**given, "from": "a test"}).encode()
    (tmp_path / "blind.jsonl").write_bytes(written)
    other = written.replace(b'"b1"', b'"a1"')
    (tmp_path / "own.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(other))
    assert [(case.half, case.id) for case in read_cases(tmp_path)] == [("blind", "b1"), ("own", "a1")]
    for line, message in ((b"[2]", "blank lines"), (b"[4]", "no such lines"), (b"[]", "no line that is required")):
        (tmp_path / "blind.jsonl").write_bytes(written.replace(b"[3]", line))
        with pytest.raises(CaseError, match=message):
            read_cases(tmp_path)
    (tmp_path / "blind.jsonl").write_bytes(other)
    with pytest.raises(CaseError, match="more than one case"):
        read_cases(tmp_path)
