"""What a repair carries over and what it reads again; other processes during a repair, or after it was killed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import zstandard
from agtrace_indexer.forget import forget
from agtrace_indexer.index.lock import WriteLock
from agtrace_indexer.index.tombstones import digest_of
from agtrace_indexer.repair.repair import examine, repair
from agtrace_indexer.run import index

from agtrace.index.soundness import Soundness
from tests.agtrace.asking import Asker, claude_log
from tests.agtrace.terminal import agtrace_here
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.depth import depth
from tests.faults import damage
from tests.indexer.test_files import ROLLOUT, claude, codex, write


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


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "index.sqlite3"


def test_whatever_became_of_a_log_since_the_last_run_a_repaired_index_holds_what_an_undisturbed_one_does(
    database: Path, tmp_path: Path
) -> None:
    logs, absent, elsewhere = (tmp_path / name for name in ("logs", "absent", "elsewhere"))
    elsewhere.mkdir()
    changing = {write(logs / str(n) / f"{n}.jsonl", claude(n, 3)): how for n, how in enumerate(CHANGES, 1)}
    rollout, chat = write(logs / ROLLOUT, codex()), next(SAMPLES.rglob("session-*.json"))
    document = json.loads(chat.read_bytes())
    written = write(
        logs / "tmp" / "chats" / chat.name, json.dumps(document | {"messages": document["messages"][:4]}).encode()
    )
    write(absent / "50.jsonl", claude(50))
    index(database, [str(logs), str(absent)])
    for log, how in changing.items():
        CHANGES[how](log, elsewhere)
    compressed(rollout)
    in_place(written, chat.read_bytes())
    absent.rename(elsewhere / "absent")
    undisturbed = tmp_path / "undisturbed" / "index.sqlite3"
    shutil.copytree(database.parent, undisturbed.parent)
    index(undisturbed, ())
    damage.write(database, 60, (12).to_bytes(4, "little"))
    done = repair(database)
    assert (done.lost, done.unread) == ((), ())
    expected, found = contents(undisturbed), contents(database)
    for name in expected:
        assert found[name] == expected[name], name


def test_what_no_log_brings_back_is_taken_over_or_named(database: Path, tmp_path: Path) -> None:
    """Logs below a root whose name is lost; a session that its log, though it is there, doesn't hold any more."""
    logs = tmp_path / "logs"
    for number in (1, 2, 3):
        write(logs / f"{number}.jsonl", claude(number))
    index(database, [str(logs)])
    before = contents(database)["sessions"]
    damage.run_sql(database, "DROP TABLE root")
    done = repair(database)
    assert done.lost == () and "root" in done.unread
    assert contents(database)["sessions"] == before
    index(database, [str(logs)])
    damage.run_sql(
        database, "UPDATE session SET own_id = 'other' WHERE id = 2", "DROP TABLE turn", "DROP TABLE request"
    )
    done = repair(database)
    (lost,) = done.lost
    assert lost.session == before[1][0] and lost.kept == 0 < lost.events
    assert contents(database)["sessions"] == before


# -- an index of no bytes --------------------------------------------------------------------------


def test_an_index_of_no_bytes_is_damaged_for_all_and_a_repair_says_what_it_cannot_know(
    database: Path, tmp_path: Path
) -> None:
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    damage.truncate(database, 0)
    with pytest.raises(sqlite3.DatabaseError, match="empty"):
        index(database, ())
    assert database.stat().st_size == 0
    assert examine(database).tables == ("the file is empty",)
    said = agtrace_here("doctor", AGTRACE_DATA_DIR=str(database.parent))
    assert said.code == 3 and "agtrace doctor --repair" in said.err
    done = repair(database)
    assert done.found and done.others_lost and "root" in done.unread


# -- who meets a repair ----------------------------------------------------------------------------


def test_what_a_killed_repair_was_building_is_removed_by_the_next_run_that_writes_and_by_forget(
    database: Path, tmp_path: Path
) -> None:
    log = write(tmp_path / "logs" / "1.jsonl", claude(1))
    index(database, [str(log.parent)])
    left = [database.with_name(f"index.repairing.{end}") for end in ("sqlite3", "sqlite3-wal", "header")]
    for writing in (
        lambda: write(tmp_path / "logs" / "2.jsonl", claude(2)) and index(database, ()),
        lambda: forget(database, [digest_of("claude_code", "nobody")], now=time.time()),
    ):
        for path in left:
            path.write_bytes(log.read_bytes())
        writing()
        assert not any(path.exists() for path in left)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="nothing tells here when a run waits for the lock")
def test_a_run_that_waited_for_a_repair_writes_into_the_index_that_lies_there_then(
    database: Path, tmp_path: Path
) -> None:
    write(tmp_path / "logs" / "1.jsonl", claude(1))
    index(database, [str(tmp_path / "logs")])
    write(tmp_path / "logs" / "2.jsonl", claude(2))
    shutil.copy(database, database.with_name("repaired"))
    waiting = threading.Thread(target=index, args=(database, ()), kwargs={"patience": 30})
    with WriteLock(database):
        waiting.start()
        while _times_open(database.with_suffix(".lock")) < 2:
            pass
        for end in ("-wal", "-shm"):
            database.with_name(database.name + end).unlink(missing_ok=True)
        database.with_name("repaired").replace(database)
    waiting.join()
    assert len(contents(database)["sessions"]) == 2


def _times_open(path: Path) -> int:
    return sum(os.path.realpath(f"/proc/self/fd/{name}") == str(path) for name in os.listdir("/proc/self/fd"))


def test_a_crash_while_the_new_index_is_put_in_place_loses_no_commit(database: Path, tmp_path: Path) -> None:
    """Also where only the word index was damaged, and the newest commit is in the write-ahead log only."""
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    crash = """
import os, sqlite3, sys
from pathlib import Path
from agtrace_indexer.repair.repair import repair
database, replace = Path(sys.argv[1]), os.replace
connection = sqlite3.connect(database, isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("DROP INDEX event_place")
connection.execute("INSERT INTO meta VALUES ('newest', 'commit')")
if os.fork() == 0:
    os._exit(0)
os.replace = lambda source, target: os._exit(9) if Path(target) == database else replace(source, target)
repair(database)
"""
    ended = subprocess.run([sys.executable, "-c", crash, database], timeout=60, check=False)
    assert ended.returncode == 9
    kept = [path for path in database.parent.glob("*.sqlite3") if "repairing" not in path.name]
    assert any(_newest(path) for path in kept)
    assert repair(database).damaged is None


def _newest(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT 1 FROM meta WHERE key = 'newest'").fetchone() is not None


# -- what is said of it ----------------------------------------------------------------------------


def test_nobody_waits_for_a_look_at_the_index_and_a_damaged_one_is_looked_at_again_once_it_changed(
    database: Path, tmp_path: Path
) -> None:
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    soundness = Soundness(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as holding:
        holding.execute("PRAGMA locking_mode=EXCLUSIVE")
        holding.execute("BEGIN EXCLUSIVE")
        holding.execute("UPDATE meta SET value = value")
        began = time.monotonic()
        assert soundness.damage(seconds=0) is None
        assert time.monotonic() - began < 2, "a look waits 5 s for a lock"
    assert soundness.damage(seconds=None) is None
    sound = database.read_bytes()
    damage.run_sql(database, "DROP TABLE event")
    assert soundness.damage(seconds=None) is soundness.damage(seconds=None, good_for=60) is None, "it was just sound"
    found = soundness.damage(seconds=None, good_for=0)
    assert found is not None and "damaged" in str(found) and soundness.damage(seconds=0) is found
    in_place(database, sound)
    assert soundness.damage(seconds=None) is None


def test_doctor_and_repair_say_what_is_so(own_home: Path, tmp_path: Path) -> None:
    log = write(own_home / ".claude" / "projects" / "-p" / "1.jsonl", claude(1))
    said = agtrace_here("doctor").out
    assert "1 session, " in said and "Claude Code: 1 session in 1 file" in said
    database = next((own_home.parent).rglob("index.sqlite3"))
    said = agtrace_here("doctor", "--repair").out
    assert said.startswith("the index is sound: nothing to repair")
    damage.truncate(database, database.stat().st_size // 2 // damage.PAGE * damage.PAGE)
    told = repair(database, [str(own_home)]).found
    assert len({*told.tables, *told.derived}) == len([*told.tables, *told.derived])
    session = contents(database)["sessions"][0]
    forget(database, [digest_of("claude_code", session[1])], now=time.time())
    said = agtrace_here("doctor")
    assert "their sessions were forgotten: 1 file" in said.out and "no logs found" not in said.out
    assert log.exists()
    damage.run_sql(database, "DROP TABLE root")
    assert "keeps what is archived; the answer covers" in agtrace_here("sessions").err


# -- looked at twice -------------------------------------------------------------------------------


@contextmanager
def mended_before_the_second_look(database: Path, sound: bytes) -> Iterator[list[str]]:
    """What another process puts right between a look and the next one, which is in a thread of its own."""
    looks: list[str] = []

    def mend(*_: object) -> None:
        name = threading.current_thread().name
        if name.startswith("ThreadPoolExecutor") and name not in looks:
            looks.append(name)
            in_place(database, sound)

    threading.setprofile(mend)
    try:
        yield looks
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]


def test_only_what_is_seen_twice_is_damage(database: Path, tmp_path: Path) -> None:
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    sound = database.read_bytes()
    damage.run_sql(database, "DROP TABLE event")
    assert examine(database)
    with mended_before_the_second_look(database, sound) as looks:
        assert not examine(database)
    assert looks


def test_an_answer_that_met_trouble_is_read_once_more(tmp_path: Path) -> None:
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    claude_log(tmp_path / "logs", "fb3cff44-13ae-41a6-a6df-f287e0552835").prompt("When is the tide?")
    expected, database = asker.ask("list_sessions")["data"], asker.settings.database
    sound = database.read_bytes()
    damage.run_sql(database, "DROP TABLE session")
    assert "the index is damaged" in asker.error("list_sessions")["message"]
    with mended_before_the_second_look(database, sound) as looks:
        assert asker.ask("list_sessions")["data"] == expected
    assert looks


def test_no_error_by_itself_makes_an_index_damaged(database: Path, tmp_path: Path) -> None:
    index(database, [str(write(tmp_path / "1.jsonl", claude(1)))])
    soundness, error = Soundness(database), sqlite3.DatabaseError("database disk image is malformed")
    told = soundness.unusable(error)
    assert "damaged" not in str(told) and "repair" not in told.hint and "Try again" in told.hint
    damage.run_sql(database, "DROP TABLE event")
    assert "the index is damaged (event is missing" in str(soundness.unusable(error))


MISFITS = {
    "names of tools and programs": "DELETE FROM name",
    "names of programs": "DELETE FROM name WHERE id IN (SELECT program_id FROM event)",
    "times of blocks": "UPDATE block SET t0 = t0 + 8",
    "kinds of events of blocks": "UPDATE block SET types = types + 1024",
    "ways to use a file": "UPDATE touched SET access = 'wxyz'",
    "figures": "DELETE FROM token_usage",
    "files' names": "DELETE FROM path",
    "projects": "DELETE FROM project",
    "numbers of programs": "UPDATE event SET program_id = 'x' WHERE program_id IS NOT NULL",
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> damage.Undisturbed:
    return damage.Undisturbed.make(tmp_path_factory.mktemp("undisturbed"), lines=depth(400, 10_000))


@pytest.mark.parametrize("what", MISFITS)
def test_rows_that_fit_no_others_are_mended_and_the_sessions_named(
    what: str, undisturbed: damage.Undisturbed, tmp_path: Path
) -> None:
    database = undisturbed.copy(tmp_path / "damaged")
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(MISFITS[what]).rowcount > 0
        connection.commit()
    assert examine(database)
    done = repair(database, [str(undisturbed.logs)])
    assert not examine(database) and done.lost
    found = damage.differences(undisturbed.database, database, done)
    assert [difference for difference in found if "are there" in difference] == []
