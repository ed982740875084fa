"""A few seconds of stress."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.__main__ import main


def test_everything_asked_at_once_while_the_index_is_examined_is_answered_as_when_nothing_else_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m tests.stress` is the same over a large index, twenty times."""
    code = main(["--runs", "1", "--megabytes", "2", "--seconds", "1", "--folder", str(tmp_path / "stress")])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert printed.endswith("1 runs, nothing is off\n")
