"""Files that would hurt a careless reader: endless, broken, deeply nested, or not files at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest
import zstandard
from agtrace_indexer.run import index
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.settings import load
from tests import hostile
from tests.agtrace.terminal import agtrace_here
from tests.contents import contents
from tests.depth import depth, examples
from tests.hostile import _claude_lines, _codex_lines
from tests.indexer.strange import damage

AGTRACE = Path(sys.executable).with_name("agtrace")
LINE_MEGABYTES = depth(34, 200)
MOST_MEMORY = 500_000_000
SECONDS = 180


class Ended(NamedTuple):
    """A process that has ended."""

    code: int
    stdout: str
    stderr: str
    memory: int
    """Most bytes it ever had in memory."""

    def json(self) -> Any:
        return json.loads(self.stdout)


_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:], timeout=int(sys.argv[1]))
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit, file=sys.stderr)
sys.exit(code)
"""


def agtrace(*arguments: str | Path) -> Ended:
    """Run a command with a limit of time, and measure its memory."""
    command = [sys.executable, "-c", _MEASURED, str(SECONDS), str(AGTRACE), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 10)
    *said, memory = ended.stderr.splitlines()
    assert "Traceback" not in ended.stderr, ended.stderr
    return Ended(ended.returncode, ended.stdout, "\n".join(said), int(memory))


def test_a_folder_of_hostile_files_is_read_as_far_as_it_is_readable_and_the_rest_is_reported(
    tmp_path: Path, database: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    paths = hostile.build_all(folder, LINE_MEGABYTES)
    (folder / "long.jsonl").write_bytes(b"".join(_long_log()))
    first = agtrace("index", "--json", folder)
    assert first.code == 0
    assert first.memory < MOST_MEMORY
    sys.stdout.write(f"{LINE_MEGABYTES} MB on one line: at most {first.memory / 1e6:.0f} MB of memory\n")

    second = index(database, [])
    assert (second.files_opened, second.bytes_read) == (0, 0)

    doctor = agtrace_here("doctor", "--json")
    found = doctor.json()
    assert doctor.code == 1
    read = {Path(file["path"]).name: file["sessions"] for file in found["files"]}
    readable = {"good.jsonl": 1, "invalid-utf8.jsonl": 1, "inside.jsonl": 1, "long.jsonl": 1, "unclosed.jsonl": 1}
    readable[paths["truncated_zst"].name] = 1
    if os.access(paths["unreadable"], os.R_OK):
        readable["unreadable.jsonl"] = 1
    assert read == readable

    reasons = {Path(file["path"]).name: (file["status"], file["reason"]) for file in found["not_read"]}
    if "unreadable.jsonl" not in readable:
        assert reasons.pop("unreadable.jsonl") == ("unreadable", "can't be read: Permission denied")
    link = "a symbolic link, not followed: index its target by its own path"
    size = paths["unclosed_line"].stat().st_size
    assert reasons == {
        "empty.jsonl": ("empty", "an empty file"),
        "binary.jsonl": ("unrecognized", "a binary file"),
        "fifo.jsonl": ("skipped", "a named pipe, never opened"),
        "socket.jsonl": ("skipped", "a socket, never opened"),
        "again": ("skipped", link),
        "self-link.jsonl": ("skipped", link),
    }
    partly = {Path(file["path"]).name: file["reason"] for file in found["partly_read"]}
    assert partly == {
        paths["truncated_zst"].name: "the compressed file is cut off; everything up to there is indexed",
        "unclosed.jsonl": f"its last line has {size} bytes and no end yet: its beginning is kept",
    }


def _long_log() -> Iterator[bytes]:
    prompt, answer = _claude_lines(11)
    yield prompt + b"\n"
    start = answer.removesuffix(b"}") + b',"more":"'
    yield start + b"x" * (depth(1, LINE_MEGABYTES) * 1_000_000 - len(start) - 2) + b'"}\n'
    yield answer + b"\n"


# --- lines that are hard to read ---


def nested(levels: int) -> bytes:
    return b'{"type":"user","uuid":"u","deep":' + b"[" * levels + b"]" * levels + b"}"


def called(arguments: str) -> bytes:
    """A Claude Code line that calls a tool with these arguments, as JSON."""
    line = json.dumps(
        {
            "type": "assistant", "uuid": "u", "sessionId": "s", "timestamp": "2026-10-01T10:00:00Z",
            "message": {"id": "m", "role": "assistant",
                        "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"x": "HERE"}}]},
        }
    )  # fmt: skip
    return line.replace('"HERE"', arguments).encode()


HARD: dict[str, bytes] = {
    "a thousand levels": nested(1000),
    "as many levels as a fast parser takes": nested(1020),
    "a hundred thousand levels": nested(100_000),
    "a thousand levels in an argument": called("[" * 1000 + "]" * 1000),
    "five hundred levels in an argument": called('{"a":' * 500 + "1" + "}" * 500),
    "a bare array of a thousand levels": b"[" * 1000 + b"]" * 1000,
    "levels and NaN": called("[" * 960 + "NaN" + "]" * 960),
    "very many levels and NaN": called("[" * 5000 + "NaN" + "]" * 5000),
    "only levels, unclosed": b"[" * 100_000,
    "a NUL in a key": called('{"a\\u0000b": 1}'),
    "a NUL in the line": called('"a\x00b"'),
    "a line of NULs": b"\x00" * 5000,
    "lone surrogates": called('"\\ud800 and \\udfff"'),
    "a lone surrogate in a key": called('{"\\ud83d": "x"}'),
    "NaN and the infinities": called("[NaN, Infinity, -Infinity, 1e999]"),
    "NaN beside a huge integer": called("[NaN, 123456789012345678901234567890]"),
    "a huge integer": called("-" + "9" * 300),
    "an integer of ten thousand digits": called("9" * 10_000),
    "a float of many digits": called("0." + "1" * 10_000),
    "only spaces": b" " * 1_000_000,
    "only tabs and carriage returns": b"\t\r\r\t\r",
    "a bare value": b"42",
    "a bare string": b'"tidal"',
    "a line separator": called('"a\u2028b\u2029c\x85d"'),
    "a number for a name": called("1").replace(b'"Bash"', b"[1,2]"),
    "jammed lines": called("1") + called("2"),
    "a time before 1970": called("1").replace(b"2026-10", b"1960-10"),
    "a time of ten thousand years": called("1").replace(b'"2026-10-01T10:00:00Z"', b"999999999999999"),
    "a session that is called like a twin": called("1").replace(b'"s"', b'"hard~2"'),
    "a session without a name": called("1").replace(b'"s"', b'""'),
    "a session with a NUL": called("1").replace(b'"s"', b'"a\\u0000b"'),
    "a session with a line end": called("1").replace(b'"s"', b'"a\\nb"'),
    "a huge exit code": b'{"type":"response_item","timestamp":"x","payload":{"type":"function_call_output",'
    b'"call_id":"c","output":"{\\"output\\":\\"\\",\\"metadata\\":{\\"exit_code\\":1' + b"0" * 40 + b'}}"}}',
}


def surroundings(line: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A line as the only one, between others, and first."""
    prompt, answer = _claude_lines(12)
    yield "alone", [line]
    yield "between", [prompt, line, answer]
    yield "first", [line, prompt, answer]
    yield "codex", [*_codex_lines()[:3], line, _codex_lines()[3]]


@pytest.mark.parametrize("name", HARD)
def test_no_line_is_too_hard_and_each_is_kept_or_counted(name: str, tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for place, lines in surroundings(HARD[name]):
        (folder / f"{place}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    index(database, [str(folder)])
    for place, lines in surroundings(HARD[name]):  # the state must be readable, too
        (folder / f"{place}.jsonl").open("ab").write(lines[-1] + b"\n")
    index(database, [])
    files = {Path(row[0]).stem: row for row in contents(database)["files"]}
    assert [place for place, row in files.items() if row[1] != "log" and place != "alone"] == []
    for place, lines in surroundings(HARD[name]):
        _, status, _, _, _, _, _, count, records, unreadable, pending = files[place]
        blank = not HARD[name].strip(b"\0 \t\r\n")
        if status == "log":
            assert (count, pending) == (len(lines) + 1, 0)
            assert records + unreadable >= count - blank * (2 if place == "alone" else 1)
    everything_can_be_opened(database)


def everything_can_be_opened(database: Path) -> None:
    """Ask for every session and event as a client would: no defect of agtrace among the answers."""
    answers = Service(replace(load(), data_dir=database.parent), log=silent)
    for uid, count in {row[0]: row[15] for row in contents(database)["sessions"]}.items():
        if not 0 < len(uid) <= 200:
            continue
        for number in range(min(count, depth(2, 12))):
            asked = answers.ask("get_event_details", {"session_id": uid, "event_index": number}).value
            assert asked.get("error", {}).get("code") != "internal_error", (uid, number)
        for level in ("summary", "turns"):
            asked = answers.ask("get_session_details", {"session_id": uid, "detail_level": level}).value
            assert asked.get("error", {}).get("code") != "internal_error", uid
    for query in ("", "a", "\x00", "NaN"):
        assert answers.ask("search_event_previews", {"order": "newest", "query": query}).value["success"]


MANY, MOST_MEMORY_FOR_MANY = depth(100_000, 999_000), depth(150_000_000, MOST_MEMORY)
"""How many values of a line are read, of which a million is too many, and what that may take."""
BOMBS: dict[str, Callable[[], bytes]] = {
    "an array of tiny numbers": lambda: called("[" + "1," * 1_200_000 + "1]"),
    "an object of many keys": lambda: called("{" + ",".join(f'"{n:x}":1' for n in range(1_200_000)) + "}"),
    "many empty objects": lambda: called("[" + "{}," * MANY + "1]"),
    "many keys": lambda: called("{" + ",".join(f'"{n:x}":1' for n in range(MANY)) + "}"),
    "many keys of a record": lambda: b'{"type":"x",' + b",".join(b'"%x":1' % n for n in range(MANY)) + b"}",
}


LARGE_BOMBS = ("an object of many keys", "many keys")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in LARGE_BOMBS)) for name in BOMBS]
)
def test_megabytes_of_tiny_values_on_one_line_stay_in_bounds(name: str, tmp_path: Path) -> None:
    prompt, answer = _claude_lines(13)
    (tmp_path / "bomb.jsonl").write_bytes(b"\n".join([prompt, BOMBS[name](), answer, b""]))
    ended = agtrace("index", "--json", tmp_path / "bomb.jsonl")
    sys.stdout.write(f"{name}: {ended.memory / 1e6:.0f} MB, {ended.json()['seconds']} s\n")
    assert ended.code == 0
    assert ended.json()["records"] + ended.json()["unreadable_lines"] == 3
    assert ended.memory < MOST_MEMORY_FOR_MANY


LINES = depth(3000, 8000)


@pytest.mark.thorough
def test_a_record_that_comes_again_and_again_costs_as_much_as_others_do(tmp_path: Path) -> None:
    def seconds(name: str, texts: Iterable[str]) -> float:
        lines = [b'{"working_dir":"/w","description":"tides","schedule_id":null,"message_count":8000}']
        lines += [
            f'{{"role":"user","created":1758190500,"content":[{{"type":"text","text":"{text}"}}]}}'.encode()
            for text in texts
        ]
        path = tmp_path / name / "20260918_101500.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"\n".join([*lines, b""]))
        start = time.process_time()
        assert index(tmp_path / f"{name}-data" / "index.sqlite3", [str(path)]).records == len(lines)
        return time.process_time() - start

    others = seconds("others", (f"gull {number}" for number in range(LINES)))
    assert seconds("again", ("gulls" for _ in range(LINES))) < 3 * others, "by the square it would be ten times as much"


@pytest.mark.thorough
def test_many_long_lines_of_no_known_format_are_not_gathered(tmp_path: Path) -> None:
    line = b'{"x":"' + b"y" * 25_000_000 + b'"}\n'
    with (tmp_path / "unknown.jsonl").open("wb") as file:
        for _ in range(10):
            file.write(line)
    ended = agtrace("index", "--json", tmp_path / "unknown.jsonl")
    assert ended.code == 0
    assert ended.memory < MOST_MEMORY


@pytest.mark.thorough
def test_a_small_compressed_file_that_grows_without_end_is_read_in_bounds(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    prompt, answer = _claude_lines(14)
    with (tmp_path / "bomb.jsonl.zst").open("wb") as file:
        file.write(compressor.compress(prompt + b"\n"))
        for _ in range(depth(150, 600)):
            file.write(compressor.compress(b"x" * 1_000_000))
        file.write(compressor.compress(b"\n" + answer + b"\n") + compressor.flush())
    ended = agtrace("index", "--json", tmp_path)
    assert ended.code == 0
    assert (ended.json()["records"], ended.json()["events"]) == (1, 2), "the prompt, and the head of what follows"
    assert ended.memory < MOST_MEMORY
    assert "expands more than 256-fold" in agtrace_here("doctor", "--json").json()["partly_read"][0]["reason"]


TERABYTE = 1 << 40


def _sparse(path: Path, content: bytes) -> Path:
    """A file that takes no room and has no line end behind its beginning."""
    with path.open("wb") as file:
        file.write(content)
        file.truncate(TERABYTE)
    return path


@pytest.mark.thorough
def test_a_line_without_end_is_not_read_to_see_whether_it_is_a_logs(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    no_log = _sparse(folder / "export.jsonl", b'{"version": 3, "sources": ["' + b"x" * 2000)
    done = index(database, [str(folder)])
    assert (done.files_seen, done.files_unreadable) == (1, 1)
    assert done.bytes_read < 40 * 1024 * 1024
    (told,) = agtrace_here("doctor", "--json").json()["not_read"]
    assert (told["path"], told["status"]) == (str(no_log), "unreadable")
    assert "begins with a line of more than" in told["reason"]


@pytest.mark.thorough
def test_of_a_compressed_file_no_more_is_read_to_see_whether_it_is_a_log(tmp_path: Path, database: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    with (tmp_path / "export.jsonl.zst").open("wb") as file:
        for _ in range(depth(100, 1000)):
            file.write(compressor.compress(b"x" * 1_000_000))
        file.write(compressor.flush())
    done = index(database, [str(tmp_path)])
    assert (done.files_unreadable, done.bytes_read < 10_000) == (1, True), "some of its 60 KB"


@pytest.mark.thorough
def test_a_log_is_read_up_to_a_line_without_end(tmp_path: Path, database: Path) -> None:
    prompt, answer = _claude_lines(16)
    _sparse(tmp_path / "log.jsonl", prompt + b"\n" + answer[:200])
    done = index(database, [str(tmp_path)])
    assert (done.records, done.events) == (1, 2), "the prompt, and the head of the line"
    assert done.bytes_read < 300 * 1024 * 1024
    (told,) = agtrace_here("doctor", "--json").json()["partly_read"]
    assert "line 2 has more than 268435456 bytes" in told["reason"]


# --- encodings ---


@pytest.mark.parametrize("lines", [1, 2], ids=["one line", "two lines"])
def test_a_byte_order_mark_and_carriage_returns_change_nothing(lines: int, tmp_path: Path, database: Path) -> None:
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(b"".join(line + b"\n" for line in _claude_lines(15)[:lines]))
    index(database, [str(plain)])
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n").replace(b"000f", b"0010"))
    index(database, [str(marked)])
    found = contents(database)
    texts = [text for _, _, text, _ in found["texts"]]
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :] != []
    assert sum(row[9] for row in found["files"]) == 0, "no unreadable line"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_log_in_another_encoding_is_reported_and_not_parsed(encoding: str, tmp_path: Path, database: Path) -> None:
    log = tmp_path / "logs" / "wide.jsonl"
    log.parent.mkdir()
    log.write_bytes("".join(line.decode() + "\n" for line in _claude_lines(16)).encode(encoding))
    index(database, [str(log.parent)])
    ((_, status, reason, *_),) = contents(database)["files"]
    assert status == "unrecognized"
    assert reason in ("a binary file", "not a log format that agtrace knows")


def test_a_file_name_that_is_no_text_is_reported_and_stops_nothing(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    hostile.good(folder)
    try:
        (folder / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(b"{}\n")
        (folder / os.fsdecode(b"\xff")).mkdir()
    except OSError:
        pytest.skip("this file system takes no such name")
    index(database, [str(folder)])
    statuses = {Path(row[0]).name: row[1:3] for row in contents(database)["files"]}
    reason = ("skipped", "its name is not UTF-8: rename it to have it indexed")
    assert statuses == {"good.jsonl": ("log", None), "caf\ufffd.jsonl": reason, "\ufffd": reason}


@pytest.mark.parametrize("name", ["a\nb.jsonl", "a'b\".jsonl", "100%_.jsonl", "潮🐟.jsonl", "a#replaced-1", "-x.jsonl"])
def test_any_other_file_name_is_an_ordinary_one(name: str, tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / name
    log.write_bytes(b"".join(line + b"\n" for line in _claude_lines(17)))
    index(database, [str(folder)])
    assert [row[0] for row in contents(database)["files"] if row[1] == "log"] == [str(log)]
    assert index(database, []).files_opened == 0


# --- any JSON in any place ---

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["user", "assistant", "tool_use", "tool_result", "s", "m", "\x00", "2026-10-01T10:00:00Z"]),
    st.sampled_from([-1, 10**30, 2**63, 1e300, True]),
)  # fmt: skip
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6), v, max_size=3))


@cache
def real_lines() -> list[Any]:
    """Decoded lines of the samples, a few of each kind."""
    from tests.conftest import SAMPLES

    kept: dict[str, list[Any]] = {}
    for path in sorted(SAMPLES.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            payload = record.get("payload")
            kind = f"{record.get('type')}/{payload.get('type') if isinstance(payload, dict) else ''}"
            kept.setdefault(kind, []).append(record)
    return [record for records in kept.values() for record in records[:4]]


@pytest.mark.thorough
@settings(
    max_examples=examples(30), deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(data=st.data())
def test_no_json_in_any_place_of_a_log_stops_a_run(data: st.DataObject, tmp_path: Path) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    log, database = folder / "spoiled.jsonl", folder / "data" / "index.sqlite3"
    for _ in range(3):
        records = [
            json.loads(json.dumps(r))
            for r in data.draw(st.lists(st.sampled_from(real_lines()), min_size=1, max_size=6))
        ]
        for record in records:
            damage(record, data, values)
        with log.open("ab") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records).encode())
        index(database, [str(log)])
    everything_can_be_opened(database)
