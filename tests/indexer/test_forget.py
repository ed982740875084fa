"""What is forgotten is gone from every byte of the data folder, stays gone, and takes nothing else with it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from agtrace_indexer.families import copies as attribution
from agtrace_indexer.families.belonging import Logs
from agtrace_indexer.forget import forget
from agtrace_indexer.index import tombstones
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.maintenance import optimize
from agtrace_indexer.parallel import pool
from agtrace_indexer.reader.plan import make_plan
from agtrace_indexer.run import index

from tests.agtrace.asking import ClaudeLog, claude_log
from tests.conftest import copy_of_samples
from tests.contents import contents
from tests.indexer.forgettable import (
    AGENT,
    CLAUDE,
    IDS,
    PLACES,
    SESSIONS,
    STAYS,
    WORD,
    found_in,
    killed_at,
    marker,
    write,
)

DAY = 24 * 3600
EVERYTHING = [marker(place) for place in PLACES]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Logs to be forgotten, and one that stays."""
    write(tmp_path / "logs")
    return tmp_path / "logs"


@pytest.fixture
def data(database: Path, home: Path) -> Path:
    """The data folder with an index of these logs, its words covered."""
    index(database, [str(home)])
    optimize(database)
    return database.parent


def sessions(database: Path) -> set[str]:
    """The ids that the index has."""
    with closing(sqlite3.connect(database)) as connection:
        return {row[0] for row in connection.execute("SELECT uid FROM session")}


def digests(database: Path, *ids: str) -> set[str]:
    """What tombstones say of the sessions with these ids, and of all that goes with them."""
    with closing(sqlite3.connect(database)) as connection:
        logs = Logs(connection)
        rows = connection.execute("SELECT uid, file_id FROM session").fetchall()
        return logs.digests(logs.with_all_of(file for uid, file in rows if uid in ids))


def forget_here(database: Path, *ids: str) -> None:
    """Forget sessions, all traces of them included."""
    assert forget(database, digests(database, *ids), now=time.time()) is None


def fresh(folder: Path, *roots: Path) -> dict[str, Any]:
    """What an index says that knows nothing else than these logs, without its files."""
    index(folder / "index.sqlite3", [str(root) for root in roots])
    return without_files(folder / "index.sqlite3")


def without_files(database: Path) -> dict[str, Any]:
    said = contents(database)
    del said["files"]
    return said


# --- the bytes ---


def test_no_byte_of_a_forgotten_session_is_left_in_the_data_folder(data: Path, database: Path) -> None:
    assert found_in(data, *EVERYTHING, *IDS) == {*EVERYTHING, *IDS}, "they stand there before"
    forget_here(database, *SESSIONS)
    assert found_in(data, WORD, *IDS) == set()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert sessions(database) == {STAYS}
    assert {path.stat().st_mode & 0o777 for path in data.iterdir() if path.is_file()} == {0o600}


def test_what_is_forgotten_stays_so_whatever_becomes_of_its_log(data: Path, database: Path, home: Path) -> None:
    forget_here(database, *SESSIONS)
    (log,) = home.rglob(f"{CLAUDE}.jsonl")
    rollout = next(home.rglob("rollout*.jsonl"))
    document = next(home.rglob("session-*.json"))
    whole = document.read_text()
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: log.open("a").write(log.read_text()),
        lambda: document.write_text(document.read_text() + " "),
        lambda: document.write_text(document.read_text()[:-20]),  # half-written
        lambda: document.write_text(""),
        lambda: document.write_text(whole),
        rollout.unlink,  # its compressed form is what is left
        lambda: log.rename(home / "renamed.jsonl"),
        lambda: (home / "packed.zst").write_bytes(zstandard.compress((home / "renamed.jsonl").read_bytes())),
        lambda: [path.unlink() for path in data.iterdir() if path.name not in ("forgotten", "archive")],
        lambda: index(database, [], rebuild=True),
    ]
    for change in changes:
        change()
        index(database, [str(home)])
        assert sessions(database) == {STAYS}
        assert found_in(data, WORD, *IDS) == set()
        with closing(Catalog(database)) as catalog:
            assert make_plan(catalog, [str(home)]).empty, "the next run has nothing to do"


def test_workers_leave_forgotten_logs_unread(
    data: Path, database: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_here(database, *SESSIONS)
    for path in data.glob("index.*"):
        path.unlink()
    monkeypatch.setattr(pool, "LEAST", 0)
    monkeypatch.setattr(pool, "cores", lambda: 2)
    index(database, [str(home)])
    assert sessions(database) == {STAYS}
    assert found_in(data, WORD, *IDS) == set()
    assert index(database, []).files_opened == 0


def test_a_log_that_tells_its_id_late_goes_again_without_a_trace(database: Path, tmp_path: Path) -> None:
    """Its first lines name nobody: they are read, until the line comes that does."""
    log = claude_log(tmp_path / "logs", CLAUDE).prompt(f"Find the {WORD}.")
    index(database, [str(tmp_path)])
    forget_here(database, CLAUDE)
    late = tmp_path / "logs" / f"{WORD}.jsonl"
    used = {"type": "tool_use", "id": "t", "name": marker("tool"), "input": {"file_path": f"/{marker('file')}.py"}}
    calling = {"type": "assistant", "uuid": "0", "message": {"role": "assistant", "content": [used]}}
    summary = {"type": "summary", "summary": "the wombat", "leafUuid": "b0b1f0d2-0000-4000-8000-000000000001"}
    late.write_text(f"{json.dumps(summary)}\n{json.dumps(calling)}\n")
    index(database, [])
    planted = {WORD, marker("tool"), marker("file")}
    assert found_in(database.parent, *planted) == planted
    late.open("a").write(log.path.read_text())
    index(database, [])
    assert sessions(database) == set()
    assert found_in(database.parent, WORD) == set()


def test_a_new_subagent_of_a_forgotten_session_is_forgotten(data: Path, database: Path, home: Path) -> None:
    forget_here(database, CLAUDE)
    agent = ClaudeLog(home / "claude" / "projects" / "flat" / "agent-00c0ffee.jsonl", CLAUDE)
    agent.write("user", marker("task"), isSidechain=True, agentId="00c0ffee")
    index(database, [])
    assert AGENT not in sessions(database) and "agent-00c0ffee" not in sessions(database)
    assert found_in(data, marker("task")) == set()


def test_an_index_whose_only_root_was_forgotten_is_none_of_the_homes(database: Path, tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", CLAUDE).prompt(f"Find the {WORD}.")
    claude_log(tmp_path / "home", STAYS).prompt("Where is the tide table?")
    index(database, [str(log.path)])
    forget_here(database, CLAUDE)
    assert index(database, [], otherwise=[str(tmp_path / "home")]).sessions == 0
    assert index(database, [str(tmp_path / "home")]).sessions == 1


def test_what_a_later_subagent_of_a_forgotten_session_starts_is_forgotten(database: Path, tmp_path: Path) -> None:
    def thread(number: int, parent: int | None = None) -> None:
        ids = [f"01a0612d-64c0-7fad-8335-1cfcb242ab0{n}" for n in (number, parent or 0)]
        spawned = {"subagent": {"thread_spawn": {"parent_thread_id": ids[1], "depth": 1}}}
        meta = {"id": ids[0], "cwd": "/home/mira", "source": "cli" if parent is None else spawned}
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{WORD}{number}"}]}
        records = [("session_meta", meta), ("response_item", said)]
        lines = [{"timestamp": "2026-09-02T08:12:40.000Z", "type": kind, "payload": it} for kind, it in records]
        log = tmp_path / "later" / f"rollout-2026-09-02T09-12-40-{ids[0]}.jsonl"
        log.parent.mkdir(exist_ok=True)
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    thread(1)
    index(database, [str(tmp_path / "later")])
    before = sessions(database)
    forget_here(database, "01a0612d-64c0-7fad-8335-1cfcb242ab01")
    for number in (2, 3, 4):
        thread(number, number - 1)
        index(database, [])
    assert len(sessions(database)) == len(before) - 1
    assert found_in(database.parent, *(f"{WORD}{number}" for number in (1, 2, 3, 4))) == set()


# --- crashes and readers ---


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked here")
def test_a_kill_at_any_moment_is_made_good_by_the_next_run(data: Path, database: Path, tmp_path: Path) -> None:
    gone = digests(database, *SESSIONS)
    for statement in (0, 3, 12, 40, 90, 150, 200, 230, 260):
        copy = Path(shutil.copytree(data, tmp_path / str(statement)))
        if not killed_at(statement, copy / database.name, gone):
            assert statement > 200, "it takes more statements than that"
            continue
        index(copy / database.name, [])
        assert sessions(copy / database.name) == {STAYS}, statement
        assert found_in(copy, WORD, *IDS) == set(), statement


# --- what stays ---


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_what_stays_is_what_an_index_of_the_other_logs_says(seed: int, tmp_path: Path, database: Path) -> None:
    check_law(copy_of_samples(tmp_path / "logs"), database, seed)


def check_law(logs: Path, database: Path, seed: int) -> None:
    """Forget some of these logs, delete them, and index the rest."""
    index(database, [str(logs)])
    with closing(sqlite3.connect(database)) as connection:
        known = Logs(connection)
        inside = {id for id, path in connection.execute("SELECT id, path FROM file") if not os.path.isfile(path)}
        roots = sorted(root for root in known.roots if not known.with_all_of([root]) & inside)
        files = known.with_all_of(random.Random(seed).sample(roots, len(roots) // 3))
        paths = [path for id, path in connection.execute("SELECT id, path FROM file") if id in files]
        assert forget(database, known.digests(files), now=time.time()) is None
    for path in paths:
        os.unlink(path)
    assert without_files(database) == fresh(database.parent / "fresh", logs)


LATER = ("8c0d35f1-2e7b-4d19-a5c6-41b9f0e27a83", "9c0d35f1-2e7b-4d19-a5c6-41b9f0e27a83")


def copied(folder: Path) -> ClaudeLog:
    """A session, and two logs that begin with the same lines."""
    log = claude_log(folder, CLAUDE).prompt("Where is the tide table?").say("In docs/tides.md.")
    for session in LATER:
        copy = claude_log(folder, session)
        copy.path.write_text(log.path.read_text())
        copy.lines, copy.clock, copy.last = 2, log.clock, log.last
        copy.prompt(f"Go on as {session}.")
    return log


def test_of_copies_the_oldest_that_stays_counts(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where many logs were compared at once, each with the first one alone."""
    monkeypatch.setattr(attribution, "_MANY_EVENTS", 0)
    log = copied(tmp_path / "logs")
    os.utime(log.path)  # the newest is read first
    index(database, [str(tmp_path / "logs")])
    forget_here(database, CLAUDE)
    log.path.unlink()
    assert without_files(database) == fresh(tmp_path / "fresh", tmp_path / "logs")
    assert counts(database) == {LATER[0]: (3, 0), LATER[1]: (1, 2)}


def test_copies_in_archived_logs_inherit_what_they_copied(database: Path, tmp_path: Path) -> None:
    copied(tmp_path / "logs")
    index(database, [str(tmp_path / "logs")])
    assert counts(database) == {CLAUDE: (2, 0), LATER[0]: (1, 2), LATER[1]: (1, 2)}
    archive(database, tmp_path, *LATER)
    forget_here(database, CLAUDE)
    assert counts(database) == {LATER[0]: (3, 0), LATER[1]: (1, 2)}


def counts(database: Path) -> dict[str, tuple[int, int]]:
    """The events that count in each session, and those that are copied."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT uid, event_count, copied_events FROM session ORDER BY uid").fetchall()
    return {uid: (own, copied) for uid, own, copied in rows}


def archive(database: Path, folder: Path, *names: str) -> None:
    """Delete logs; the index keeps them."""
    for name in names:
        for path in folder.rglob(f"{name}.jsonl"):
            path.unlink()
    index(database, [])


def test_archived_sessions_lose_the_title_and_the_parent_that_a_forgotten_log_gave_them(
    database: Path, tmp_path: Path
) -> None:
    log = claude_log(tmp_path / "logs", CLAUDE).prompt("Where is the tide table?")
    fork = claude_log(tmp_path / "logs", LATER[0])
    fork.write("user", "And the other?", forkedFrom={"sessionId": CLAUDE})
    line = json.loads(fork.path.read_text())["uuid"]
    log.raw({"type": "summary", "summary": marker("title"), "leafUuid": line})
    index(database, [str(tmp_path / "logs")])
    archive(database, tmp_path, LATER[0])
    told = "SELECT title, parent_session IS NULL FROM session WHERE uid = ?"
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(told, (LATER[0],)).fetchone() == (marker("title"), 0)
    forget_here(database, CLAUDE)
    assert found_in(database.parent, WORD) == set()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(told, (LATER[0],)).fetchone() == (None, 1)


def test_archived_subagents_and_earlier_generations_go_with_their_session(
    data: Path, database: Path, home: Path
) -> None:
    archive(database, home, AGENT)
    index(database, [], rebuild=True)
    (log,) = home.rglob(f"{CLAUDE}.jsonl")
    begun = json.loads(log.read_text().partition("\n")[0]) | {"timestamp": "2026-09-04T08:12:40.000Z"}
    log.write_text(json.dumps(begun) + "\n")  # it is rewritten
    index(database, [])
    assert {CLAUDE, AGENT} <= sessions(database)
    forget_here(database, *SESSIONS)
    assert sessions(database) == {STAYS}
    assert found_in(data, WORD, *IDS) == set()


def test_a_file_without_an_id_of_its_own_is_told_apart_from_its_namesakes(database: Path, tmp_path: Path) -> None:
    history = '{"history":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"ho"}]}]}'
    for project in ("tidepool", "lanternfish"):
        path = tmp_path / "logs" / project / "checkpoint-latest.json"
        path.parent.mkdir(parents=True)
        path.write_text(history)
    index(database, [str(tmp_path / "logs")])
    assert len(sessions(database)) == 2
    forget_here(database, "checkpoint-latest")
    index(database, [])
    assert len(sessions(database)) == 1
    for path in tmp_path.rglob("checkpoint-latest.json"):
        path.with_suffix(".json.zst").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    index(database, [])
    assert len(sessions(database)) == 1, "its place is the same when it is compressed"


# --- tombstones ---


def test_tombstones_hold_digests_and_times_alone(data: Path, database: Path) -> None:
    forget_here(database, CLAUDE)
    text = (data / "forgotten").read_text()
    assert re.fullmatch(r"(forgotten [0-9a-f]{64} \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n){2}", text)


def test_a_torn_last_line_is_dropped_and_a_broken_one_stops_the_run(data: Path, database: Path) -> None:
    place = tombstones.place_of(database)
    forget_here(database, CLAUDE)
    whole = place.read_text()
    place.write_text(whole + "forgotten 0123")
    tombstones.add(database, tombstones.FORGOTTEN, ["a" * 64], 0)
    assert place.read_text() == f"{whole}forgotten {'a' * 64} 1970-01-01T00:00:00Z\n"
    place.write_text("no tombstone\n" + whole)
    with pytest.raises(tombstones.UnreadableTombstones, match=r"line 1 of .*: delete that line"):
        index(database, [])
    with pytest.raises(tombstones.UnreadableTombstones):
        forget_here(database, STAYS)
    assert place.read_text() == "no tombstone\n" + whole


def test_whoever_removes_its_line_gets_a_session_back(data: Path, database: Path) -> None:
    before = without_files(database)
    forget_here(database, *SESSIONS)
    (data / "forgotten").unlink()
    index(database, [])
    assert without_files(database) == before


# --- retention ---


def aged(folder: Path, days: Iterable[int], now: float) -> None:
    """A log for each number of days since its last event."""
    for number in days:
        log = claude_log(folder, f"{number:08x}-2f47-4a98-9c6b-7e8f1a2d3004")
        log.clock = int(now) - number * DAY
        os.utime(log.prompt(f"Find the {WORD}{number}.").path, (log.clock, log.clock))


def test_sessions_are_forgotten_by_age_and_come_back_when_they_go_on(database: Path, tmp_path: Path) -> None:
    now = time.time()
    aged(tmp_path / "logs", (1, 40, 80), now)
    assert index(database, [str(tmp_path / "logs")], keep_days=60).sessions == 2
    assert found_in(database.parent, f"{WORD}80") == set()
    assert index(database, [], keep_days=60).files_opened == 0
    assert index(database, [], keep_days=30).sessions == 1, "other days count at once, whether a log changed or not"
    assert index(database, [], keep_days=30).files_opened == 0
    (log,) = tmp_path.rglob("00000050-*.jsonl")
    again = ClaudeLog(log, log.stem)
    again.clock = int(now) - DAY
    again.prompt("Go on.")
    assert index(database, [], keep_days=30).sessions == 2
    assert index(database, [], keep_days=30).files_opened == 0


def test_days_count_from_the_newest_event_so_that_a_clock_that_jumped_ahead_forgets_nothing(
    database: Path, tmp_path: Path
) -> None:
    aged(tmp_path / "logs", (1000, 1050, 1070), time.time())
    assert index(database, [str(tmp_path / "logs")], keep_days=60).sessions == 2


def test_a_session_is_as_young_as_its_youngest_subagent(database: Path, tmp_path: Path) -> None:
    now = time.time()
    aged(tmp_path / "logs", (80,), now)
    (log,) = tmp_path.rglob("*.jsonl")
    agent = ClaudeLog(log.with_suffix("") / "subagents" / f"{AGENT}.jsonl", log.stem)
    agent.clock = int(now) - DAY
    agent.write("user", "Look.", isSidechain=True, agentId=AGENT.removeprefix("agent-"))
    left = index(database, [str(tmp_path / "logs")], keep_days=60)
    assert (left.sessions, left.sub_agents) == (1, 1)
