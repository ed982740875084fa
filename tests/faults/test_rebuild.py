"""What a rebuild reads, whatever became of the logs; an index of an older version."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from agtrace_indexer.index.catalog import open_database
from agtrace_indexer.index.opening import OlderIndex, open_read_only, write_lock
from agtrace_indexer.run import index
from agtrace_indexer.run.rebuild import rebuild
from agtrace_schema.database import VERSION

from tests.agtrace.terminal import agtrace
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.faults import damage
from tests.indexer.test_files import ROLLOUT, claude, codex, session, sessions, write


def in_place(path: Path, content: bytes) -> None:
    """Write over a file, which stays the same one."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(content)


def replaced(path: Path, content: bytes) -> None:
    write(path.with_suffix(".new"), content).replace(path)


def turned_into_a_link(path: Path, elsewhere: Path) -> None:
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


def compressed(path: Path) -> None:
    write(path.with_name(path.name + ".zst"), zstandard.compress(path.read_bytes()))
    path.unlink()


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda log, elsewhere: None,
    "touched": lambda log, elsewhere: os.utime(log, (1, 1)),
    "appended": lambda log, elsewhere: in_place(log, log.read_bytes() + claude(90)),
    "another log in place, larger": lambda log, elsewhere: in_place(log, claude(91, 30)),
    "another log in place, smaller": lambda log, elsewhere: in_place(log, claude(92)[:300]),
    "the same session in place, larger": lambda log, elsewhere: in_place(
        log, log.read_bytes().replace(b"the", b"another") + claude(93, 9)
    ),
    "replaced by another": lambda log, elsewhere: replaced(log, claude(94, 9)),
    "replaced and longer": lambda log, elsewhere: replaced(log, log.read_bytes() + claude(95)),
    "moved": lambda log, elsewhere: log.rename(log.with_name("moved.jsonl")),
    "deleted": lambda log, elsewhere: log.unlink(),
    "emptied": lambda log, elsewhere: in_place(log, b""),
    "a folder": lambda log, elsewhere: made_a_folder(log),
    "a link": turned_into_a_link,
    "below a link": lambda log, elsewhere: turned_into_a_link(log.parent, elsewhere),
}
"""What may happen to a log between the last run and the damage."""


LOST = {"another log in place, larger", "another log in place, smaller", "emptied"}
"""What overwrites the file itself, and so the link to it."""


def test_whatever_became_of_a_log_since_the_last_run_a_rebuild_has_it_or_names_it(
    database: Path, tmp_path: Path
) -> None:
    logs, absent, elsewhere = (tmp_path / name for name in ("logs", "absent", "elsewhere"))
    elsewhere.mkdir()
    for number in range(20, len(CHANGES) + 20):
        write(logs / str(number) / f"{number}.jsonl", claude(number, 3))
    rollout = write(logs / ROLLOUT, codex())
    write(absent / "50.jsonl", claude(50))
    index(database, [str(logs), str(absent)])
    for number, name in enumerate(CHANGES, 20):
        CHANGES[name](logs / str(number) / f"{number}.jsonl", elsewhere)
    compressed(rollout)
    absent.rename(elsewhere / "absent")
    before = sessions(database).keys()
    done = rebuild(database)
    lost = {session(number) for number, name in enumerate(CHANGES, 20) if name in LOST}
    assert ({one.session for one in done.lost}, done.unread) == (lost, ())
    assert before - lost <= sessions(database).keys()
    rebuilt = contents(database)
    index(database, [], rebuild=True)
    assert contents(database) == rebuilt


def test_a_session_that_neither_the_logs_nor_the_archive_have_is_named(database: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / "logs" / f"{number}.jsonl", claude(number))
    index(database, [str(tmp_path / "logs")])
    (tmp_path / "logs" / "1.jsonl").unlink()
    index(database, [])
    shutil.rmtree(database.parent / "archive")
    said = agtrace("doctor", "--repair")
    assert said.code == 1 and session(1) in said.out and session(2) not in said.out
    damage.run_sql(database, "DROP TABLE root")
    done = rebuild(database)
    assert (done.lost, done.unread) == ((), ("root",)) and sessions(database).keys() == {session(2)}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="nothing tells here when a run waits for the lock")
def test_a_run_that_waited_for_a_rebuild_writes_into_the_index_that_is_there_then(
    database: Path, tmp_path: Path
) -> None:
    write(tmp_path / "logs" / "1.jsonl", claude(1))
    index(database, [str(tmp_path / "logs")])
    write(tmp_path / "logs" / "2.jsonl", claude(2))
    shutil.copy(database, database.with_name("rebuilt"))
    waiting = threading.Thread(target=index, args=(database, ()), kwargs={"patience": 30})
    with write_lock(database):
        waiting.start()
        while _times_open(database.with_suffix(".lock")) < 2:
            pass
        for end in ("-wal", "-shm"):
            database.with_name(database.name + end).unlink(missing_ok=True)
        database.with_name("rebuilt").replace(database)
    waiting.join()
    assert len(contents(database)["sessions"]) == 2


def _times_open(path: Path) -> int:
    return sum(os.path.realpath(f"/proc/self/fd/{name}") == str(path) for name in os.listdir("/proc/self/fd"))


# -- other versions --------------------------------------------------------------------------------


@pytest.fixture
def older(tmp_path: Path, database: Path) -> Path:
    """An index of logs of which one is gone, made by an agtrace that knew fewer tables and columns."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for path in sorted((SAMPLES / "claude").rglob("*.jsonl"))[:3]:
        (logs / path.name).write_bytes(path.read_bytes())
    index(database, [str(logs)])
    sorted(logs.iterdir())[0].unlink()
    index(database, [])
    damage.run_sql(
        database, "DROP TABLE landmark", "DROP TABLE sum_so_far", "DROP INDEX event_own",
        "ALTER TABLE event DROP COLUMN program_id", "ALTER TABLE turn DROP COLUMN reasoning_tokens",
        f"PRAGMA user_version = {VERSION - 1}",
    )  # fmt: skip
    return database


def test_an_older_index_is_named_and_not_touched_by_what_reads_it(older: Path) -> None:
    before = older.read_bytes()
    for opened in (open_database, open_read_only):
        with pytest.raises(OlderIndex, match=f"tables {VERSION - 1}, this one needs {VERSION}"):
            opened(older)
    said = agtrace("sessions")
    assert said.code != 0 and "an older agtrace made the index" in said.err and "agtrace index" in said.err
    assert older.read_bytes() == before


def test_agtrace_index_rebuilds_it_from_the_logs_and_the_archive(older: Path) -> None:
    with closing(sqlite3.connect(older)) as connection:
        texts = connection.execute("SELECT count(*), sum(text_size) FROM block").fetchone()
    said = agtrace("index")
    assert said.code == 0 and "read from the archive: 1 log whose files are gone" in said.err
    with closing(sqlite3.connect(older)) as connection:
        assert connection.execute("SELECT count(*), sum(text_size) FROM block").fetchone() == texts
        gone = "SELECT count(*) FROM session JOIN file ON file.id = file_id WHERE gone"
        assert connection.execute(gone).fetchone() > (0,)
    assert [path.name for path in older.parent.glob("index.*.sqlite3*")] == []  # nothing of the old one is missing
    assert agtrace("doctor").code == 0
