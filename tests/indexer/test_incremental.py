"""A growing log is indexed as if it had been there at once, and only its new part is read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index import sums
from agtrace_indexer.run import Summary, index
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings import load
from tests.conftest import LOGS, REAL_LOGS, SAMPLES
from tests.contents import contents
from tests.depth import depth, examples

ENDS_LATER = "codex/sessions/2026/10/06/rollout-2026-10-06T13-31-44-01a11132-cb80-755b-8f0b-6f22348b7f75.jsonl"
"""A log in which executions end long after their calls."""
TAKES_BACK = "gemini/tmp/lanternfish/chats/session-2026-11-10T08-30-338b9da1.jsonl"
"""A log in which turns are retracted."""

SMALL = 400_000
LONG_LINE = 34_000_000


def log_files() -> list[Path]:
    """Line logs of all agents, the published ones where they are."""
    roots = [SAMPLES, *REAL_LOGS]
    found = (path for root in roots for path in sorted(root.rglob("*.jsonl")))
    return [path for path in found if 0 < path.stat().st_size < SMALL]


def snapshot_files() -> list[Path]:
    """Gemini's logs that are one JSON document each."""
    return sorted(SAMPLES.rglob("session-*.json")) + sorted((LOGS / "gemini").rglob("session-*.json"))


def fresh(folder: Path) -> tuple[Path, Path]:
    """An emptied place for a log and its index: (folder of logs, database)."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "logs").mkdir(parents=True)
    return folder / "logs", folder / "data" / "index.sqlite3"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def grown(work: Path, name: str, pieces: list[bytes]) -> dict[str, Any]:
    """The contents after every piece was appended and indexed for itself."""
    logs, database = fresh(work)
    for piece in pieces:
        append(logs / name, piece)
        index(database, [str(logs)])
    return contents(database)


def at_once(work: Path, name: str, data: bytes) -> dict[str, Any]:
    """The contents of an index made from the whole file."""
    return grown(work, name, [data])


def cut(data: bytes, places: list[float]) -> list[bytes]:
    """A file in pieces, cut at these fractions of it."""
    ends = sorted({0, len(data), *(int(place * len(data)) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


places = st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=9)
relaxed = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@settings(relaxed, max_examples=examples(45))
@given(path=st.sampled_from(log_files()), places=places)
def test_any_split_into_appends_gives_what_the_whole_file_gives(work: Path, path: Path, places: list[float]) -> None:
    data = path.read_bytes()
    assert grown(work, path.name, cut(data, places)) == at_once(work, path.name, data)


@settings(relaxed, max_examples=examples(25))
@example(path=SAMPLES / ENDS_LATER, begin=0.0, step=1)
@example(path=SAMPLES / TAKES_BACK, begin=0.0, step=1)
@given(path=st.sampled_from(log_files()), begin=st.floats(0, 0.8), step=st.integers(1, 9))
def test_sums_that_go_on_from_those_of_the_first_events_are_what_they_are_from_the_beginning(
    work: Path, path: Path, begin: float, step: int
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    first = 1 + int(begin * len(lines))
    lines = [b"".join(lines[:first]), *lines[first : first + depth(20, 40)]]
    data = b"".join(lines)
    whole = at_once(work, path.name, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "_STEP", step)
        assert grown(work, path.name, lines) == whole
        so_far = kept_sums(work)
        assert at_once(work, path.name, data) == whole
        assert kept_sums(work) == so_far


def kept_sums(work: Path) -> list[tuple[int, int, str]]:
    """The sums over the first events of sessions that the index keeps."""
    with closing(sqlite3.connect(work / "data" / "index.sqlite3")) as connection:
        return sorted(connection.execute("SELECT * FROM sum_so_far").fetchall())


@pytest.mark.parametrize("path", snapshot_files(), ids=lambda path: path.name)
def test_a_snapshot_that_is_written_anew_gives_what_its_last_version_gives(work: Path, path: Path) -> None:
    document = json.loads(path.read_text())
    messages = document["messages"]
    logs, database = fresh(work)
    for end in sorted({1, len(messages) // 2, len(messages)}):
        (logs / path.name).write_text(json.dumps({**document, "messages": messages[:end]}, indent=2) + "\n")
        index(database, [str(logs)])
    assert contents(database) == at_once(work, path.name, (logs / path.name).read_bytes())


def test_a_snapshot_on_one_line_is_read_whole(work: Path) -> None:
    path = next(SAMPLES.rglob("session-*.json"))
    document = json.loads(path.read_text())
    spread = at_once(work, path.name, path.read_bytes())
    compact = at_once(work, path.name, json.dumps(document, ensure_ascii=False).encode())
    assert [text for _, _, text, _ in compact["texts"]] == [text for _, _, text, _ in spread["texts"]]


def test_a_half_written_snapshot_leaves_the_older_version_until_it_is_whole(work: Path) -> None:
    path = next(SAMPLES.rglob("session-*.json"))
    data = path.read_bytes()
    logs, database = fresh(work)
    (logs / path.name).write_bytes(data)
    index(database, [str(logs)])
    before = contents(database)
    (logs / path.name).write_bytes(data[: len(data) // 2])
    index(database, [str(logs)])
    assert contents(database)["texts"] == before["texts"]
    (logs / path.name).write_bytes(data)
    index(database, [str(logs)])
    assert contents(database) == before


# --- results, tails, newlines ---


def claude(kind: str, number: int, content: Any, **more: Any) -> bytes:
    """A line of a Claude Code log."""
    message = {"id": f"msg_{number}", "role": kind, "content": content}
    time = f"2026-10-01T10:00:{number:02}.000Z"
    record = {"type": kind, "uuid": f"u{number}", "sessionId": "growing", "timestamp": time, "message": message}
    return json.dumps({**record, **more}, ensure_ascii=False).encode()


PROMPT = claude("user", 1, "Count the gulls 🐦")
CALL = claude("assistant", 2, [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "gulls"}}])
RESULT = claude("user", 3, [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}])


def events(database: Path) -> list[tuple[Any, ...]]:
    return contents(database)["events"]


def text_of(database: Path) -> list[str]:
    return [text for _, _, text, _ in contents(database)["texts"]]


@pytest.mark.parametrize("end", [len(CALL) // 2, -1, len(PROMPT.split("🐦".encode())[0]) + 2])
def test_a_half_written_last_line_waits_and_is_then_read_once(tmp_path: Path, database: Path, end: int) -> None:
    log = tmp_path / "growing.jsonl"
    log.write_bytes(CALL + b"\n" + PROMPT[:end])
    index(database, [str(log)])
    assert len(events(database)) == 1
    ((_, status, reason, *_, pending),) = contents(database)["files"]
    assert (status, reason, pending) == ("log", "its last line is incomplete: waiting for the rest", len(PROMPT[:end]))
    append(log, PROMPT[end:] + b"\n")
    index(database, [])
    assert text_of(database)[1:] == ["Count the gulls 🐦"]
    ((_, _, reason, *_, unreadable, pending),) = contents(database)["files"]
    assert (reason, unreadable, pending) == (None, 0, 0)


def test_a_whole_last_line_is_read_before_its_newline_which_then_changes_nothing(
    tmp_path: Path, database: Path
) -> None:
    log = tmp_path / "growing.jsonl"
    log.write_bytes(PROMPT + b"\n" + CALL)
    index(database, [str(log)])
    before = contents(database)
    assert len(before["events"]) == 2
    append(log, b"\n")
    assert index(database, []).files_opened == 1
    after = contents(database)
    assert {**after, "files": 0} == {**before, "files": 0}
    append(log, RESULT + b"\n")
    index(database, [])
    assert [event[9:12] for event in events(database)] == [
        (1, 0, len(PROMPT)),
        (2, len(PROMPT) + 1, len(CALL)),
        (3, len(PROMPT) + len(CALL) + 2, len(RESULT)),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("length", [32 * 1024 * 1024, 32 * 1024 * 1024 + 1])
def test_a_line_around_the_limit_is_judged_alike_wherever_the_reading_started(work: Path, length: int) -> None:
    start = CALL.removesuffix(b"}") + b', "more": "'
    line = start + b"x" * (length - len(start) - 2) + b'"}\n'
    pieces = [PROMPT + b"\n", line[:20_000_000], line[20_000_000:], RESULT + b"\n"]
    assert grown(work, "long.jsonl", pieces) == at_once(work, "long.jsonl", b"".join(pieces))


@pytest.mark.thorough
def test_an_endless_last_line_is_kept_by_its_head_and_by_its_whole_length_once_it_ends(
    tmp_path: Path, database: Path
) -> None:
    log = tmp_path / "growing.jsonl"
    log.write_bytes(PROMPT + b"\n" + b'{"type":"user","uuid":"' + b"x" * LONG_LINE)
    index(database, [str(log)])
    assert [event[9:12] for event in events(database)][1:] == [(2, len(PROMPT) + 1, LONG_LINE + 23)]
    append(log, b"xx\n" + CALL + b"\n")
    index(database, [])
    assert [event[6] for event in events(database)] == ["human", "oversized_line", "oversized_line", "Bash"]
    assert [event[9:13] for event in events(database)][1:] == [
        (2, len(PROMPT) + 1, LONG_LINE + 23, 2),
        (2, len(PROMPT) + 1, LONG_LINE + 25, None),
        (3, len(PROMPT) + LONG_LINE + 27, len(CALL), None),
    ]


def test_a_line_that_says_nothing_leaves_an_idle_sub_agent_what_it_was(tmp_path: Path, database: Path) -> None:
    idle = next(path for path in SAMPLES.rglob("agent-7e19ac04.jsonl"))
    log = tmp_path / idle.name
    shutil.copy(idle, log)
    index(database, [str(log)])
    before = contents(database)
    append(log, b"\n")
    assert index(database, []).files_opened == 1
    assert contents(database)["sessions"] == before["sessions"]
    assert before["sessions"][0][5] == "subagent"


STUB = PROMPT[: PROMPT.index(b"gulls")]
DAMAGED = {
    "NUL bytes before, after and between records": (b"\0" * 5000 + PROMPT + b"\0" * 9000 + b"\n\0\0\n" + CALL, 2, 0),
    "a long tail of NUL bytes, and the agent goes on": (PROMPT + b"\n" + b"\0" * 143_000 + CALL + b"\n" + RESULT, 3, 0),
    "a torn record before a whole one": (STUB + CALL + b"\n" + RESULT, 2, 1),
    "two torn records and NUL bytes before a whole one": (STUB + b"\0" * 700 + STUB[:60] + CALL, 1, 1),
    "a torn record on a line of its own": (STUB + b"\n" + CALL, 1, 1),
    "line ends within a text": (PROMPT.replace(b"the", b"the\n\n42\r\n[]\n") + b"\n" + CALL, 2, 0),
    "a torn record before one with line ends": (STUB + PROMPT.replace(b"the", b"the\n") + b"\n" + CALL, 2, 1),
    "jammed records": (PROMPT + CALL + b" " + RESULT, 3, 0),
}
"""Damaged logs, with the records that can be read and the unreadable remainders that are shown."""


@settings(relaxed, max_examples=examples(60))
@given(name=st.sampled_from(sorted(DAMAGED)), places=places)
def test_of_a_damaged_log_every_whole_record_is_read_however_it_grew(
    work: Path, name: str, places: list[float]
) -> None:
    data, records, unreadable = DAMAGED[name]
    whole = at_once(work, "damaged.jsonl", data + b"\n")
    ((*_, read, broken, pending),) = whole["files"]
    assert (read, broken, pending) == (records, unreadable, 0)
    assert sum(event[6] == "unreadable_line" for event in whole["events"]) == unreadable
    assert grown(work, "damaged.jsonl", cut(data + b"\n", places)) == whole


def test_a_text_without_its_end_waits_while_its_agent_may_write_and_counts_as_unreadable_after_a_minute(
    work: Path,
) -> None:
    logs, database = fresh(work)
    log = logs / "torn.jsonl"
    append(log, PROMPT + b"\n" + STUB + b"\n")
    read = []
    for _ in range(2):
        index(database, [str(logs)])
        ((*_, records, unreadable, pending),) = contents(database)["files"]
        read.append((records, unreadable, pending))
        os.utime(log, (1_780_000_000, 1_780_000_000))
    index(database, [str(logs)])
    assert read == [(1, 0, len(STUB)), (1, 1, 0)]
    assert index(database, [str(logs)]).files_opened == 0


# --- only new bytes ---


def growing_log(path: Path, size: int) -> None:
    """A log of many turns."""
    turn = b"".join(line + b"\n" for line in (PROMPT, CALL, RESULT))
    path.write_bytes(turn * (size // len(turn) + 1))


def test_only_the_appended_line_is_read_and_the_next_search_finds_it(tmp_path: Path, database: Path) -> None:
    log = tmp_path / "growing.jsonl"
    growing_log(log, 300_000)
    index(database, [str(log)])
    line = claude("user", 9, "a heron at the weir") + b"\n"
    append(log, line)
    summary: Summary = index(database, [])
    assert summary.files_opened == 1
    assert summary.bytes_read <= len(line) + 512

    append(log, line.replace(b"heron", b"dipper"))
    found = (
        Service(load(), log=silent)
        .ask("search_event_previews", {"order": "newest", "query": "dipper at the weir"})
        .value
    )
    assert [match["preview"]["text"] for match in found["data"]["matches"]] == ["a dipper at the weir"]


@pytest.mark.parametrize(("table", "column"), [("file_state", "state"), ("block_data", "text")])
@pytest.mark.parametrize("moved", [False, True])
def test_a_log_that_grows_is_read_anew_if_what_the_index_has_of_it_is_damaged(
    tmp_path: Path, database: Path, table: str, column: str, moved: bool
) -> None:
    """Nothing counts twice, and no other log waits for it."""
    log, fresh = tmp_path / "logs" / ENDS_LATER, tmp_path / "fresh" / "index.sqlite3"
    log.parent.mkdir(parents=True)
    lines = (SAMPLES / ENDS_LATER).read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-3]))
    index(database, [str(tmp_path / "logs")])
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        (data,) = connection.execute(f"SELECT {column} FROM {table} ORDER BY rowid DESC").fetchone()
        flipped = bytes([*data[:-1], data[-1] ^ 16])
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (flipped, data))
    if moved:
        log = log.rename(log.with_name(log.name.replace("T13", "T14")))
    log.write_bytes(b"".join(lines))
    index(database, [])
    index(fresh, [str(tmp_path / "logs")])
    assert contents(database, gone=False) == contents(fresh, gone=False)
