"""The benchmarks run and print their tables; no test depends on the figures."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from agtrace.commands.asking import answers
from agtrace.settings import load
from benchmarks import agents, answer_sizes, engines, peers, redaction
from benchmarks.__main__ import main

SAMPLES = str(Path(__file__).parents[1] / "sample_sessions")
FEW = ("claude/*/*/e97a4b06-*.jsonl", "codex/**/rollout-2026-09-14*.jsonl", "gemini/tmp/**/*.jsonl")
"""A log of each agent; in two of them are texts with what may be a secret."""


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A folder of so few logs that the slowest engine reads all of their texts in a moment."""
    for pattern in FEW:
        (log,) = Path(SAMPLES).glob(pattern)
        copy = tmp_path / "few" / log.relative_to(SAMPLES)
        copy.parent.mkdir(parents=True)
        shutil.copy(log, copy)
    return str(tmp_path / "few")


def test_a_small_run_prints_the_tables_and_finds_what_a_scan_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(
        [
            "1",
            "--folder",
            str(tmp_path / "bench"),
            "--rounds",
            "1",
            "--logs",
            "-",
            "--only",
            "index",
            "--only",
            "search",
        ]
    )
    printed = capsys.readouterr().out
    for row in ("agtrace index", "limit: read", "search in process", "the same over MCP stdio", "agtrace search"):
        assert re.search(rf"^\| {row} .*[0-9]", printed, re.MULTILINE), row
    assert re.findall(r"(\d+) queries \(.+\): (\d+) differ", printed) == [("59", "0"), ("60", "0")]
    assert "Error:" not in printed


def test_real_logs_are_repeated_to_any_size_as_other_sessions_and_compared_with_generated_ones(
    tmp_path: Path, few: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["1", "--folder", str(tmp_path / "bench"), "--logs", few, "--only", "alike"])
    rows = re.findall(r"^\| (.+?) +\| +([0-9.,]+) \| +([0-9.,]+) \|", capsys.readouterr().out, re.MULTILINE)
    assert {"Codex, %", "events a MB", "tool outputs, %"} <= {name for name, *_ in rows}
    corpus = tmp_path / "bench" / "real" / "corpus" / "1"
    assert 1_000_000 <= sum(path.stat().st_size for path in corpus.rglob("*") if path.is_file()) < 2_000_000
    once, often = tmp_path / "once.db", tmp_path / "often.db"
    index(once, [few])
    index(often, [str(corpus)])
    copies = len(list((corpus / "gemini").rglob("*.jsonl")))
    assert copies > 3
    assert [copies * count for count in _counts(once)] == _counts(often)


def _counts(database: Path) -> list[int]:
    """Sessions, events and copies: a repeated log repeats no event."""
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT count(*), sum(event_count), sum(tool_calls), sum(copied_events) FROM session"
        return list(connection.execute(query).fetchone())


def test_a_peer_that_finds_no_logs_is_not_the_fastest(tmp_path: Path) -> None:
    peer = replace(peers.peers(tmp_path)[2], indexing=("true",))
    program = peer.environment / "bin" / "true"
    program.parent.mkdir(parents=True)
    program.symlink_to(shutil.which("true") or "")
    (peer.environment / "requirements.txt").write_text(" ".join(peer.requirements))
    (tmp_path / "of the peer").mkdir()
    run = peer.index(Path(SAMPLES), tmp_path / "of the peer")
    assert (run.rate, run.exit_code, run.note) == (0, 1, "it found no logs")


def test_what_masking_costs_is_told_for_each_agent_for_answers_and_for_texts(
    few: str, capsys: pytest.CaptureFixture[str]
) -> None:
    redaction.main(["--logs", few, "--megabytes", "0", "--rounds", "1"])
    printed = capsys.readouterr().out
    rows = ("Claude Code", "Codex", "Gemini CLI", "with masking", r"redact\(\)", "first looks", "compile them")
    for row in rows:
        assert re.search(rf"^\| {row} .*[0-9]", printed, re.MULTILINE), row


def test_every_agent_is_measured_beside_claude_code_as_it_is_and_in_long_sessions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agents.main([str(SAMPLES), "--kilobytes", "10", "--rounds", "1"])
    plain, long = capsys.readouterr().out.split("Sessions of 10 KB")
    for row in ("Codex", "Copilot CLI", "Cursor", "Kiro CLI", "Pi", "Qwen Code"):
        for printed in (plain, long):
            assert re.search(rf"^\| {row} +\|( +[0-9,.]+x? \|){{8}}$", printed, re.MULTILINE), row
    for row in ("Goose, database", "OpenCode, database"):
        assert re.search(rf"^\| {row} +\|( +[0-9,.]+x? \|){{8}}$", long, re.MULTILINE), row


def test_the_engines_that_are_installed_are_measured_and_find_the_same(
    few: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engines.main(["--logs", few, "--seconds", "0.3"])
    printed = capsys.readouterr().out
    for engine in ("hyperscan", "pydantic-core, one alternation", "regex, one alternation", "re, one alternation"):
        assert re.search(rf"^\| {engine} .* 1\.00x \|", printed, re.MULTILINE), engine


@pytest.mark.parametrize("asked", [["--sessions", "6"], ["e97a4b06"]], ids=" ".join)
def test_no_answer_over_the_samples_is_larger_than_it_may_be(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path))
    index(load().database, [SAMPLES])
    answers.cache_clear()
    assert answer_sizes.main(asked) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("none exceeds its budget\n")
    for call in ("get_session_details(detail_level='turns')", "read_artifact(ref='ax://session/')", "list_sessions()"):
        assert re.search(rf"^\| {re.escape(call)} +\|(?: +[0-9,]+ \|){{4}} +[01]\.[0-9]+x", printed, re.MULTILINE), call


def test_a_session_that_is_not_there_has_no_answers_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(tmp_path))
    index(load().database, [SAMPLES])
    answers.cache_clear()
    with pytest.raises(SystemExit, match="2"):
        answer_sizes.main(["zzzzzzzz"])
    assert capsys.readouterr().err.startswith("agtrace: Session not found: zzzzzzzz")
