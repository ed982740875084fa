"""Indexing that is killed at any moment repeats work but loses nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from agtrace_schema.database import VERSION

from tests import corpus
from tests.conftest import keep_rules
from tests.contents import contents
from tests.waiting import until

pytestmark = pytest.mark.thorough

AGTRACE = Path(sys.executable).with_name("agtrace")


def start(logs: Path, data: Path) -> subprocess.Popen[bytes]:
    """Begin to index in a process of its own."""
    environment = {**os.environ, "AGTRACE_DATA_DIR": str(data)}
    return subprocess.Popen([AGTRACE, "index", "--json", logs], env=environment, stdout=subprocess.DEVNULL)


def killed(database: Path, process: subprocess.Popen[bytes], held: int) -> int:
    """Kill a run as soon as the index holds more bytes of logs than so many; how many it holds then."""
    with process:
        until(lambda: process.poll() is not None or indexed_bytes(database) > held, "more of the logs", 300)
        process.kill()
    return indexed_bytes(database)


def test_a_run_that_is_killed_between_two_commits_again_and_again_gets_there(
    tmp_path: Path, database: Path, compiled_rules: Path
) -> None:
    """And so does a rebuild that is killed in its midst."""
    logs, fresh = tmp_path / "logs", tmp_path / "fresh"
    corpus.make(logs, 2)
    corpus.large_log(logs)
    keep_rules(compiled_rules, fresh)
    began = time.monotonic()
    assert start(logs, fresh).wait() == 0
    took = time.monotonic() - began
    whole, expected = indexed_bytes(fresh / database.name), contents(fresh / database.name)
    first = killed(database, start(logs, database.parent), 0)
    assert 0 < first < whole, "no kill between two commits"
    assert killed(database, start(logs, database.parent), first) > first
    assert start(logs, database.parent).wait() == 0
    assert contents(database) == expected
    rebuild = subprocess.Popen([AGTRACE, "index", "--rebuild"], stdout=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        rebuild.wait(took / 2)
    rebuild.kill()
    rebuild.wait()
    subprocess.run([AGTRACE, "index", "--rebuild"], stdout=subprocess.DEVNULL, check=True)
    assert contents(database) == expected


def test_an_index_whose_creation_was_cut_off_is_created_by_the_next_run(tmp_path: Path, database: Path) -> None:
    database.with_suffix(".new").touch()  # it is made there, and renamed once it is whole
    process = start(tmp_path, database.parent)
    assert process.wait() == 0
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.close()


def indexed_bytes(database: Path) -> int:
    """Bytes of logs that an index holds by its own account; 0 where there is none yet."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT coalesce(sum(read_to), 0) FROM file").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
