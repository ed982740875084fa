"""A full disk, a folder that isn't writable or vanishes: answers use what is there, and indexing resumes later."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agtrace_indexer.redact import COMPILED_FILE
from agtrace_indexer.run import index

from tests import corpus
from tests.agtrace.terminal import AGTRACE, Said, agtrace
from tests.agtrace.test_watch import add, answer
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.faults.serving import Server, call, serving

pytestmark = pytest.mark.thorough

SPACE = 1_800
"""Kilobytes of the small disk; the compiled rules take half of them."""


@pytest.fixture
def disk(compiled_rules: Path, tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes, where one may be mounted, with a data folder on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SPACE}k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        (folder / "data").mkdir(mode=0o700)
        shutil.copy2(compiled_rules, folder / "data")
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def logs(own_home: Path) -> Path:
    folder = own_home / ".claude" / "projects" / "p"
    add(folder / "1.jsonl", 1)
    return folder


def fill(disk: Path) -> Path:
    """Take all space that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return ballast


def leave_the_index(data: Path) -> None:
    """Remove all but the index and the compiled rules."""
    for path in data.iterdir():
        if path.name not in ("index.sqlite3", COMPILED_FILE, "archive"):
            path.unlink()


def enlarge(disk: Path) -> None:
    """Give the disk space."""
    subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)


def fresh(tmp_path: Path, *roots: Path) -> dict[str, object]:
    """What an undisturbed index of the same logs holds."""
    index(tmp_path / "fresh.sqlite3", [str(root) for root in roots])
    return contents(tmp_path / "fresh.sqlite3")


def ask(server: Server, number: int, tool: str, **arguments: object) -> dict[str, object]:
    server.send(call(number, tool, **arguments))
    answered: dict[str, object] = server.answer(number)["result"]["structuredContent"]
    return answered


def is_told(said: Said) -> bool:
    """Whether a command ended with a sentence about the disk, and a next step."""
    return said.code == 3 and said.out == "" and "disk" in said.err and "Traceback" not in said.err


# -- full ----------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_within_a_run_is_told_and_the_next_run_completes_the_index(
    disk: Path, tmp_path: Path
) -> None:
    corpus.make(tmp_path / "corpus", 4)
    data = {"AGTRACE_DATA_DIR": str(disk / "data")}
    assert is_told(agtrace("index", tmp_path / "corpus", **data))
    assert agtrace("sessions", **data).code in (0, 3)
    enlarge(disk)
    assert agtrace("index", tmp_path / "corpus", **data).code == 0
    assert contents(disk / "data" / "index.sqlite3") == fresh(tmp_path, tmp_path / "corpus")


@pytest.mark.parametrize("blocks", [1, 1_000])
def test_a_limit_of_file_sizes_is_told_and_the_next_run_completes_the_index(
    blocks: int, database: Path, tmp_path: Path
) -> None:
    """`ulimit -f`, in 512 bytes."""
    limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$0" "$@"', AGTRACE, "index", SAMPLES]
    ended = subprocess.run(limited, capture_output=True, text=True, timeout=300, check=False)
    assert is_told(Said(ended.returncode, ended.stdout, ended.stderr))
    assert agtrace("index", SAMPLES).code == 0
    assert contents(database) == fresh(tmp_path, SAMPLES)


def test_a_server_on_a_full_disk_answers_from_what_is_there_says_so_and_goes_on_when_there_is_space(
    disk: Path, logs: Path, tmp_path: Path
) -> None:
    data = {"AGTRACE_DATA_DIR": str(disk / "data")}
    with serving(tmp_path / "stderr", **data) as server:
        server.greet()
        ballast = fill(disk)
        first = ask(server, 1, "list_sessions")
        assert first["error"]["code"] == "index_unavailable" and first["hint"]  # there is nothing to answer from yet
        ballast.unlink()
        assert "Found 1 session" in ask(server, 2, "list_sessions")["summary"]
        ballast = fill(disk)
        answer(logs / "1.jsonl", 1, "Spring tides.")
        there = ask(server, 3, "search_event_previews", order="newest", query="flood and ebb")
        assert len(there["data"]["matches"]) == 1 and "disk" in there["index"]["problem"]
        ballast.unlink()
        found = ask(server, 4, "search_event_previews", order="newest", query="Spring tides")
        assert len(found["data"]["matches"]) == 1 and "index" not in found
    assert contents(disk / "data" / "index.sqlite3") == fresh(tmp_path, logs)


def test_a_command_on_a_full_disk_answers_from_what_is_there(disk: Path, logs: Path) -> None:
    """Also where nothing stands ready: no key of cursors, no file that SQLite keeps beside an index that is read."""
    data = {"AGTRACE_DATA_DIR": str(disk / "data")}
    assert agtrace("index", **data).code == 0
    expected = agtrace("search", "flood and ebb", **data).out
    leave_the_index(disk / "data")
    fill(disk)
    add(logs / "2.jsonl", 2)
    said = agtrace("search", "flood and ebb", **data)
    assert said.code == 0 and "disk" in said.err and said.out.startswith(expected.splitlines()[0])


# -- not writable, or gone -----------------------------------------------------------------------


@pytest.fixture
def read_only(disk: Path, logs: Path) -> Path:
    """The data folder on a disk that can't be written."""
    data = disk / "data"
    assert agtrace("index", AGTRACE_DATA_DIR=str(data)).code == 0
    leave_the_index(data)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    return data


def test_a_folder_that_can_not_be_written_is_answered_from_and_it_is_said(read_only: Path, logs: Path) -> None:
    add(logs / "2.jsonl", 2)
    said = agtrace("search", "flood and ebb", AGTRACE_DATA_DIR=str(read_only))
    assert said.code == 0 and "can't be opened" in said.err
    assert agtrace("index", AGTRACE_DATA_DIR=str(read_only)).code == 3


def test_a_server_whose_folder_is_removed_makes_the_index_anew(logs: Path, database: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "stderr") as server:
        server.greet()
        assert "Found 1 session" in ask(server, 1, "list_sessions")["summary"]
        shutil.rmtree(database.parent)
        add(logs / "2.jsonl", 2)
        assert "Found 2 sessions" in ask(server, 2, "list_sessions")["summary"]
    assert contents(database) == fresh(tmp_path, logs)


def test_a_server_reads_the_index_that_another_one_was_replaced_by(logs: Path, database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "index.sqlite3"
    add(tmp_path / "elsewhere" / "2.jsonl", 2)
    add(tmp_path / "elsewhere" / "3.jsonl", 3)
    index(other, [str(tmp_path / "elsewhere")])
    with serving(tmp_path / "stderr") as server:
        server.greet()
        assert "Found 1 session" in ask(server, 1, "list_sessions")["summary"]
        os.replace(other, database)
        assert "Found 2 sessions" in ask(server, 2, "list_sessions")["summary"]


def test_a_log_that_could_not_be_opened_for_a_moment_is_read_by_the_next_run(logs: Path) -> None:
    """Too many open files, while logs came and grew that never change again."""
    assert agtrace("index").code == 0
    add(logs / "2.jsonl", 2)
    answer(logs / "1.jsonl", 1, "A third tide.")
    few = f"ulimit -n 10; exec {AGTRACE} index"
    poor = subprocess.run(["sh", "-c", few], capture_output=True, text=True, timeout=300, check=False)
    assert "2 files can't be read: `agtrace doctor` names them" in poor.stdout
    whole = agtrace("index").out
    assert "can't be read" not in whole and whole.startswith("2 sessions, 7 events")
