"""`agtrace statusline`: one short line for Claude Code, quickly, whatever it is given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.run import index
from hypothesis import given
from hypothesis import strategies as st

from agtrace.answers.status_line import NOTHING, status_line
from tests.agtrace.live_logs import Claude, Codex
from tests.agtrace.terminal import AGTRACE
from tests.indexer.strange import any_json

GIVEN: dict[str, Any] = {
    "hook_event_name": "Status",
    "session_id": "00000001-6c0e-4b8e-9a37-2f5e81c0b944",
    "transcript_path": "/home/mira/.claude/projects/x.jsonl",
    "cwd": "/home/mira/projects/tidepool/web",
    "model": {"id": "claude-opus-4-1", "display_name": "Opus 4.1"},
    "workspace": {"current_dir": "/home/mira/projects/tidepool/web", "project_dir": "/home/mira/projects/tidepool"},
    "version": "2.1.212",
    "cost": {"total_cost_usd": 1.234, "total_duration_ms": 45_000},
    "context_window": {"context_window_size": 200_000, "used_percentage": 24, "current_usage": None},
}


def printed(given: bytes | None) -> str:
    """What the command prints."""
    done = subprocess.run([AGTRACE, "statusline"], input=given, capture_output=True, timeout=300, check=True)
    assert done.stderr == b"" and done.stdout.count(b"\n") == 1
    return done.stdout.decode().rstrip("\n")


def test_it_says_what_claude_code_gives_it_without_an_index(database: Path) -> None:
    assert printed(json.dumps(GIVEN).encode()) == "tidepool · Opus 4.1 · 24% of 200k · $1.23"
    limits = {"rate_limits": {"five_hour": {"used_percentage": 23.4, "resets_at": 1}, "seven_day": None}}
    assert printed(json.dumps(GIVEN | limits).encode()).endswith("$1.23 · 77% of 5 h left")
    token = "ghp_" + "kR7vT2mXw9Lq4ZbN8sYc1HdF6jGp3AeUoKi5"
    told = printed(json.dumps(GIVEN | {"model": {"display_name": token}, "workspace": {"project_dir": token}}).encode())
    assert token[:12] not in told and "24% of 200k" in told
    assert not database.exists(), "it indexes nothing"


def test_it_adds_failed_calls_and_sessions_that_wait_from_the_index(database: Path, own_home: Path) -> None:
    here, other, third = Claude(own_home, 1), Claude(own_home, 2), Codex(own_home, 3)
    for log in (here, other, third):
        log.asked("Run the tests.")
    here.calls("Bash", command="pytest")
    here.returns("1 failed", failed=True)
    other.says("They pass.")
    index(database, [str(own_home)])
    line = printed(json.dumps(GIVEN).encode())
    assert line == "tidepool · Opus 4.1 · 24% of 200k · $1.23 · 1 failed · 1 waiting for you"


def test_without_a_percentage_the_context_comes_from_the_last_request_or_the_index(
    database: Path, own_home: Path
) -> None:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 20_000, "cache_read_input_tokens": 29_990}
    window = {"context_window_size": 1_000_000, "used_percentage": None, "current_usage": usage}
    assert "5% of 1M" in status_line(json.dumps({**GIVEN, "context_window": window}).encode(), database)
    without = json.dumps({name: value for name, value in GIVEN.items() if name != "context_window"}).encode()
    assert status_line(without, database) == "tidepool · Opus 4.1 · $1.23"
    log = Claude(own_home, 1)
    log.asked("Run the tests.")
    log.calls("Bash", command="pytest")
    index(database, [str(own_home)])
    assert "100k tokens" in status_line(without, database)


def test_what_is_malformed_gets_a_short_line(database: Path) -> None:
    for text in (b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"cost": [1]}'):
        assert status_line(text, database) == NOTHING
    assert len(NOTHING) < 100
    assert printed(b"[" * 100_000) == NOTHING


@pytest.mark.parametrize("content", [b"", b"not an index" * 1000])
def test_an_index_that_can_t_be_read_costs_only_what_it_would_have_said(database: Path, content: bytes) -> None:
    database.write_bytes(content)
    assert status_line(json.dumps(GIVEN).encode(), database) == "tidepool · Opus 4.1 · 24% of 200k · $1.23"


def test_nothing_in_it_commands_a_terminal(database: Path) -> None:
    hostile = {"cwd": "/x/\x1b]0;t\x07\x1b[31mred\n\u202ename", "model": {"display_name": "M\x1b[2J" + "x" * 500}}
    line = printed(json.dumps(hostile).encode())
    assert line.isprintable() and len(line) < 100


WORDS = st.sampled_from(sorted({*GIVEN, *GIVEN["cost"], *GIVEN["context_window"]}))


@pytest.mark.thorough
@given(st.dictionaries(st.sampled_from(sorted(GIVEN)), any_json(WORDS)))
def test_no_values_make_it_fail(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]) -> None:
    line = status_line(json.dumps(given).encode(), Path("/nowhere/index.sqlite3"))
    assert line.isprintable() and line


def test_it_loads_nothing_heavy(database: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start is most of its time; what it loads is what makes the difference."""
    for number in (1, 2):
        Claude(own_home, number).asked("Run the tests.")
    index(database, [str(own_home)])
    monkeypatch.setenv("AGTRACE_KEEP_DAYS", "90")
    code = "import sys; sys.argv[1:] = ['statusline']; from agtrace.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], input=json.dumps(GIVEN).encode(), capture_output=True,
        timeout=300, check=True,
    )  # fmt: skip
    loaded = {line.rpartition(b"|")[2].strip().partition(b".")[0] for line in done.stderr.splitlines()}
    heavy = {b"click", b"rich", b"textual", b"pydantic", b"orjson", b"zstandard", b"hyperscan", b"mcp", b"watchdog"}
    assert loaded & heavy == set() and b"sqlite3" in loaded
