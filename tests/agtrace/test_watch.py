"""`agtrace index --watch` as people and scripts use it: real processes, real notifications, real limits."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import write_lock

from tests.hostile import _claude_lines

AGTRACE = Path(sys.executable).with_name("agtrace")
SECONDS = 300
"""How long anything is waited for at most; on a quiet machine it comes within one."""


class Watcher:
    """A process that watches, and the lines it prints."""

    def __init__(self, *arguments: str | Path, within: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*within, AGTRACE, "index", "--watch", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout and self.process.stderr
        self._out, self._err = _lines(self.process.stdout), _lines(self.process.stderr)

    def line(self) -> str:
        """The next line of stdout."""
        return self._out.get(timeout=SECONDS)

    def trouble(self) -> str:
        """The next line of stderr."""
        return self._err.get(timeout=SECONDS)

    def end(self, by: signal.Signals = signal.SIGTERM, seconds: float = SECONDS) -> tuple[int, list[str], list[str]]:
        """End it; its exit code and the lines that were left on stdout and stderr. A quiet machine needs 0.05 s."""
        self.process.send_signal(by)
        code = self.process.wait(seconds)
        return code, _rest(self._out), _rest(self._err)


def _lines(stream: IO[str]) -> queue.Queue[str]:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def _rest(lines: queue.Queue[str]) -> list[str]:
    return list(iter(lambda: lines.get(timeout=SECONDS), ""))


@contextmanager
def watching(*arguments: str | Path, within: tuple[str, ...] = ()) -> Iterator[Watcher]:
    """A watcher that has said that it watches."""
    watcher = Watcher(*arguments, within=within)
    try:
        while watcher.line() != "watching for changes; Ctrl-C stops":
            pass
        yield watcher
    finally:
        watcher.process.kill()
        watcher.process.wait()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    add(folder / "1.jsonl", 1)
    return folder


def add(log: Path, number: int) -> None:
    """Add a session of three events to a log, in one step; every number is a session of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(line + b"\n" for line in _claude_lines(number))
    if log.exists():
        with log.open("ab") as file:
            file.write(lines)
    else:
        written = Path(os.environ["AGTRACE_DATA_DIR"]).with_name("written")
        written.write_bytes(lines)
        written.replace(log)


def answer(log: Path, number: int, text: str) -> None:
    """Append one more answer to a session."""
    line = _claude_lines(number)[1].replace(b"Two tides a day: flood and ebb.", text.encode())
    with log.open("ab") as file:
        file.write(line.replace(b"4000-8000-000000000002", f"4000-8000-{abs(hash(text)):012}"[:22].encode()) + b"\n")


def sessions(database: Path) -> int:
    with closing(Catalog(database)) as catalog:
        return int(catalog.connection.execute("SELECT count(*) FROM session").fetchone()[0])


def found(text: str) -> bool:
    """Whether `agtrace search` finds a text."""
    said = subprocess.run([AGTRACE, "search", text], capture_output=True, text=True, check=True).stdout
    return "Found 0 events" not in said


# -- what changes is indexed ---------------------------------------------------------------------


def test_an_appended_line_is_in_the_index_when_the_watcher_says_so(logs: Path, database: Path) -> None:
    with watching(logs) as watcher:
        answer(logs / "1.jsonl", 1, "The neap tide follows the half moon.")
        assert watcher.line()[10:] == "1 file read, +1 event"
        shutil.rmtree(logs)  # from here on a search can't index it
        assert watcher.line()[10:] == "1 file gone"
    assert found("neap tide follows")


@pytest.mark.thorough
def test_a_new_log_in_new_folders_is_indexed_and_what_is_appended_to_it(logs: Path) -> None:
    with watching(logs) as watcher:
        log = logs / "a" / "b" / "c" / "2.jsonl"
        add(log, 2)
        assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
        answer(log, 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"


@pytest.mark.thorough
def test_a_log_that_moves_with_its_folder_is_followed(logs: Path, database: Path) -> None:
    add(logs / "a" / "2.jsonl", 2)
    with watching(logs) as watcher:
        (logs / "a").rename(logs / "b")
        assert watcher.line()[10:] == "1 file read"
        answer(logs / "b" / "2.jsonl", 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"
    assert sessions(database) == 2


def test_what_changes_between_the_first_run_and_the_first_notification_is_indexed(logs: Path) -> None:
    watcher = Watcher(logs)
    assert watcher.line().startswith("1 session")
    add(logs / "2.jsonl", 2)
    assert watcher.line() == "watching for changes; Ctrl-C stops"
    assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
    assert watcher.end()[0] == 0


@pytest.mark.thorough
def test_a_log_that_grows_without_a_pause_is_indexed_while_it_grows(logs: Path) -> None:
    indexed = threading.Event()

    def grow() -> None:
        number = 2
        while not indexed.wait(0.05):
            add(logs / "1.jsonl", number)
            number += 1

    with watching(logs) as watcher:
        agent = threading.Thread(target=grow)
        agent.start()
        try:
            assert "file read" in watcher.line()
        finally:
            indexed.set()
            agent.join()


# -- roots ---------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_an_agent_that_is_installed_while_agtrace_watches_is_picked_up(own_home: Path) -> None:
    with watching() as watcher:
        log = own_home / ".claude" / "projects" / "p" / "2.jsonl"
        add(log, 2)
        assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
        answer(log, 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"


@pytest.mark.thorough
def test_a_root_that_goes_and_comes_back_is_watched_again(logs: Path) -> None:
    with watching(logs) as watcher:
        logs.rename(logs.with_name("elsewhere"))
        assert watcher.line()[10:] == "1 file gone"
        add(logs / "2.jsonl", 2)
        assert "+1 session" in watcher.line()
        answer(logs / "2.jsonl", 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"


def test_the_index_does_not_wake_its_own_watcher(tmp_path: Path) -> None:
    add(tmp_path / "1.jsonl", 1)
    with watching(tmp_path) as watcher:
        answer(tmp_path / "1.jsonl", 1, "Spring tides.")
        while "+1 event" not in watcher.line():
            pass
        with pytest.raises(subprocess.TimeoutExpired):
            watcher.process.wait(1.5)
        assert watcher.end() == (0, [], [])


# -- no notifications ----------------------------------------------------------------------------


def limited(limit: str, number: int) -> tuple[str, ...]:
    """A command that runs another one in a user namespace with a limit of inotify."""
    write = f'echo {number} > /proc/sys/user/max_inotify_{limit} && exec "$@"'
    command = ("unshare", "--user", "--map-root-user", "sh", "-c", write, "sh")
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("no user namespace can be made here")
    return command


@pytest.mark.parametrize(
    ("limit", "number"), [("instances", 0), pytest.param("watches", 6, marks=pytest.mark.thorough)]
)
def test_where_no_notifications_are_left_changes_are_looked_for_and_it_is_said_once(
    limit: str, number: int, logs: Path
) -> None:
    for folder in range(10):
        (logs / str(folder)).mkdir()
    with watching(logs, within=limited(limit, number)) as watcher:
        assert "no change notifications (inotify" in watcher.trouble()
        add(logs / "9" / "2.jsonl", 2)
        assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
        answer(logs / "9" / "2.jsonl", 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"
        assert watcher.end() == (0, [], [])


@pytest.mark.thorough
def test_a_limit_that_is_reached_by_new_folders_is_noticed_and_nothing_in_them_missed(logs: Path) -> None:
    """watchdog itself says nothing when it can't watch a folder below another."""
    with watching(logs, within=limited("watches", 4)) as watcher:
        answer(logs / "1.jsonl", 1, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"
        log = logs / "a" / "b" / "c" / "d" / "e" / "2.jsonl"
        add(log, 2)
        assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
        assert "no change notifications (inotify watch limit reached)" in watcher.trouble()
        answer(log, 2, "Neap tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"
        assert watcher.end() == (0, [], [])


@pytest.mark.thorough
def test_notifications_that_failed_are_made_anew(logs: Path, tmp_path: Path) -> None:
    """A folder that is moved away, made again, moved and then removed elsewhere ends a thread of watchdog 7.1."""
    away, here = tmp_path / "away", logs / "a"
    with watching(logs) as watcher:
        for number, step in enumerate(
            [here.mkdir, lambda: here.rename(away), here.mkdir, lambda: here.rename(logs / "b"), away.rmdir], 2
        ):
            step()
            add(logs / f"{number}.jsonl", number)
            assert watcher.line()[10:] == "1 file read, +3 events, +1 session"
        answer(logs / "2.jsonl", 2, "Spring tides.")
        assert watcher.line()[10:] == "1 file read, +1 event"


# -- trouble -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_another_process_that_writes_is_waited_for(logs: Path, database: Path) -> None:
    with watching(logs) as watcher:
        with write_lock(database, SECONDS):
            answer(logs / "1.jsonl", 1, "Spring tides.")
            assert watcher.trouble() == "agtrace: another agtrace is indexing: waiting for it"
        assert watcher.line()[10:] == "1 file read, +1 event"
        assert watcher.end() == (0, [], [])


@pytest.mark.thorough
def test_a_run_that_fails_is_told_once_and_tried_again_until_it_succeeds(logs: Path, database: Path) -> None:
    with watching(logs) as watcher:
        unusable = database.with_name("unusable")
        unusable.write_text("this is no database, but a text of some length\n" * 100)
        unusable.replace(database)
        answer(logs / "1.jsonl", 1, "Spring tides.")
        assert watcher.trouble() == "agtrace: the logs can't be indexed: file is not a database; trying again"
        database.unlink()
        answer(logs / "1.jsonl", 1, "Neap tides.")
        assert "1 file read" in watcher.line()
        assert watcher.end() == (0, [], [])
    assert sessions(database) == 1


def test_an_index_that_cannot_be_opened_at_the_start_ends_it_with_3(logs: Path, database: Path) -> None:
    database.mkdir(parents=True)
    watcher = Watcher(logs)
    assert watcher.process.wait(SECONDS) == 3
    assert watcher.trouble().startswith("agtrace: the index can't be opened")


# -- its output and its end ----------------------------------------------------------------------


@pytest.mark.thorough
def test_json_is_one_object_a_line(logs: Path, database: Path) -> None:
    watcher = Watcher(logs, "--json")
    first = json.loads(watcher.line())
    answer(logs / "1.jsonl", 1, "Spring tides.")
    second = json.loads(watcher.line())
    assert first.keys() - {"unread_agents"} == second.keys()
    assert (second["events"] - first["events"], second["files_changed"], second["index"]) == (1, 1, str(database))
    assert watcher.end() == (0, [], [])


@pytest.mark.thorough
@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_within_a_second_without_a_word(by: signal.Signals, code: int, logs: Path) -> None:
    with watching(logs) as watcher:
        assert watcher.end(by) == (code, [], [])
