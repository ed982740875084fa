"""The archive: everything comes back from it once the logs are gone, whatever happened while it was written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.content import ZSTD_MAGIC
from agtrace_indexer.reader.plan import all_rows
from agtrace_indexer.run import index

from tests.conftest import copy_of_samples
from tests.contents import contents
from tests.depth import depth
from tests.indexer.test_codex_families import T0, Rollout, rotated
from tests.indexer.test_files import claude, session, sessions, write

WEEK = 7 * 24 * 3600


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return copy_of_samples(tmp_path / "logs")


def told(database: Path) -> dict[str, Any]:
    return {**contents(database), "files": []}


def emptied(logs: Path) -> None:
    shutil.rmtree(logs)
    logs.mkdir()


def afresh(database: Path, logs: Path) -> dict[str, Any]:
    """What a new index says in a data folder with nothing but the archive."""
    for path in database.parent.iterdir():
        if path.name != "archive":
            path.unlink()
    index(database, [str(logs)])
    return told(database)


def tend(database: Path, later: float = 0) -> None:
    list(Archive(database).tend((), all_rows, time.time() + later))


def test_an_index_of_the_archive_says_what_that_of_the_logs_said(logs: Path, database: Path) -> None:
    write(logs / "c.jsonl", claude(3))
    write(logs / "c.json", next(logs.rglob("session-*.json")).read_bytes())
    index(database, [str(logs)])
    emptied(logs)
    index(database, [])
    before = told(database)
    assert before["texts"]
    assert afresh(database, logs) == before
    index(database, [], rebuild=True)
    assert told(database) == before
    tend(database, WEEK)
    kept = [path.read_bytes() for path in (database.parent / "archive").rglob("*.jsonl")]
    assert kept and all(data.startswith(ZSTD_MAGIC) for data in kept)
    assert afresh(database, logs) == before
    assert {path.stat().st_mode & 0o77 for path in (database.parent / "archive").rglob("*/")} == {0}


def test_logs_that_come_back_after_they_were_read_from_the_archive_are_as_before(logs: Path, database: Path) -> None:
    index(database, [str(logs)])
    before = contents(database)
    logs.rename(logs.with_name("away"))
    index(database, [])
    assert contents(database) == before, "a root that vanished marks nothing"
    logs.mkdir()
    afresh(database, logs)
    logs.rmdir()
    logs.with_name("away").rename(logs)
    index(database, [])
    assert contents(database) == before


def test_a_log_is_linked_and_read_once(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1))
    first = index(database, [str(logs)])
    assert log.stat().st_nlink == 2
    assert index(database, []).files_opened == 0 and first.bytes_read
    with log.open("ab") as file:
        file.write(claude(1, more=2)[len(claude(1)) :])
    assert index(database, []).files_opened == 1
    assert log.stat().st_nlink == 2


def test_of_a_rewritten_log_the_new_content_counts_and_while_it_cant_be_read_the_older_one(
    tmp_path: Path, database: Path
) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", claude(1))
    index(database, [str(log.parent)])
    write(log.with_suffix(".new"), claude(1).replace(b"tide", b"wave")).replace(log)
    index(database, [])
    assert "tide" not in str(told(database)["texts"]) and "wave" in str(told(database)["texts"])
    write(log.with_suffix(".new"), b"").replace(log)
    index(database, [])
    before = contents(database)
    assert "wave" in str(before["texts"])
    afresh(database, log.parent)
    assert contents(database)["texts"] == before["texts"] and sessions(database) == {session(1): (str(log), False)}
    (older,) = (database.parent / "archive").glob("until-*")
    tend(database, WEEK - 60)
    assert older.exists()
    tend(database, WEEK + 24 * 3600)
    assert not older.exists()


def changes(logs: Path) -> None:
    """A log is rewritten, another one takes a place, one moves, one vanishes, one is new."""
    write(logs / "new", claude(1).replace(b"tide", b"wave")).replace(logs / "1.jsonl")
    write(logs / "new", claude(12)).replace(logs / "2.jsonl")
    (logs / "3.jsonl").rename(logs / "moved.jsonl")
    (logs / "4.jsonl").unlink()
    write(logs / "new", (logs / "5.jsonl").read_bytes() + claude(5, more=1)[len(claude(5)) :]).replace(logs / "5.jsonl")
    write(logs / "6.jsonl", claude(6))


STEPS = ("link", "replace", "unlink", "fsync", "mkdir")


def killed_at(step: int, run: Callable[[], object]) -> bool:
    """Run in a process that is killed before a step of the archive; return whether it came to that one."""
    if (child := os.fork()) == 0:
        left = [step]

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                left[0] -= 1
                return os._exit(9) if left[0] < 0 else real(*given, **named)

            return call

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_run_that_is_killed_at_any_step_loses_nothing_that_was_archived(tmp_path: Path) -> None:
    for step in range(0, 200, depth(3, 1)):
        logs, database = tmp_path / str(step) / "logs", tmp_path / str(step) / "data" / "index.sqlite3"
        for number in range(1, 6):
            write(logs / f"{number}.jsonl", claude(number))
        index(database, [str(logs)])
        changes(logs)
        killed = killed_at(step, lambda database=database: (index(database, []), tend(database, WEEK)))
        if step % 2:
            index(database, [])
        emptied(logs)
        afresh(database, logs)
        assert sessions(database).keys() >= {session(number) for number in range(1, 6)}, step
        if not killed:
            assert sessions(database).keys() == {session(number) for number in (1, 2, 3, 4, 5, 6, 12)}
            return
    raise AssertionError("it never ended")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system, if there is one."""
    places = [Path(place) for place in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(place)]
    others = [place for place in places if place.stat().st_dev != tmp_path.stat().st_dev]
    with tempfile.TemporaryDirectory(dir=next(iter(others), None)) as folder:
        yield Path(folder)


def test_logs_on_another_file_system_are_copied_once_they_are_still(elsewhere: Path, database: Path) -> None:
    if os.stat(elsewhere).st_dev == os.stat(database.parent.parent).st_dev:
        pytest.skip("there is no other file system here")
    logs = copy_of_samples(elsewhere / "logs")
    still = {path for path in logs.rglob("*") if path.is_file()}
    live = write(logs / "live.jsonl", claude(1))
    for path in still:
        os.utime(path, (1_790_000_000, 1_790_000_000))
    index(database, [str(logs)])
    assert not list((database.parent / "archive").rglob("live.jsonl"))
    live.unlink()
    index(database, [], rebuild=True)
    before = told(database)
    assert session(1) in {row[0] for row in before["sessions"]}, "it stays until everything is read again"
    live.touch()
    emptied(logs)
    afresh(database, logs)
    assert {row[0] for row in before["sessions"]} - {row[0] for row in told(database)["sessions"]} == {session(1)}


@pytest.mark.parametrize("error", [errno.EXDEV, errno.EROFS, errno.ENOSPC, errno.EPERM, errno.EMLINK, errno.EACCES])
def test_what_cant_be_archived_is_indexed_all_the_same(
    error: int, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only folder, a full disk, another file system, a file that Windows has open."""
    log = write(tmp_path / "logs" / "a.jsonl", claude(1))

    with monkeypatch.context() as patched:
        refusing(patched, error, "link", "mkdir")
        index(database, [str(log.parent)])
    assert sessions(database) == {session(1): (str(log), False)} and log.stat().st_nlink == 1
    list(Archive(database).tend([*_live(database)], all_rows, time.time()))
    assert log.stat().st_nlink == 2


def _live(database: Path) -> Iterator[Any]:
    from agtrace_indexer.index.catalog import Catalog

    catalog = Catalog(database)
    yield from catalog.logs_there()
    catalog.close()


def test_a_log_that_is_replaced_while_it_is_linked_is_kept_as_it_is_then(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, link = write(tmp_path / "logs" / "a.jsonl", claude(1)), os.link

    def replaced_first(source: Any, target: Any, **named: Any) -> None:
        write(tmp_path / "other", claude(2)).replace(log)
        link(source, target, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", replaced_first)
        index(database, [str(log.parent)])
    index(database, [])
    log.unlink()
    afresh(database, log.parent)
    assert sessions(database) == {session(2): (str(log), True)}


def refusing(patched: pytest.MonkeyPatch, error: int, *steps: str) -> None:
    """Have steps of the archive fail with an error."""

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            if any(isinstance(one, int) or f"{os.sep}archive" in str(one) for one in given):
                raise OSError(error, os.strerror(error))
            return real(*given, **named)

        return step

    for name in steps:
        patched.setattr(os, name, failing(getattr(os, name)))


def test_a_full_disk_costs_no_log_and_is_made_up_for(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", claude(1))
    index(database, [str(log.parent)])
    log.unlink()
    with monkeypatch.context() as patched:
        refusing(patched, errno.ENOSPC, "fsync")
        tend(database, WEEK)
    (kept,) = (path for path in (database.parent / "archive").rglob("*") if path.is_file())
    assert kept.read_bytes() == claude(1)
    tend(database, WEEK)
    assert kept.read_bytes().startswith(ZSTD_MAGIC)


def test_what_windows_refuses_while_a_log_is_open_is_made_up_for_later(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that somebody has open can't be replaced or removed there."""
    log = write(tmp_path / "logs" / "a.jsonl", claude(1))
    index(database, [str(log.parent)])
    write(log.with_suffix(".new"), claude(1).replace(b"tide", b"wave")).replace(log)
    with monkeypatch.context() as patched:
        refusing(patched, errno.EACCES, "replace", "unlink")
        index(database, [])
    assert "tide" not in str(told(database)["texts"])
    list(Archive(database).tend([*_live(database)], all_rows, time.time()))
    log.unlink()
    assert "wave" in str(afresh(database, log.parent)["texts"])
    assert sorted(path.name[:5] for path in (database.parent / "archive").iterdir()) == ["logs", "until"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked here")
def test_two_indexers_at_once_have_one_archive(logs: Path, database: Path) -> None:
    if (child := os.fork()) == 0:
        index(database, [str(logs)], patience=300)
        os._exit(0)
    index(database, [str(logs)], patience=300)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    emptied(logs)
    index(database, [])
    before = told(database)
    assert afresh(database, logs) == before and Archive(database).size().logs == Archive(database).size().deleted


def test_a_thread_in_several_rollouts_stays_linked(tmp_path: Path, database: Path) -> None:
    first = Rollout(tmp_path / "logs", T0).turn("one", 100)
    for age, log in enumerate((first, rotated(first, 8).turn("two", 100)), 1):
        os.utime(log.write(), (1_790_000_000 + age, 1_790_000_000 + age))
    index(database, [str(tmp_path / "logs")])
    list(Archive(database).tend([*_live(database)], all_rows, time.time() + WEEK))
    assert [path.stat().st_nlink for path in (database.parent / "archive").rglob("*.jsonl")] == [2, 2]


def test_two_data_folders_have_an_archive_each(logs: Path, database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "index.sqlite3"
    for one in (database, other, database):
        index(one, [str(logs)])
    emptied(logs)
    index(database, [])
    before = told(database)
    assert afresh(database, logs) == afresh(other, logs) == before


def test_without_an_archive_what_agents_delete_is_gone(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1))
    index(database, [str(logs)])
    assert Archive(database).size().deleted == 0 < Archive(database).size().logs
    (logs / "b.jsonl").write_bytes(claude(2))
    index(database, [])
    log.unlink()
    index(database, [])
    assert session(1) in sessions(database) and Archive(database).size().deleted == 1
    index(database, [], archive=False)
    assert session(1) not in sessions(database) and not (database.parent / "archive").exists()
    (logs / "b.jsonl").unlink()
    index(database, [], archive=False)
    assert session(2) not in sessions(database)
    assert index(database, [], archive=False).files_opened == 0 and not (database.parent / "archive").exists()
