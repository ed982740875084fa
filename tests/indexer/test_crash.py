"""Indexing that is killed at any moment repeats work and loses none.

AGTRACE_TEST_KILLS and AGTRACE_TEST_MEGABYTES make it a longer trial: the measurement behind the claim
is 20 kills over 200 MB.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from agtrace_schema.database import VERSION

from tests import corpus
from tests.contents import contents

AGTRACE = Path(sys.executable).with_name("agtrace")
KILLS = int(os.environ.get("AGTRACE_TEST_KILLS", "4"))
MEGABYTES = int(os.environ.get("AGTRACE_TEST_MEGABYTES", "25"))


class Undisturbed(NamedTuple):
    """A corpus and its index, made in one go."""

    logs: Path
    database: Path
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("corpus")
    logs = folder / "logs"
    corpus.make(logs, MEGABYTES)
    assert max(path.stat().st_size for path in logs.rglob("*.jsonl")) > 20_000_000, "a log of several transactions"
    started = time.monotonic()
    assert start(logs, folder / "data").wait() == 0
    return Undisturbed(logs, folder / "data" / "index.sqlite3", time.monotonic() - started)


def start(logs: Path, data: Path) -> subprocess.Popen[bytes]:
    """Begin to index in a process of its own."""
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    return subprocess.Popen([AGTRACE, "index", "--json", logs], env=environment, stdout=subprocess.DEVNULL)


def killed_after(seconds: float, logs: Path, data: Path) -> bool:
    """Run for so long and be killed; whether it was still running."""
    process = start(logs, data)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() == -signal.SIGKILL


def test_a_run_after_a_kill_at_any_moment_gives_the_same_index(undisturbed: Undisturbed, tmp_path: Path) -> None:
    moments, longest = random.Random(20261121), undisturbed.seconds
    expected = contents(undisturbed.database)
    kills = partly = 0
    while kills < KILLS or not partly:
        data = tmp_path / f"{kills} {longest}"
        moment = moments.uniform(0.1, longest)
        if not killed_after(moment, undisturbed.logs, data):
            longest *= 0.9  # it ran faster than when it was measured
            continue
        kills += 1
        partly += 0 < indexed_bytes(data) < indexed_bytes(undisturbed.database.parent)
        assert start(undisturbed.logs, data).wait() == 0
        assert contents(data / "index.sqlite3") == expected, f"killed after {moment:.3f} s"
        assert kills < 10 * KILLS, "no kill between two commits"
    sys.stdout.write(f"{kills} kills of a running process, {partly} of them between two commits\n")


def test_a_run_that_is_killed_again_and_again_gets_there(undisturbed: Undisturbed, tmp_path: Path) -> None:
    moments = random.Random(1121)
    while killed_after(moments.uniform(0.3, 0.8) * undisturbed.seconds, undisturbed.logs, tmp_path / "data"):
        assert moments.random() < 0.999, "no end in sight"
    assert start(undisturbed.logs, tmp_path / "data").wait() == 0
    assert contents(tmp_path / "data" / "index.sqlite3") == contents(undisturbed.database)


def test_a_rebuild_that_is_killed_can_be_finished_by_another(undisturbed: Undisturbed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert start(undisturbed.logs, data).wait() == 0
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    rebuild = [AGTRACE, "index", "--rebuild"]
    process = subprocess.Popen(rebuild, env=environment, stdout=subprocess.DEVNULL)
    try:
        process.wait(undisturbed.seconds / 2)
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait()
    subprocess.run(rebuild, env=environment, stdout=subprocess.DEVNULL, check=True)
    assert contents(data / "index.sqlite3") == contents(undisturbed.database)


def test_an_index_whose_creation_was_cut_off_is_created_by_the_next_run(tmp_path: Path, database: Path) -> None:
    database.parent.mkdir()
    database.touch()
    process = start(tmp_path, database.parent)
    assert process.wait() == 0
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.execute("PRAGMA user_version = 0")  # killed between the last table and its version
    connection.close()
    assert start(tmp_path, database.parent).wait() == 0


def indexed_bytes(data: Path) -> int:
    """Bytes of logs that an index holds by its own account."""
    connection = sqlite3.connect(data / "index.sqlite3")
    try:
        return int(connection.execute("SELECT coalesce(sum(read_to), 0) FROM file").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()
