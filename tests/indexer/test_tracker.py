"""What a server knows of its logs between two answers: nothing that is promised is missed."""

from __future__ import annotations

import ctypes
import errno
import gc
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from agtrace_indexer.run import index, refresh
from agtrace_indexer.watch import watcher as watching
from agtrace_indexer.watch.tracker import ChangeTracker
from agtrace_indexer.watch.watcher import Watcher
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, InotifyFD, Mask, WatchDescriptor

from tests.agtrace.test_watch import add, answer, sessions
from tests.indexer import opencode_stories
from tests.waiting import until

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every run looks at everything"),
              pytest.mark.usefixtures("own_home")]  # fmt: skip


@pytest.fixture
def logs(tmp_path: Path, database: Path, own_home: Path) -> Path:
    folder = tmp_path / "logs"
    add(folder / "1.jsonl", 1)
    add(folder / "a" / "2.jsonl", 2)
    index(database, [str(folder)])
    return folder


def run(tracker: ChangeTracker, database: Path) -> frozenset[str] | None:
    """Bring the index up to date, and return what was looked at."""
    changed = tracker.begin()
    refresh(database, changed=changed)
    tracker.end(well=True)
    return changed


def settled(tracker: ChangeTracker, database: Path) -> ChangeTracker:
    """Run until the index is known to be current."""

    def is_current() -> bool:
        if not (known := tracker.is_current()):
            run(tracker, database)
        return known

    until(is_current, "an index that is known to be current")
    return tracker


@pytest.fixture
def tracker(logs: Path, database: Path) -> ChangeTracker:
    return settled(ChangeTracker(database), database)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever changes, the report of it is late."""
    monkeypatch.setattr(Watcher, "note", lambda *_, **__: None)


@pytest.mark.usefixtures("silent")
def test_an_append_is_known_before_it_is_reported(tracker: ChangeTracker, logs: Path, database: Path) -> None:
    for number in range(3, 13):
        add(logs / "a" / "2.jsonl", number)
        assert not tracker.is_current()
        assert run(tracker, database) == {str(logs / "a" / "2.jsonl")}
        settled(tracker, database)
    assert index(database, []).events == 6 + 30


@pytest.mark.usefixtures("silent")
def test_a_new_log_beside_others_is_known_before_it_is_reported_and_then_its_appends(
    tracker: ChangeTracker, logs: Path, database: Path
) -> None:
    for number in range(3, 7):
        add(logs / "a" / f"{number}.jsonl", number)
        assert not tracker.is_current()
        settled(tracker, database)
        assert sessions(database) == number
        answer(logs / "a" / f"{number}.jsonl", number, "Spring tides.")
        assert not tracker.is_current()
        assert run(tracker, database) == {str(logs / "a" / f"{number}.jsonl")}
        settled(tracker, database)


@pytest.mark.usefixtures("silent")
def test_what_an_agent_writes_into_its_database_is_known_before_it_is_reported(logs: Path, database: Path) -> None:
    agent = opencode_stories.database(logs / "opencode.db", "DELETE")
    opencode_stories.tidal().into_database(agent)
    tracker = settled(ChangeTracker(database), database)
    opencode_stories.put_part(agent, opencode_stories.tidal().messages[0][1][0], at=opencode_stories.START + 1)
    assert not tracker.is_current()
    agent.close()


def test_only_the_last_logs_are_compared(logs: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others it is known when it is reported."""
    monkeypatch.setattr("agtrace_indexer.watch.tracker._MOST", 1)
    tracker = settled(ChangeTracker(database), database)
    answer(logs / "1.jsonl", 1, "Spring tides.")
    until(lambda: not tracker.is_current(), "the report of a change")
    assert run(tracker, database) == {str(logs / "1.jsonl")}


@pytest.mark.parametrize("far", ["b/c/d", "node_modules/../b"])
def test_what_comes_into_new_folders_is_known_when_it_is_reported(
    tracker: ChangeTracker, logs: Path, database: Path, far: str
) -> None:
    (logs / "node_modules").mkdir()
    add(logs / far / "3.jsonl", 3)
    until(lambda: settled(tracker, database) and sessions(database) == 3, "the session in a new folder")
    answer(logs / far / "3.jsonl", 3, "Spring tides.")
    assert not tracker.is_current()


def test_a_folder_that_is_moved_leads_to_a_look_at_everything(
    tracker: ChangeTracker, logs: Path, database: Path, tmp_path: Path
) -> None:
    (logs / "a").rename(logs / "b")
    assert not tracker.is_current()
    assert run(tracker, database) is None
    shutil.move(logs / "b", tmp_path / "elsewhere")
    until(lambda: settled(tracker, database) and index(database, []).files_seen == 1, "one log that is left")


def test_after_lost_events_everything_is_looked_at_and_watching_goes_on(
    tracker: ChangeTracker, logs: Path, database: Path
) -> None:
    lost = InotifyEvent(WatchDescriptor(-1), Mask(InotifyConstants.IN_Q_OVERFLOW), 0, b"")
    next(thread for thread in threading.enumerate() if isinstance(thread, InotifyFD)).handle_event(lost)
    assert not tracker.is_current()
    assert run(tracker, database) is None
    answer(logs / "1.jsonl", 1, "Spring tides.")
    assert not tracker.is_current()
    settled(tracker, database)


def test_a_root_may_come_later_and_be_a_link(logs: Path, database: Path, tmp_path: Path) -> None:
    root, file = tmp_path / "later", tmp_path / "file.jsonl"
    with sqlite3.connect(database) as connection:
        connection.executemany("INSERT INTO root VALUES (?)", [(str(root),), (str(file),)])
    tracker = settled(ChangeTracker(database), database)
    (tmp_path / "real").mkdir()
    root.symlink_to(tmp_path / "real")
    assert not tracker.is_current()
    settled(tracker, database)
    add(tmp_path / "real" / "3.jsonl", 3)
    add(file, 4)
    until(lambda: settled(tracker, database) and sessions(database) == 4, "the sessions of a later root")
    for log in (root / "3.jsonl", file):
        answer(log, 3, "Spring tides.")
        assert not tracker.is_current()
        assert str(log) in (run(tracker, database) or {str(log)})
        settled(tracker, database)


def test_what_another_process_does_to_the_index_is_known(tracker: ChangeTracker, logs: Path, database: Path) -> None:
    add(logs.with_name("more") / "3.jsonl", 3)
    index(database, [str(logs.with_name("more"))])
    assert not tracker.is_current()
    settled(tracker, database)
    for path in database.parent.glob("index.sqlite3*"):
        path.unlink()
    index(database, [str(logs)])
    assert not tracker.is_current()
    settled(tracker, database)


def test_what_a_run_did_not_do_is_left_to_the_next(tracker: ChangeTracker, logs: Path, database: Path) -> None:
    answer(logs / "1.jsonl", 1, "Spring tides.")
    given = tracker.begin()
    tracker.end(well=False)
    assert not tracker.is_current()
    assert given == {str(logs / "1.jsonl")} <= (run(tracker, database) or set())


def no_watches_left(monkeypatch: pytest.MonkeyPatch, _folder: Path) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr("watchdog.observers.inotify_c.inotify_add_watch", refuse)


def a_network_file_system(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    mounts = folder / "mounts"
    mounts.write_text(f"1 1 8:1 / / rw - ext4 /dev/vda rw\n2 1 0:50 / {folder} rw shared:1 - nfs4 far:/home rw\n")
    monkeypatch.setattr(watching, "_MOUNTS", mounts)


@pytest.mark.parametrize("where", [no_watches_left, a_network_file_system])
def test_where_nothing_can_be_watched_every_run_looks_at_everything(
    where: Callable[[pytest.MonkeyPatch, Path], None],
    logs: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    where(monkeypatch, tmp_path)
    watcher, tracker = Watcher(database), ChangeTracker(database)
    watcher.renew()
    assert watcher.problem is not None
    for _ in range(4):
        assert run(tracker, database) is None
        assert not tracker.is_current()


def test_a_watcher_that_is_closed_leaves_no_thread(logs: Path, database: Path) -> None:
    before = set(threading.enumerate())
    watcher = Watcher(database)
    watcher.renew()
    answer(logs / "1.jsonl", 1, "Spring tides.")
    watcher.wait(float("inf"))
    assert watcher.covers([str(logs)])
    watcher.close()
    assert not watcher.covers([str(logs)])
    assert not {thread for thread in threading.enumerate() if thread not in before and thread.is_alive()}
    watcher.end()
    assert watcher.wait(float("inf")), "at once"


def test_a_watcher_that_nobody_holds_leaves_no_thread(logs: Path, database: Path) -> None:
    before = set(threading.enumerate())
    watcher = Watcher(database)
    watcher.renew()
    assert watcher.covers([str(logs)])
    del watcher
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
