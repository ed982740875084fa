"""SIGKILL at any moment for whatever writes the index: the next run completes it, and nothing is in it twice.

For repeated kills of `agtrace index` see tests/indexer/test_crash.py; for workers, tests/indexer/test_parallel.py.
"""

from __future__ import annotations

import select
import signal
import time
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests import corpus
from tests.agtrace.terminal import agtrace
from tests.contents import contents
from tests.faults.serving import call, gone, serving

MEGABYTES = 9
"""More than is committed at once."""


@pytest.mark.thorough
def test_a_server_that_is_killed_within_its_first_run_leaves_no_process_and_the_next_one_completes_the_index(
    own_home: Path, database: Path, tmp_path: Path
) -> None:
    corpus.make(own_home / ".claude" / "projects", MEGABYTES)
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
