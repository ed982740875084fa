"""Logs that vanish, move, or are compressed, replaced or copied; and the files that are examined."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard
from agtrace_indexer.index.opening import Busy, write_lock
from agtrace_indexer.logs import discovery
from agtrace_indexer.providers.claude_code import parser
from agtrace_indexer.providers.registry import homes
from agtrace_indexer.reader.reader import Defect
from agtrace_indexer.run import Summary, index, refresh

from tests.conftest import SAMPLES, copy_of_samples
from tests.contents import contents
from tests.depth import part
from tests.faults import damage
from tests.hostile import _claude_lines, _codex_lines

AGTRACE = Path(sys.executable).with_name("agtrace")
ROLLOUT = "rollout-2026-09-01T08-00-00-0badc0de-0000-4000-8000-000000000005.jsonl"


class File(NamedTuple):
    """A row of `file`, the columns that matter here."""

    path: str
    status: str
    reason: str | None
    provider: str | None
    gone: int


def claude(number: int, more: int = 0) -> bytes:
    """A small log; every number is a session of its own, `more` repeats its answer."""
    prompt, answer = _claude_lines(number)
    return b"".join(line + b"\n" for line in [prompt, answer, *[answer] * more])


def codex(answers: int = 20) -> bytes:
    return b"".join(line + b"\n" for line in _codex_lines()[: answers + 2])


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files(database: Path) -> list[File]:
    return [File(*row[:5]) for row in contents(database)["files"]]


def sessions(database: Path) -> dict[str, tuple[str, bool]]:
    """The visible id of every session, with its file and whether that is gone."""
    return {row[0]: (row[-2], bool(row[-1])) for row in contents(database)["sessions"]}


def session(number: int) -> str:
    return f"0badc0de-0000-4000-8000-00000000{number:04x}"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The folder of the test's logs."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


# --- vanished ---


def test_a_vanished_log_keeps_everything_that_was_read_and_is_marked(logs: Path, database: Path) -> None:
    write(logs / "a.jsonl", claude(1))
    write(logs / "notes.txt", b"no log\n")
    index(database, [str(logs)])
    before = contents(database)
    (logs / "a.jsonl").unlink()
    (logs / "notes.txt").unlink()
    index(database, [])
    after = contents(database)
    assert sessions(database) == {session(1): (str(logs / "a.jsonl"), True)}
    assert (after["events"], after["texts"]) == (before["events"], before["texts"])
    assert [file.path for file in files(database)] == [str(logs / "a.jsonl")], "what was no log is not remembered"
    assert index(database, []).files_opened == 0


# --- moved ---


def packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def compress(log: Path) -> Path:
    """Do what Codex does with old rollouts."""
    other = write(log.with_name(f"{log.name}.zst"), packed(log.read_bytes()))
    log.unlink()
    return other


def unpack(log: Path) -> Path:
    other = write(log.with_suffix(""), zstandard.ZstdDecompressor().decompress(log.read_bytes()))
    log.unlink()
    return other


def archive(log: Path) -> Path:
    home = next(folder.parent for folder in log.parents if folder.name == "sessions")
    (home / "archived_sessions").mkdir(exist_ok=True)
    return log.rename(home / "archived_sessions" / log.name)


def rename(log: Path) -> Path:
    return log.rename(log.with_name("renamed.jsonl"))


def to_another_folder(log: Path) -> Path:
    other = log.parents[1] / "elsewhere" / log.name
    other.parent.mkdir()
    return log.rename(other)


def copied_and_removed(log: Path) -> Path:
    other = log.with_name("copy.jsonl")
    shutil.copy(log, other)
    log.unlink()
    return other


MOVES: list[list[Callable[[Path], Path]]] = [
    [rename], [to_another_folder], [copied_and_removed], [archive], [compress], [compress, unpack], [archive, compress],
    [compress, archive], [archive, compress, unpack], [rename, compress],
]  # fmt: skip


@pytest.mark.parametrize("moves", part(MOVES, 1, 2), ids=lambda moves: " then ".join(move.__name__ for move in moves))
@pytest.mark.parametrize("grows", [False, True], ids=["as it is", "and grown"])
def test_a_moved_log_keeps_its_session_and_is_not_counted_twice(
    moves: list[Callable[[Path], Path]], grows: bool, logs: Path, database: Path
) -> None:
    log = write(logs / "sessions" / "2026" / "09" / "01" / ROLLOUT, codex(20))
    index(database, [str(logs)])
    marks = event_ids(database)
    for move in moves:
        log = move(log)
        index(database, [])
    if grows:
        append = codex(21)[len(codex(20)) :]
        log.write_bytes(packed(codex(21)) if log.suffix == ".zst" else log.read_bytes() + append)
        index(database, [])
    assert list(sessions(database).values()) == [(str(log), False)]
    assert event_ids(database)[: len(marks)] == marks, "no event was made anew"
    assert contents(database) == contents_of_fresh(database, logs)


def event_ids(database: Path) -> list[tuple[int, int]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT id, event_index FROM event ORDER BY id").fetchall()
    finally:
        connection.close()


def contents_of_fresh(database: Path, *roots: Path) -> dict[str, Any]:
    """The contents of a new index of the same files."""
    fresh = database.parent.parent / "fresh" / "index.sqlite3"
    shutil.rmtree(fresh.parent, ignore_errors=True)
    index(fresh, list(map(str, roots)))
    return contents(fresh)


def test_a_log_moved_over_another_takes_its_place(logs: Path, database: Path) -> None:
    first, second = write(logs / "a.jsonl", claude(1)), write(logs / "b.jsonl", claude(2))
    index(database, [str(logs)])
    first.rename(second)
    index(database, [])
    assert sessions(database) == {
        session(1): (str(second), False),
        session(2): (f"{second}#replaced-1", True),
    }


def test_a_log_that_was_moved_and_cut_is_a_new_one_beside_the_archived(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1, more=20))
    index(database, [str(logs)])
    rename(log).write_bytes(claude(1, more=1))
    index(database, [])
    assert sessions(database) == {session(1): (f"{logs}/renamed.jsonl", False), f"{session(1)}~2": (str(log), True)}


def test_a_log_that_comes_back_elsewhere_beside_a_new_one_is_read_whole(logs: Path, database: Path) -> None:
    log, away = write(logs / "a.jsonl", claude(1, more=9)), logs.parent / "away"
    index(database, [str(logs)])
    log.rename(away)
    index(database, [])
    write(away, away.read_bytes() + claude(1)).rename(logs / "b.jsonl")
    os.utime(write(log, claude(1, more=2)), (2e9, 2e9))
    index(database, [])
    assert contents(database) == contents_of_fresh(database, logs)


def test_logs_that_begin_alike_are_told_apart_when_they_move(logs: Path, database: Path) -> None:
    write(logs / "a.jsonl", claude(1, more=9))
    write(logs / "b.jsonl", claude(1, more=9) + claude(2))
    index(database, [str(logs)])
    (logs / "a.jsonl").rename(logs / "y.jsonl")
    (logs / "b.jsonl").rename(logs / "x.jsonl")
    index(database, [])
    assert {Path(path).name for path, _ in sessions(database).values()} == {"x.jsonl", "y.jsonl"}
    sizes = {row[-2]: row[15] for row in contents(database)["sessions"]}
    assert sizes == {row[-2]: row[15] for row in contents_of_fresh(database, logs)["sessions"]}


def test_a_rebuild_reads_moved_logs_again_as_well(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1))
    index(database, [str(logs)])
    marks = event_ids(database)
    rename(log)
    index(database, [], rebuild=True)
    assert contents(database) == contents_of_fresh(database, logs)
    assert not set(event_ids(database)) & set(marks)


# --- one log in two forms ---


@pytest.mark.parametrize("earlier", ["plain", "compressed", "both"])
def test_of_a_plain_and_a_compressed_rollout_the_plain_one_is_read(earlier: str, logs: Path, database: Path) -> None:
    plain, compressed = logs / ROLLOUT, logs / f"{ROLLOUT}.zst"
    if earlier != "compressed":
        write(plain, codex())
    if earlier != "plain":
        write(compressed, packed(codex()))
    index(database, [str(logs)])
    write(plain, codex())
    write(compressed, packed(codex()))
    index(database, [])
    assert list(sessions(database).values()) == [(str(plain), False)]
    reason = f"the same log as {plain}, which is read"
    assert files(database)[1] == File(str(compressed), "duplicate", reason, None, 0)
    assert contents(database) == contents_of_fresh(database, logs)
    plain.unlink()
    index(database, [])
    assert list(sessions(database).values()) == [(str(compressed), False)]


def test_while_a_rollout_is_being_unpacked_nothing_is_counted_twice(logs: Path, database: Path) -> None:
    write(logs / f"{ROLLOUT}.zst", packed(codex(200)))
    index(database, [str(logs)])
    for size in (0, 1000, 30_000, len(codex(200))):
        write(logs / ROLLOUT, codex(200)[:size])
        index(database, [])
        assert contents(database) == contents_of_fresh(database, logs)
        assert len(sessions(database)) == 1


def test_of_a_live_and_an_archived_rollout_the_live_one_is_read(logs: Path, database: Path) -> None:
    live = write(logs / "sessions" / "2026" / "09" / "01" / ROLLOUT, codex())
    write(logs / "archived_sessions" / f"{ROLLOUT}.zst", packed(codex()))
    index(database, [str(logs)])
    assert list(sessions(database).values()) == [(str(live), False)]


@pytest.mark.parametrize("at_once", [True, False])
def test_geminis_lines_replace_the_snapshot_that_they_continue(at_once: bool, logs: Path, database: Path) -> None:
    snapshot, lines = next(SAMPLES.rglob("session-*.json")), next(SAMPLES.rglob("session-*.jsonl"))
    old = write(logs / "chats" / "session-2026.json", snapshot.read_bytes())
    if not at_once:
        index(database, [str(logs)])
    new = write(logs / "chats" / "session-2026.jsonl", lines.read_bytes())
    index(database, [str(logs)])
    assert list(sessions(database).values()) == [(str(new), False)]
    assert (files(database)[0].path, files(database)[0].status) == (str(old), "duplicate")
    assert contents(database) == contents_of_fresh(database, logs)


# --- replaced ---


def test_a_log_with_other_content_is_new_and_the_old_one_archived(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1))
    index(database, [str(logs)])
    for number in (2, 3):
        log.write_bytes(claude(number, more=3))
        index(database, [])
    assert sessions(database) == {
        session(1): (f"{log}#replaced-1", True),
        session(2): (f"{log}#replaced-2", True),
        session(3): (str(log), False),
    }


def test_a_log_that_was_replaced_and_put_back_has_its_old_session(logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1))
    for number in (1, 2, 1):
        log.write_bytes(claude(number))
        index(database, [str(logs)])
    assert sessions(database) == {session(1): (str(log), False), session(2): (f"{log}#replaced-2", True)}


@pytest.mark.parametrize("between", [True, False], ids=["seen while short", "seen only when grown"])
def test_a_truncated_log_that_grows_again_is_a_new_one(between: bool, logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1, more=9))
    index(database, [str(logs)])
    log.write_bytes(b"")
    if between:
        index(database, [])
    log.write_bytes(claude(2, more=30))
    index(database, [])
    assert sessions(database) == {session(1): (f"{log}#replaced-1", True), session(2): (str(log), False)}


@pytest.mark.parametrize("by", ["in place", "by another file"])
@pytest.mark.parametrize("where", ["at the end", "in the middle"])
def test_a_rewrite_that_keeps_size_and_times_is_noticed(by: str, where: str, logs: Path, database: Path) -> None:
    log = write(logs / "a.jsonl", claude(1, more=9))
    index(database, [str(logs)])
    before = log.stat()
    start, end = log.read_bytes().split(b"ebb", 1) if where == "in the middle" else log.read_bytes().rsplit(b"ebb", 1)
    target = log if by == "in place" else logs / "fresh.tmp"
    target.write_bytes(start + b"low" + end)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    target.replace(log)
    assert (log.stat().st_size, log.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    index(database, [])
    live = [row[0] for row in contents(database)["sessions"] if not row[-1]]
    texts = [text for uid, _, text, _ in contents(database)["texts"] if uid in live]
    assert texts == [text for _, _, text, _ in contents_of_fresh(database, logs)["texts"]]


def test_a_log_that_is_only_touched_is_not_read_into_the_index_again(logs: Path, database: Path) -> None:
    write(logs / "a.jsonl", claude(1))
    snapshot = next(SAMPLES.rglob("session-*.json"))
    write(logs / snapshot.name, snapshot.read_bytes())
    index(database, [str(logs)])
    before, marks = contents(database), event_ids(database)
    for path in logs.iterdir():
        path.touch()
        path.chmod(0o640)
    assert index(database, []).files_opened == 2
    assert contents(database) == before
    assert event_ids(database) == marks


# --- one id, several logs ---


@pytest.mark.parametrize("order", ["abc", "cab", "bca", "together"])
def test_logs_with_one_session_id_are_sessions_with_a_suffix_whatever_came_first(
    order: str, logs: Path, database: Path
) -> None:
    content = {name: claude(1).replace(b"-09-01", b"-09-0%d" % day) for name, day in (("a", 3), ("b", 1), ("c", 2))}
    for name in "abc" if order == "together" else order:
        write(logs / name / "log.jsonl", content[name])
        if order != "together":
            index(database, [str(logs)])
    index(database, [str(logs)])
    assert {uid: Path(path).parent.name for uid, (path, _) in sessions(database).items()} == {
        session(1): "b",
        f"{session(1)}~2": "c",
        f"{session(1)}~3": "a",
    }


def test_a_log_that_bears_the_name_of_a_twin_stops_nothing(logs: Path, database: Path) -> None:
    for name in "abc":
        write(logs / f"{name}.jsonl", claude(1))
    write(logs / "d.jsonl", claude(1).replace(session(1).encode(), f"{session(1)}~2".encode()))
    index(database, [str(logs)])
    named, *rest = sorted(set(sessions(database)) - {session(1), f"{session(1)}~2", f"{session(1)}~3"})
    assert named.startswith("id-") and rest == []


# --- what is looked at ---


@pytest.mark.parametrize("column", ["path", "stamp", "provider", "size"])
def test_a_damaged_row_stops_no_log_and_nothing_counts_twice(column: str, tmp_path: Path, database: Path) -> None:
    logs = tmp_path / "logs"
    paths = [write(logs / f"{number}.jsonl", claude(number)) for number in range(3)]
    index(database, [str(logs)])
    for path in paths:
        path.write_bytes(path.read_bytes() + claude(9).splitlines(keepends=True)[1])
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        damage.flip(connection, "file", column, as_blob=True)
    assert (column != "size") == any("file" in said for said in index(database, []).repaired)
    index(fresh := tmp_path / "fresh" / "index.sqlite3", [str(logs)])
    assert contents(database)["sessions"] == contents(fresh)["sessions"]


def test_a_log_that_a_defect_keeps_from_being_read_is_named_and_stops_no_other(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No log does that: the defect is made."""
    logs = [write(tmp_path / "logs" / f"{number}.jsonl", claude(number)) for number in range(3)]
    begin = parser.begin
    monkeypatch.setattr(parser, "begin", lambda path: begin(path) if path.name != "1.jsonl" else {}["tide"])
    with pytest.warns(Defect):
        assert index(database, [str(tmp_path / "logs")]).sessions == 2
    assert [file[:3] for file in files(database) if file.reason] == [
        (str(logs[1]), "unreadable", "can't be read: KeyError")
    ]


def test_overlapping_roots_count_a_log_once(logs: Path, database: Path) -> None:
    log = write(logs / "deep" / "a.jsonl", claude(1))
    linked = logs.parent / "linked"
    linked.symlink_to(logs, target_is_directory=True)
    index(database, [str(logs), str(logs / "deep"), str(log), f"{logs}/../logs/", str(linked)])
    assert list(sessions(database)) == [session(1)]
    assert index(database, []).files_opened == 0


def test_a_folder_that_is_linked_in_a_root_is_read_once_and_no_link_beyond(logs: Path, database: Path) -> None:
    for number, name in enumerate(("shared/here", "shared/here/deep", "beyond"), 1):
        write(logs.parent / name / f"{number}.jsonl", claude(number))
    write(logs / "own" / "4.jsonl", claude(4))
    for link, target in (
        ("project", "../shared/here"), ("twice", "../shared/here/deep"), ("again", "own"), ("up", ".."), ("lost", "no"),
        ("own/memory", "../../beyond"), ("../shared/here/beyond", "../../beyond"),
    ):  # fmt: skip
        (logs / link).symlink_to(target, target_is_directory=True)
    read = index(database, [str(logs)])
    assert sorted(sessions(database)) == [session(number) for number in (1, 2, 4)]
    assert read.files_unreadable == 0 and index(database, []).files_opened == 0
    with (logs / "project" / "1.jsonl").open("ab") as file:
        file.write(claude(1, more=1))
    refresh(database, changed=[str(logs / "project" / "1.jsonl")])
    assert index(database, []).files_opened == 0


def test_a_file_is_indexed_by_its_own_path_and_its_neighbours_are_not(logs: Path, database: Path) -> None:
    write(logs / "b.jsonl", claude(2))
    index(database, [str(write(logs / "a.jsonl", claude(1)))])
    assert list(sessions(database)) == [session(1)]


@pytest.mark.parametrize("name", ["log.txt", "log", "session.jsonl.bak", "agent.log"])
def test_a_log_is_told_by_its_content_under_any_name(name: str, logs: Path, database: Path) -> None:
    write(logs / name, claude(1))
    write(logs / f"codex {name}", codex())
    write(logs / f"codex {name} packed", packed(codex().replace(b"00005", b"00006")))
    index(database, [str(logs)])
    assert sorted(str(file.provider) for file in files(database)) == ["claude_code", "codex", "codex"]


def test_the_homes_of_the_agents_follow_their_variables(
    tmp_path: Path, own_home: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (own_home / ".local" / "share", own_home / "Library" / "Application Support")
    assert homes({}, own_home) == [
        own_home / ".claude" / "projects",
        own_home / ".config" / "claude" / "projects",
        own_home / ".codex" / "sessions",
        own_home / ".codex" / "archived_sessions",
        own_home / ".gemini" / "tmp",
        own_home / ".gemini" / "antigravity-cli" / "brain",
        own_home / ".gemini" / "antigravity" / "brain",
        own_home / ".gemini" / "antigravity-ide" / "brain",
        own_home / ".qwen" / "projects",
        own_home / ".qwen" / "tmp",
        own_home / ".copilot" / "session-state",
        *(
            own_home / ".local" / "share" / folder / name
            for folder in ("opencode", "kilo", "mimocode")
            for name in (f"{folder}.db", "storage")
        ),
        own_home / ".pi" / "agent" / "sessions",
        own_home / ".omp" / "agent" / "sessions",
        own_home / ".openclaw" / "agents",
        own_home / ".clawdbot" / "agents",
        own_home / ".moltbot" / "agents",
        own_home / ".kiro" / "sessions",
        *(folder / f"{name}/data.sqlite3" for folder in data for name in ("kiro-cli", "amazon-q")),
        data[0] / "goose" / "sessions",
        data[0] / "Block" / "goose" / "sessions",
        data[1] / "goose" / "sessions",
        own_home / "AppData" / "Roaming" / "Block" / "goose" / "data" / "sessions",
        own_home / ".cursor" / "projects",
    ]
    for number, home in ((1, "one"), (2, "two")):
        write(tmp_path / home / "projects" / "-p" / "a.jsonl", claude(number))
    write(tmp_path / "codex" / "sessions" / ROLLOUT, codex())
    shutil.copytree(SAMPLES / "gemini", tmp_path / "gemini" / ".gemini")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path / 'one'}, {tmp_path / 'two'}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "gemini"))
    monkeypatch.setenv("COPILOT_HOME", str(SAMPLES / "copilot"))
    subprocess.run([AGTRACE, "index"], check=True, capture_output=True)
    providers = sorted(row[3] for row in contents(database)["sessions"])
    assert providers == ["claude_code", "claude_code", "codex", *(4 * ["copilot"]), "gemini", "gemini"]


def test_applications_that_run_an_agent_give_it_a_home_of_its_own(own_home: Path, database: Path) -> None:
    cowork, xcode = "Claude/local-agent-mode-sessions/o/a", "Library/Developer/Xcode/CodingAssistant"
    packaged = "AppData/Local/Packages/Claude_p/LocalCache/Roaming"
    for number, place in enumerate((".config", "Library/Application Support", "AppData/Roaming", packaged), start=1):
        home = own_home / place / cowork / ("agent" if number > 2 else "") / "local_1"
        write(home / ".claude" / "projects" / "-p" / "a.jsonl", claude(number))
        write(home / "audit.jsonl", claude(number, more=1))  # the same again
    write(own_home / ".config/claude/projects/-p/a.jsonl", claude(8))
    write(own_home / xcode / "ClaudeAgentConfig" / "projects" / "-p" / "a.jsonl", claude(9))
    write(own_home / xcode / "codex" / "sessions" / ROLLOUT, codex())
    other = (
        own_home / ".cache" / "JetBrains" / "PyCharm2026.2" / "aia" / "codex" / "sessions" / f"{ROLLOUT[:-7]}6.jsonl"
    )
    write(other, codex().replace(b"00005", b"00006"))
    subprocess.run([AGTRACE, "index"], check=True, capture_output=True)
    assert sorted(row[3] for row in contents(database)["sessions"]) == [*(6 * ["claude_code"]), "codex", "codex"]


# --- runs ---


def test_a_second_run_opens_nothing_and_changes_nothing(tmp_path: Path, database: Path) -> None:
    first = index(database, [str(copy_of_samples(tmp_path / "samples"))])
    before = contents(database)
    second = index(database, [])
    assert (second.files_opened, second.bytes_read) == (0, 0)
    assert contents(database) == before
    assert indexed(second) == indexed(first)


def indexed(summary: Summary) -> tuple[int, ...]:
    return summary.files_seen, summary.sessions, summary.events, summary.records, summary.unreadable_lines


def test_a_rebuild_equals_a_fresh_index(tmp_path: Path, database: Path) -> None:
    samples = copy_of_samples(tmp_path / "samples")
    index(database, [str(samples)])
    before = contents(database)
    rebuilt = index(database, [], rebuild=True)
    containers = sum(row[1] == "container" for row in before["files"])
    assert rebuilt.files_opened == rebuilt.files_seen - containers
    assert contents(database) == before == contents_of_fresh(database, samples)


def test_a_second_writer_waits_for_the_first(logs: Path, database: Path) -> None:
    write(logs / "a.jsonl", claude(1))
    with write_lock(database):
        with pytest.raises(Busy, match="another agtrace is indexing"):
            index(database, [str(logs)])
        second = subprocess.Popen(
            [AGTRACE, "index", logs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        assert second.stderr is not None
        assert "another agtrace is indexing: waiting for it" in second.stderr.readline()
    said, _ = second.communicate(timeout=300)
    assert (second.returncode, said.split(",")[0]) == (0, "1 session")


def test_a_run_without_changes_needs_no_lock(logs: Path, database: Path) -> None:
    write(logs / "a.jsonl", claude(1))
    index(database, [str(logs)])
    with write_lock(database):
        assert index(database, [str(logs)]).files_opened == 0


def test_folders_nested_a_thousand_deep_end_no_run(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(next(SAMPLES.rglob("8c0d35f1*.jsonl")), folder)
    here = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
        os.chdir(here)
        assert index(database, [str(folder)]).sessions == 1
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(folder / "d")], check=True)  # shutil.rmtree would recurse


def test_an_index_below_its_own_root_is_no_log(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "log.jsonl").write_bytes(claude(1))
    index(root / "index.sqlite3", [str(root)])
    second = index(root / "index.sqlite3", [])
    assert (second.files_seen, second.files_opened) == (1, 0)


def test_a_folder_crowded_with_files_that_are_no_logs_costs_no_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MOST_OTHERS", 5)
    folder = tmp_path / "logs"
    early = write(folder / "zz.jsonl", claude(20))
    index(tmp_path / "index.sqlite3", [str(folder)])
    for number in range(12):
        write(folder / f"{number}.json", b'{"x":1}')
        write(folder / f"{number:08}-0000-4000-8000-000000000000.jsonl", claude(number))
        write(folder / f"below{number}" / "any.jsonl", claude(30 + number))
    summary = index(tmp_path / "index.sqlite3", [])
    found = files(tmp_path / "index.sqlite3")
    assert (summary.sessions, summary.files_opened) == (25, 24 + 5)
    assert [file.status for file in found if file.path == str(early)] == ["log"]
    assert [file.reason for file in found if file.path == str(folder)] == [
        "a folder of which 7 files are not read: more than 5 in it have names that no agent gives to its logs"
    ]
    for number in range(8):
        (folder / f"{number}.json").unlink()
    index(tmp_path / "index.sqlite3", [])
    assert sorted(file.status for file in files(tmp_path / "index.sqlite3")) == ["log"] * 25 + ["unrecognized"] * 4
