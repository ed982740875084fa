"""The benchmarks run and print their tables; what the figures are is nobody's condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main


def test_a_small_run_prints_the_tables_and_finds_what_a_scan_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["1", "--folder", str(tmp_path / "bench"), "--rounds", "1", "--only", "index", "--only", "search"])
    printed = capsys.readouterr().out
    for row in ("agtrace index", "limit: read", "search in process", "the same over MCP stdio", "agtrace search"):
        assert re.search(rf"^\| {row} .*[0-9]", printed, re.MULTILINE), row
    assert re.findall(r"(\d+) queries \(.+\): (\d+) differ", printed) == [("59", "0"), ("60", "0")]
    assert "Error:" not in printed
