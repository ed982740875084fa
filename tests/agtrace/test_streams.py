"""No traceback reaches a person: not with closed or full streams, nor without a home, a folder, files or memory."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests.agtrace.terminal import AGTRACE
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.depth import part

COMMANDS = ["sessions", "--help"]
CODEX = SAMPLES / "codex"
SESSION = "d41f7a52"
PRINTING = [
    "roots", "search x", "report --html -", "report --json", "doctor", f"forget {SESSION} --dry-run",
    f"forget {SESSION} --dry-run --json", f"analyze {SESSION}", "setup codex",
]  # fmt: skip


def shell(line: str, folder: Path, **how: str) -> tuple[int, str]:
    """Run a line of shell in which $0 is agtrace; its exit code and what it printed."""
    ended = subprocess.run(
        ["sh", "-c", line, AGTRACE], cwd=folder, capture_output=True, text=True, errors="replace", timeout=300,
        check=False,
    )  # fmt: skip
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said and "Exception ignored" not in said, said
    return ended.returncode, said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stream_that_is_closed_leads_nowhere(command: str, indexed: Path, tmp_path: Path) -> None:
    code, _ = shell(f"exec $0 {command}", tmp_path)
    assert shell(f"exec $0 {command} <&- >&- 2>&-", tmp_path) == (code, "")
    assert shell(f"exec $0 {command} >&-", tmp_path)[0] == code


@pytest.mark.thorough
def test_an_index_made_with_closed_streams_is_a_whole_one(tmp_path: Path, database: Path) -> None:
    """None of its files took the number of a stream that somebody writes to."""
    assert shell(f"exec $0 index {CODEX} <&- >&- 2>&-", tmp_path) == (0, "")
    index(tmp_path / "fresh.sqlite3", [str(CODEX)])
    assert contents(database) == contents(tmp_path / "fresh.sqlite3")


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["sessions", "--help"])
def test_a_full_stream_is_told_where_that_is_possible(command: str, indexed: Path, tmp_path: Path) -> None:
    assert shell(f"exec $0 {command} > /dev/full", tmp_path) == (2, "agtrace: can't write: No space left on device\n")
    assert shell(f"exec $0 {command} > /dev/full 2>&1", tmp_path)[0] != 0


@pytest.mark.thorough
def test_every_command_whose_reader_is_gone_ends_in_silence(indexed: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    running = [
        (line, subprocess.Popen([AGTRACE, *line.split()], stdin=-3, stdout=writer, stderr=-1, text=True))
        for line in part(PRINTING, 0, 3)
    ]
    os.close(writer)
    said = {line: (process.communicate(timeout=300)[1], process.returncode) for line, process in running}
    assert set(said.values()) == {("", 141)}, said


@pytest.mark.thorough
@pytest.mark.parametrize(
    "where",
    [
        "HOME=/nonexistent/nobody",
        "mkdir gone; cd gone; rmdir ../gone;",
        "ulimit -n 16;",
        "ulimit -v 800000;",
    ],
)
def test_a_poor_environment_changes_no_answer(where: str, indexed: Path, tmp_path: Path) -> None:
    assert shell(f"{where} $0 sessions --json", tmp_path) == (0, _sessions(str(indexed)))


@cache
def _sessions(data: str) -> str:
    """What the sessions are where nothing is poor."""
    return subprocess.run([AGTRACE, "sessions", "--json"], capture_output=True, text=True, check=True).stdout


@pytest.mark.thorough
def test_json_says_the_same_where_the_terminal_has_few_letters(indexed: Path, tmp_path: Path) -> None:
    code, said = shell("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $0 sessions --json", tmp_path)
    assert (code, json.loads(said)) == (0, json.loads(_sessions(str(indexed))))
