"""Indexing that is killed at any moment repeats work but loses nothing."""

from __future__ import annotations

import os
import random
import select
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agtrace_indexer.redact import COMPILED_FILE
from agtrace_schema.database import VERSION

from tests import corpus
from tests.conftest import keep_rules
from tests.contents import contents

AGTRACE = Path(sys.executable).with_name("agtrace")
KILLS = 1
MEGABYTES = 25


class Undisturbed(NamedTuple):
    """A corpus and its index, made in one go."""

    logs: Path
    database: Path
    expected: dict[str, Any]
    seconds: float

    def begun(self, data: Path) -> Path:
        """A data folder without an index."""
        keep_rules(self.database.with_name(COMPILED_FILE), data)
        return data


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path) -> Undisturbed:
    folder = tmp_path_factory.mktemp("corpus")
    logs = folder / "logs"
    corpus.make(logs, MEGABYTES)
    assert max(path.stat().st_size for path in logs.rglob("*.jsonl")) > 20_000_000, "a log of several transactions"
    keep_rules(compiled_rules, folder / "data")
    started = time.monotonic()
    assert start(logs, folder / "data").wait() == 0
    seconds, database = time.monotonic() - started, folder / "data" / "index.sqlite3"
    return Undisturbed(logs, database, contents(database), seconds)


def start(logs: Path, data: Path) -> subprocess.Popen[bytes]:
    """Begin to index in a process of its own."""
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    return subprocess.Popen([AGTRACE, "index", "--json", logs], env=environment, stdout=subprocess.DEVNULL)


def killed_after(seconds: float, logs: Path, data: Path) -> None:
    """Run for so long at most, and be killed."""
    with start(logs, data) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()


def killed_beyond(held: int, logs: Path, data: Path) -> int:
    """Run until the index holds more bytes of logs than so many, and be killed; how many it holds then."""
    with start(logs, data) as process:
        while process.poll() is None and indexed_bytes(data) <= held:
            select.select([], [], [], 0.02)
        process.kill()
    return indexed_bytes(data)


def test_a_run_after_a_kill_at_any_moment_gives_the_same_index(undisturbed: Undisturbed, tmp_path: Path) -> None:
    moments = random.Random(20261121)
    for number in range(KILLS):
        data, moment = undisturbed.begun(tmp_path / str(number)), moments.uniform(0.1, undisturbed.seconds)
        killed_after(moment, undisturbed.logs, data)
        assert start(undisturbed.logs, data).wait() == 0
        assert contents(data / "index.sqlite3") == undisturbed.expected, f"killed after {moment:.3f} s"


def test_a_run_that_is_killed_between_two_commits_again_and_again_gets_there(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """What one run has committed the next one keeps and goes on from."""
    whole = indexed_bytes(undisturbed.database.parent)
    for attempt in range(20):
        data = undisturbed.begun(tmp_path / str(attempt))
        first = killed_beyond(0, undisturbed.logs, data)
        if first < whole:
            break
    assert 0 < first < whole, "no kill between two commits"
    assert killed_beyond(first, undisturbed.logs, data) > first
    assert start(undisturbed.logs, data).wait() == 0
    assert contents(data / "index.sqlite3") == undisturbed.expected


def test_a_rebuild_that_is_killed_can_be_finished_by_another(undisturbed: Undisturbed, tmp_path: Path) -> None:
    data = Path(shutil.copytree(undisturbed.database.parent, tmp_path / "copy"))
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    rebuild = [AGTRACE, "index", "--rebuild"]
    process = subprocess.Popen(rebuild, env=environment, stdout=subprocess.DEVNULL)
    try:
        process.wait(undisturbed.seconds / 2)
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait()
    subprocess.run(rebuild, env=environment, stdout=subprocess.DEVNULL, check=True)
    assert contents(data / "index.sqlite3") == undisturbed.expected


def test_an_index_whose_creation_was_cut_off_is_created_by_the_next_run(tmp_path: Path, database: Path) -> None:
    database.with_suffix(".new").touch()  # it is made there, and renamed once it is whole
    process = start(tmp_path, database.parent)
    assert process.wait() == 0
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.close()


def indexed_bytes(data: Path) -> int:
    """Bytes of logs that an index holds by its own account; 0 where there is none yet."""
    try:
        with closing(sqlite3.connect(f"file:{data / 'index.sqlite3'}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT coalesce(sum(read_to), 0) FROM file").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
