"""A database that another program writes is queried without leaving a trace, and its answers are of one moment."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from agtrace_indexer.logs.foreign_database import ask

COUNTS = (("SELECT count(*) FROM account", ()), ("SELECT coalesce(sum(amount), 0) FROM account", ()))
HASTE = 150
"""Questions asked while the other one writes."""


def bank(path: Path, mode: str) -> sqlite3.Connection:
    """A database of accounts, whose amounts are always 0 in sum."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, amount INTEGER)")
    return connection


def transfer(connection: sqlite3.Connection, amount: int) -> None:
    """Two rows in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO account (amount) VALUES (?)", (amount,))
    connection.execute("INSERT INTO account (amount) VALUES (?)", (-amount,))
    connection.execute("COMMIT")


def test_answers_are_of_one_moment_and_never_stop_the_writer(tmp_path: Path) -> None:
    path, ended, refused = tmp_path / "bank.db", threading.Event(), []
    with closing(bank(path, "WAL")) as connection:

        def write() -> None:
            while not ended.is_set():
                try:
                    transfer(connection, 7)
                except sqlite3.OperationalError as error:
                    refused.append(str(error))
                    return

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = [ask(str(path), *COUNTS)]
            while len(seen) < HASTE or (writer.is_alive() and seen[-1] == seen[0]):
                seen.append(ask(str(path), *COUNTS))
        finally:
            ended.set()
            writer.join()
    counts = [count for ((count,),), _ in seen]
    assert refused == [] and counts == sorted(counts) and counts[-1] > counts[0]
    assert all(count % 2 == 0 and total == 0 for ((count,),), ((total,),) in seen)


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_transaction_that_goes_on_is_not_seen_and_what_is_left_of_it_stays(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with closing(bank(path, mode)) as connection:
        transfer(connection, 3)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO account (amount) VALUES (5)")
        there = sorted(tmp_path.iterdir())
        assert ask(str(path), *COUNTS) == [[(2,)], [(0,)]]
        assert sorted(tmp_path.iterdir()) == there
        connection.execute("COMMIT")
        assert ask(str(path), *COUNTS) == [[(3,)], [(5,)]]


def test_what_a_dead_writer_left_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(bank(tmp_path / "bank.db", "WAL")) as connection:
        transfer(connection, 3)
        left = tmp_path / "left"
        left.mkdir()
        for name in ("bank.db", "bank.db-wal", "bank.db-shm"):
            shutil.copy(tmp_path / name, left / name)
    before = {path.name: path.read_bytes() for path in left.iterdir()}
    assert ask(str(left / "bank.db"), *COUNTS) == [[(2,)], [(0,)]]
    assert {path.name: path.read_bytes() for path in left.iterdir() if path.suffix != ".db-shm"} == {
        name: data for name, data in before.items() if not name.endswith("-shm")
    }
    assert {path.name for path in left.iterdir()} == before.keys()


def test_what_is_left_without_shared_memory_is_copied_once_for_each_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, left = tmp_path / "copies", tmp_path / "left"
    left.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))

    def leave() -> None:
        for name in ("bank.db", "bank.db-wal"):
            shutil.copyfile(tmp_path / name, left / name)

    with closing(bank(tmp_path / "bank.db", "WAL")) as connection:
        transfer(connection, 3)
        leave()
        there = {path.name: path.read_bytes() for path in left.iterdir()}
        copies.mkdir()
        assert ask(str(left / "bank.db"), *COUNTS) == [[(2,)], [(0,)]]
        assert list(copies.iterdir()) == []
        copies.rmdir()  # where no other copy can be made
        assert ask(str(left / "bank.db"), *COUNTS) == [[(2,)], [(0,)]]
        assert {path.name: path.read_bytes() for path in left.iterdir()} == there
        transfer(connection, 4)
        leave()
        copies.mkdir()
        assert ask(str(left / "bank.db"), *COUNTS) == [[(4,)], [(0,)]]


def test_its_folder_may_be_closed_to_writing_and_its_name_strange(tmp_path: Path) -> None:
    path = tmp_path / "100% of #1?.db"
    with closing(bank(path, "WAL")) as connection:
        transfer(connection, 3)
    there = sorted(tmp_path.iterdir())
    tmp_path.chmod(0o500)
    try:
        assert ask(str(path), *COUNTS) == [[(2,)], [(0,)]]
    finally:
        tmp_path.chmod(0o700)
    assert sorted(tmp_path.iterdir()) == there


def test_nothing_can_be_written_by_a_question(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with closing(bank(path, "WAL")) as connection:
        transfer(connection, 3)
        with pytest.raises(OSError, match=r"readonly|read-only|query_only"):
            ask(str(path), ("DELETE FROM account", ()))
        assert ask(str(path), *COUNTS) == [[(2,)], [(0,)]]


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"no database at all", "not an SQLite database"), (b"SQLite format 3\0" + b"\xff" * 4096, "not a database")],
)
def test_what_is_no_database_is_an_error_with_a_reason(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.db"
    path.write_bytes(content)
    with pytest.raises(OSError, match=why):
        ask(str(path), *COUNTS)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    bank(tmp_path / "bank.db", "WAL").close()
    (tmp_path / "link.db").symlink_to(tmp_path / "bank.db")
    with pytest.raises(OSError, match="not a regular file"):
        ask(str(tmp_path / "link.db"), *COUNTS)
