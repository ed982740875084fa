"""Logs that change while they are read, and many processes on one index: nothing fails, and the result is right."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from tests.agtrace.terminal import AGTRACE
from tests.agtrace.test_watch import Watcher
from tests.contents import contents
from tests.faults.serving import Server, call, serving


@contextmanager
def agent(folder: Path, seed: int) -> Iterator[None]:
    """A process that changes the logs of a folder; behind the block they are whole and at rest."""
    command = [sys.executable, "-m", "tests.faults.agent", folder, str(seed)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.communicate()
    assert process.returncode == 0


def check_contents(database: Path, logs: Path, beside: Path) -> None:
    """Check that what an index holds of the logs that are there is what a fresh one holds."""
    index(beside, [str(logs)])
    held, fresh = contents(database, gone=False), contents(beside, gone=False)
    for name in fresh:
        assert held[name] == fresh[name], name


@pytest.mark.parametrize("seed", range(2))
def test_logs_may_be_changed_in_every_way_while_they_are_read(seed: int, tmp_path: Path, database: Path) -> None:
    """Appended in pieces, truncated, replaced, rotated, deleted between the look at them and the reading."""
    read = 0
    with agent(tmp_path / "logs", seed):
        while read < 100:
            read += index(database, [str(tmp_path / "logs")]).files_opened
    index(database, [])
    check_contents(database, tmp_path / "logs", tmp_path / "fresh.sqlite3")


def test_two_indexers_a_watcher_and_two_servers_share_an_index_while_logs_change(
    own_home: Path, database: Path, tmp_path: Path
) -> None:
    logs = own_home / ".claude" / "projects"
    over = threading.Event()
    answers: list[dict[str, object]] = []
    codes: list[int] = []

    def search(server: Server) -> None:
        number = 10
        while not over.is_set():
            number += 1
            server.send(call(number, "search_event_previews", order="newest", query="ebb at eleven"))
            answers.append(server.answer(number)["result"]["structuredContent"])

    def run() -> None:
        while not over.is_set():
            codes.append(subprocess.run([AGTRACE, "index"], stdout=subprocess.DEVNULL, check=False).returncode)

    with ExitStack() as everybody:
        servers = [everybody.enter_context(serving(tmp_path / "stderr")) for _ in range(2)]
        for server in servers:
            server.greet()
        watcher = Watcher()
        everybody.callback(watcher.process.kill)
        work = [threading.Thread(target=search, args=(server,)) for server in servers]
        work += [threading.Thread(target=run) for _ in range(2)]
        for thread in work:
            thread.start()
        try:
            with agent(logs / "p", 7):
                while len(codes) < 6 or len(answers) < 20:
                    assert all(thread.is_alive() for thread in work), "one of them failed"
                    over.wait(0.1)
        finally:
            over.set()
            for thread in work:
                thread.join()
        assert watcher.end()[0] == 0
    assert answers and all(answer["success"] for answer in answers)
    assert codes and set(codes) == {0}
    assert "internal_error" not in (tmp_path / "stderr").read_text()
    index(database, [])
    check_contents(database, logs, tmp_path / "fresh.sqlite3")
