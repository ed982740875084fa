"""The answers in tests/answers are those of agtrace, so a reviewer can read there what a turn looks like."""

from __future__ import annotations

from tests.snapshots import FOLDER, snapshots


def test_the_answers_that_a_reviewer_reads_are_those_that_agtrace_gives() -> None:
    """`make docs` writes them anew."""
    expected = dict(snapshots())
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in expected}
    for path, text in expected.items():
        assert path.read_text(encoding="utf-8") == text, f"run make docs: {path.name}"
