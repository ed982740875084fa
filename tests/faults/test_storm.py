"""Logs that change while they are read, and many processes on one index: nothing fails, and the result is right."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.logs.discovery import LogFile, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.reader import plan, reader
from agtrace_indexer.run import index

from agtrace.answers.service import Service
from agtrace.index.trouble import damage_in
from agtrace.settings.model import Settings
from tests.agtrace.terminal import AGTRACE
from tests.agtrace.test_watch import Watcher
from tests.conftest import SAMPLES
from tests.contents import contents
from tests.depth import depth, part
from tests.faults.agent import change, complete
from tests.faults.serving import Server, call, memory, serving

SERVERS = 2
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_event_previews", {"order": "newest", "query": "ebb at eleven"}),
    ("list_sessions", {"limit": 5}),
    ("search_event_previews", {"query": "tide ebb"}),
    ("run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}),
    ("search_event_previews", {"query": "[a-z]+ at eleven", "regex": True}),
    ("get_project_info", {}),
    ("read_artifact", {"ref": "ax://health"}),
)
COMMANDS = (
    ("index",),
    ("index", "--optimize"),
    ("report", "--json"),
    ("sessions", "--json"),
    ("index", "--json"),
    ("search", "eleven", "--by-session"),
)
LARGEST_WAL = 50_000_000
"""Bytes: it is emptied at 24 MB, and a transaction may follow."""
LEAST_SECONDS = depth(0, 3600)
LARGEST = 400_000_000
"""Bytes of memory that a server may take."""


@contextmanager
def agent(folder: Path, seed: int) -> Iterator[None]:
    """A process that changes the logs of a folder; after the block they are whole and at rest."""
    command = [sys.executable, "-m", "tests.faults.agent", folder, str(seed)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.communicate()
    assert process.returncode == 0


def check_contents(database: Path, logs: Path, beside: Path) -> None:
    """Check that what an index holds of the logs that are there is what a fresh one holds, with the same archive.

    Relatives of a log that is gone aren't compared: the archive may have it as it was after it was last read.
    """
    shutil.copytree(database.parent / "archive", beside.parent / "archive", copy_function=os.link)
    index(beside, [str(logs)])
    left_out = related_to_gone(database) | related_to_gone(beside)
    held, fresh = contents(database, gone=False), contents(beside, gone=False)
    for name in fresh:
        one, other = ([row for row in rows if row[0] not in left_out] for rows in (held[name], fresh[name]))
        assert one == other, name
    assert len(held["sessions"]) > len(left_out)


def related_to_gone(database: Path) -> set[str]:
    """Return the sessions of whose relatives one is in a log that is gone."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "WITH RECURSIVE near(id) AS (SELECT s.id FROM session s JOIN file f ON f.id = s.file_id WHERE f.gone "
            "UNION SELECT k.other_id FROM near JOIN kin k ON k.session_id = near.id) "
            "SELECT uid FROM session WHERE id IN near"
        )
        return {uid for (uid,) in rows}


@pytest.mark.parametrize("seed", part(range(60), 3, 16))
def test_a_log_may_change_in_every_way_between_any_two_looks_at_it(
    seed: int, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended in pieces, truncated, replaced, rotated or deleted while logs are listed, and before one is opened."""
    logs, chance, numbers, pending = tmp_path / "logs", random.Random(seed), itertools.count(), dict[Path, bytes]()
    logs.mkdir()

    def look(often: float, found: LogFile) -> LogFile:
        if chance.random() < often:
            change(logs, next(numbers), chance, pending)
        return found

    monkeypatch.setattr(plan, "walk", lambda *args, **how: (look(0.25, found) for found in walk(*args, **how)))
    monkeypatch.setattr(reader, "open_regular", lambda found: open_regular(look(0.15, found)))
    while next(numbers) < 120:
        change(logs, next(numbers), chance, pending)
        if chance.random() < 0.5:
            index(database, [str(logs)])
    monkeypatch.undo()
    complete(pending)
    index(database, [str(logs)])
    check_contents(database, logs, tmp_path / "fresh.sqlite3")


def test_an_agent_writes_clients_ask_and_commands_run_at_once_and_the_index_is_a_fresh_one(
    own_home: Path, database: Path, tmp_path: Path
) -> None:
    """Beside them a watcher follows the logs; memory, open files and the write-ahead log stay bounded."""
    logs = own_home / ".claude" / "projects"
    over = threading.Event()
    answered, refused, end = [0] * SERVERS, list[dict[str, Any]](), time.monotonic() + LEAST_SECONDS
    codes: list[tuple[tuple[str, ...], int]] = []

    def ask(which: int, server: Server) -> None:
        for number, (tool, arguments) in enumerate(itertools.cycle(ASKED), 10):
            if over.is_set():
                return
            server.send(call(number, tool, **arguments))
            answer = server.answer(number)["result"]["structuredContent"]
            answered[which] += 1
            if not answer["success"] or "problem" in answer.get("index", {}):
                refused.append(answer)

    def run(first: int) -> None:
        for command in itertools.islice(itertools.cycle(COMMANDS), first, None):
            if over.is_set():
                return
            codes.append((command, subprocess.run([AGTRACE, *command], stdout=-3, stderr=-3, check=False).returncode))

    with ExitStack() as everybody:
        servers = [everybody.enter_context(serving(tmp_path / "stderr")) for _ in range(SERVERS)]
        for server in servers:
            server.greet()
        watcher = Watcher()
        everybody.callback(watcher.process.kill)
        work = [threading.Thread(target=ask, args=asked) for asked in enumerate(servers)]
        work += [threading.Thread(target=run, args=(first,)) for first in (0, len(COMMANDS) // 2)]
        for thread in work:
            thread.start()
        try:
            with agent(logs / "p", 7):
                while len(codes) < len(COMMANDS) or sum(answered) < 3 * len(ASKED) or time.monotonic() < end:
                    assert all(thread.is_alive() for thread in work), "one of them failed"
                    over.wait(0.1)
        finally:
            over.set()
            for thread in work:
                thread.join()
        assert max(memory(server.process.pid) for server in servers) < LARGEST
        assert max(len(os.listdir(f"/proc/{server.process.pid}/fd")) for server in servers) < 64
        assert database.with_name(f"{database.name}-wal").stat().st_size < LARGEST_WAL
        assert watcher.end()[0] == 0
    assert refused == []
    assert {command for command, code in codes if code} == set()
    assert "internal_error" not in (tmp_path / "stderr").read_text()
    index(database, [])
    check_contents(database, logs, tmp_path / "fresh.sqlite3")


def steady(value: Any) -> Any:
    """An answer without its cursors, which contain the time they were made."""
    if isinstance(value, dict):
        return {key: steady(inner) for key, inner in value.items() if key != "next_cursor"}
    return [steady(inner) for inner in value] if isinstance(value, list) else value


def questions(answers: Service) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool but for the health of the index, which is never the same twice."""
    ids = [session["id"] for session in answers.ask("list_sessions", {"limit": 5}).value["data"]["sessions"]]
    yield "list_sessions", {"sort": "failure_run"}
    yield "get_project_info", {}
    yield "run_sql", {"sql": "SELECT tool, count(*) FROM tool_calls GROUP BY 1"}
    yield "search_event_previews", {"order": "newest", "query": "error", "limit": 20}
    yield "search_event_previews", {"query": "test import"}
    yield "search_event_previews", {"query": "return [a-z]+ error", "regex": True}
    for one, other in itertools.pairwise(ids):
        for level in ("summary", "turns", "steps", "full"):
            yield "get_session_details", {"session_id": one, "detail_level": level}
        yield "get_event_details", {"session_id": one, "event_index": 1}
        yield "get_reasoning_chain", {"session_id": one}
        yield "analyze_session", {"session_id": one}
        yield "read_artifact", {"ref": f"ax://session/{one}"}
        yield "compare_sessions", {"id1": one, "id2": other}


@pytest.mark.thorough
def test_everything_asked_at_once_while_the_index_is_examined_is_answered_as_when_nothing_else_is(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where threads are switched every few microseconds."""
    index(database, [str(SAMPLES / "claude"), str(SAMPLES / "codex")])
    answers = Service(Settings(data_dir=database.parent, environment={}), log=lambda record: None)
    alone = [(tool, given, steady(answers.ask(tool, given).value)) for tool, given in questions(answers)]
    assert {tool for tool, _, _ in alone} == set(answers.tools)
    assert [(tool, given) for tool, given, answer in alone if not answer["success"]] == []
    over = threading.Event()

    def examine() -> list[object]:
        found = []
        while not over.is_set():
            found.append(damage_in(database))
        return found

    def differs(asked: tuple[str, dict[str, Any], Any]) -> bool:
        tool, given, answer = asked
        return bool(steady(answers.ask(tool, given).value) != answer)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(9) as pool:
            examined = pool.submit(examine)
            wrong = [
                asked[:2] for asked, is_wrong in zip(2 * alone, pool.map(differs, 2 * alone), strict=True) if is_wrong
            ]
            over.set()
            found = examined.result()
    finally:
        over.set()
        sys.setswitchinterval(before)
    assert (wrong, {*found}) == ([], {None})
