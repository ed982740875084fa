"""SIGKILL at any moment for whatever writes the index: the next run completes it, and nothing is in it twice.

For repeated kills of `agtrace index` see tests/indexer/test_crash.py; for workers, tests/indexer/test_parallel.py.
"""

from __future__ import annotations

import random
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from agtrace_indexer.run import index

from tests import corpus
from tests.agtrace.terminal import AGTRACE, agtrace
from tests.contents import contents
from tests.faults.serving import call, gone, serving

MEGABYTES = 9
"""More than is committed at once."""


class Undisturbed(NamedTuple):
    """Logs and their index, made in one go, and what it holds."""

    logs: Path
    data: Path
    expected: dict[str, object]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    corpus.make(folder / "logs", MEGABYTES)
    index(folder / "data" / "index.sqlite3", [str(folder / "logs")])
    return Undisturbed(folder / "logs", folder / "data", contents(folder / "data" / "index.sqlite3"))


def kill_within(command: list[str], longest: float, moments: random.Random) -> None:
    """Run a command and kill it, at the latest after some seconds."""
    with subprocess.Popen([AGTRACE, *command], stdout=subprocess.DEVNULL) as process:
        try:
            process.wait(moments.uniform(0.15, longest))
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.mark.thorough
def test_an_index_that_was_killed_while_it_was_put_in_order_is_the_same(
    undisturbed: Undisturbed, database: Path
) -> None:
    shutil.copytree(undisturbed.data, database.parent, dirs_exist_ok=True)
    moments = random.Random(41)
    for _ in range(2):
        kill_within(["index", "--optimize"], 0.8, moments)
        assert contents(database) == undisturbed.expected
    assert agtrace("index", "--optimize").code == 0
    assert contents(database) == undisturbed.expected


@pytest.mark.thorough
def test_a_server_that_is_killed_within_its_first_run_leaves_no_process_and_the_next_one_completes_the_index(
    undisturbed: Undisturbed, own_home: Path, database: Path, tmp_path: Path
) -> None:
    shutil.copytree(undisturbed.logs, own_home / ".claude" / "projects")
    with serving(tmp_path / "stderr") as server:
        server.greet()
        server.send(call(1, "list_sessions"))
        wal = database.with_name(f"{database.name}-wal")
        while not (wal.exists() and wal.stat().st_size > 100_000):
            assert server.process.poll() is None
            select.select([], [], [], 0.01)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        gone(server.process.pid, time.monotonic())
    assert agtrace("index").code == 0
    index(tmp_path / "fresh.sqlite3", [str(own_home / ".claude" / "projects")])
    assert contents(database) == contents(tmp_path / "fresh.sqlite3")
