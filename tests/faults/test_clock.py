"""Wrong or jumping clocks of files and processes: what is read doesn't depend on them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests.agtrace.terminal import agtrace
from tests.agtrace.test_watch import add, answer
from tests.contents import contents

pytestmark = pytest.mark.thorough

YEAR = 366 * 24 * 3600
MOVED = "import time\nreal = time.time\ntime.time = lambda: real() + {seconds}\n"


@pytest.fixture
def logs(own_home: Path) -> Path:
    folder = own_home / ".claude" / "projects" / "p"
    for number in range(1, 4):
        add(folder / f"{number}.jsonl", number)
    return folder


def moved(tmp_path: Path, seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is wrong by so much."""
    folder = tmp_path / f"moved {seconds}"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(MOVED.format(seconds=seconds))
    return {"PYTHONPATH": str(folder)}


def test_a_log_is_read_whatever_time_its_file_has_and_its_growth_is_noticed_though_that_time_goes_back(
    logs: Path, database: Path, tmp_path: Path
) -> None:
    times = [0, 1, 4_102_444_800, 1 << 33, 1_000_000_000]
    for number, moment in enumerate(times):
        answer(logs / "1.jsonl", 1, f"Tide number {number}.")
        for log in logs.iterdir():
            os.utime(log, (moment, moment))
        assert index(database, [str(logs)]).files_changed >= 1
        assert index(database, []).files_changed == 0
        beside = tmp_path / f"{number}.sqlite3"
        index(beside, [str(logs)])
        assert contents(database) == contents(beside)


@pytest.mark.parametrize("seconds", [-60 * YEAR, YEAR])
def test_a_process_with_a_wrong_clock_indexes_and_answers_like_any_other(
    seconds: int, logs: Path, database: Path, tmp_path: Path
) -> None:
    wrong = moved(tmp_path, seconds)
    assert agtrace("index", **wrong).code == 0
    assert agtrace("search", "flood and ebb", "--newest", **wrong).out.startswith("Found 3 events")
    assert agtrace("report", "--since", "7d", **wrong).code == 0
    answer(logs / "1.jsonl", 1, "Spring tides.")
    assert agtrace("search", "Spring tides", "--newest").out.startswith("Found 1 event")
    index(tmp_path / "fresh.sqlite3", [str(logs)])
    assert contents(database) == contents(tmp_path / "fresh.sqlite3")


@pytest.mark.parametrize(("seconds", "goes_on"), [(-YEAR, True), (YEAR, False)])
def test_a_cursor_goes_on_after_the_clock_was_put_back_and_expires_when_it_was_put_on(
    seconds: int, goes_on: bool, logs: Path, tmp_path: Path
) -> None:
    answer(logs / "1.jsonl", 1, "Spring tides.\n" * 5_000)
    (match,) = json.loads(agtrace("search", "Spring tides", "--newest", "--json").out)["data"]["matches"]
    page = ["show", f"{match['session_id']}:{match['event_index']}", "--json"]
    cursor = json.loads(agtrace(*page).out)["chunk"]["next_cursor"]
    said = agtrace(*page, "--cursor", cursor, **moved(tmp_path, seconds))
    assert (said.code == 0) == goes_on
    assert goes_on or "expired" in said.err
