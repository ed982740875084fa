"""The benchmarks run and print their tables; what the figures are is nobody's condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import engines, redaction
from benchmarks.__main__ import main

SAMPLES = str(Path(__file__).parents[1] / "sample_sessions")


def test_a_small_run_prints_the_tables_and_finds_what_a_scan_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["1", "--folder", str(tmp_path / "bench"), "--rounds", "1", "--only", "index", "--only", "search"])
    printed = capsys.readouterr().out
    for row in ("agtrace index", "limit: read", "search in process", "the same over MCP stdio", "agtrace search"):
        assert re.search(rf"^\| {row} .*[0-9]", printed, re.MULTILINE), row
    assert re.findall(r"(\d+) queries \(.+\): (\d+) differ", printed) == [("59", "0"), ("60", "0")]
    assert "Error:" not in printed


def test_what_masking_costs_is_told_for_each_agent_for_answers_and_for_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    redaction.main(["--logs", SAMPLES, "--megabytes", "0", "--rounds", "1"])
    printed = capsys.readouterr().out
    rows = ("Claude Code", "Codex", "Gemini CLI", "with masking", r"redact\(\)", "first looks", "compile them")
    for row in rows:
        assert re.search(rf"^\| {row} .*[0-9]", printed, re.MULTILINE), row


def test_the_engines_that_are_installed_are_measured_and_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    engines.main(["--logs", SAMPLES, "--seconds", "0.3"])
    printed = capsys.readouterr().out
    for engine in ("hyperscan", "pydantic-core, one alternation", "regex, one alternation", "re, one alternation"):
        assert re.search(rf"^\| {engine} .* 1\.00x \|", printed, re.MULTILINE), engine
