"""The tool `read`: whole files and ranges of lines, whatever a path leads to."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from agtrace.pruning.arguments import (
    BashArguments,
    GrepArguments,
    input_schema,
)
from agtrace.pruning.output import MOST_CAPTURED
from tests.pruning.running import failure, run


@pytest.mark.parametrize("text", ["", "one", "one\n", "one\r\ntwo\r\n", "\n\n", "é€😀\n", "\x1b[1mbold\x1b[0m"])
def test_a_file_is_given_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text.encode())
    output = run("read", tmp_path, file_path="file")
    assert (output.text, output.stdout_bytes, output.stderr_bytes) == (text, len(text.encode()), 0)
    assert (output.exit_code, output.first_line, output.truncated) == (None, 1, None)


@pytest.mark.parametrize("last", ["\n", "", "\nend"])
def test_a_range_is_the_lines_between_two_numbers_for_all_numbers(last: str, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 8)]
    text = "\n".join(lines) + last
    (tmp_path / "file").write_text(text)
    whole = text.splitlines(keepends=True)
    for start in range(1, len(whole) + 1):
        for end in range(start, len(whole) + 3):
            output = run("read", tmp_path, file_path="file", start_line=start, end_line=end)
            assert (output.text, output.first_line) == ("".join(whole[start - 1 : end]), start)
        assert run("read", tmp_path, file_path="file", start_line=start).text == "".join(whole[start - 1 :])
        assert run("read", tmp_path, file_path="file", end_line=start).text == "".join(whole[:start])


@pytest.mark.parametrize(
    ("line", "radius", "first", "last"), [(50, None, 30, 70), (3, 5, 1, 8), (99, 5, 94, 100), (7, 0, 7, 7)]
)
def test_the_lines_around_one_are_those_within_the_radius(
    line: int, radius: int | None, first: int, last: int, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("".join(f"{number}\n" for number in range(1, 101)))
    given = {} if radius is None else {"radius": radius}
    output = run("read", tmp_path, file_path="file", around_line=line, **given)
    assert output.text.split() == [str(number) for number in range(first, last + 1)]
    assert output.first_line == first


@pytest.mark.parametrize("lines", [{"start_line": 4}, {"start_line": 4, "end_line": 9}, {"around_line": 4}])
def test_lines_that_arent_there_are_an_error_that_says_how_many_there_are(
    lines: dict[str, int], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("1\n2\n3\n")
    failed = failure("read", tmp_path, file_path="file", **lines)
    assert failed.error_code == "out_of_range"
    assert failed.message == f"{tmp_path}/file has 3 lines: there is no line 4."


def test_of_a_large_file_both_ends_are_given_in_whole_lines(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(500_000))
    (tmp_path / "file").write_text(text)
    output = run("read", tmp_path, file_path="file")
    first, gap, last = output.text.partition("... (")
    left_out, _, last = last.partition(" bytes left out; the lines below are counted without them) ...\n")
    assert gap and text.startswith(first) and text.endswith(last) and first.endswith("\n")
    assert len(first) + int(left_out.replace(",", "")) + len(last) == len(text) == output.stdout_bytes
    assert output.truncated == (len(first) + len(last), len(text))
    assert MOST_CAPTURED - 50 < len(first) + len(last) <= MOST_CAPTURED


def test_a_file_is_found_from_the_folder_the_home_and_the_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("found")
    environment = {"HOME": str(tmp_path)}
    assert run("read", tmp_path, environment, file_path="./file").text == "found"
    assert run("read", Path("/"), environment, file_path="~/file").text == "found"
    assert run("read", Path("/"), environment, file_path=str(tmp_path / "file")).text == "found"


def test_a_file_that_doesnt_know_its_size_is_read_to_its_end(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc")
    assert "VmPeak" in run("read", tmp_path, file_path="/proc/self/status").text


@pytest.mark.parametrize(
    ("path", "code"),
    [("nothing", "ENOENT"), ("file/x", "ENOTDIR"), (".", "EISDIR"), ("loop", "ELOOP"), ("x" * 300, "ENAMETOOLONG"),
     ("fifo", "not_regular"), ("socket", "not_regular"), ("/dev/zero", "not_regular"), ("to fifo", "not_regular")],
)  # fmt: skip
def test_what_is_no_file_is_an_error_and_nothing_waits_for_it(path: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to fifo").symlink_to("fifo")
    here = os.open(tmp_path, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{here}/socket" if Path("/proc").exists() else str(tmp_path / "socket"))
    os.close(here)
    failed = failure("read", tmp_path, file_path=path)
    assert failed.error_code == code
    assert failed.output is None and failed.message.endswith(".")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0)
    assert failure("read", tmp_path, file_path="file").error_code == "EACCES"


@pytest.mark.parametrize("data", [b"\0", b"text\n" * 1_000 + b"\0", b"text\n" * 300_000 + b"\0"])
@pytest.mark.parametrize("lines", [{}, {"start_line": 2}])
def test_a_file_with_a_nul_is_binary_wherever_it_is(data: bytes, lines: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    failed = failure("read", tmp_path, file_path="file", **lines)
    assert failed.error_code == "binary" and f"({len(data):,} bytes)" in failed.message


# -- arguments -------------------------------------------------------------------------------------


def test_schemas_have_every_argument_and_neither_titles_nor_null() -> None:
    schema = input_schema(GrepArguments)
    assert set(schema["properties"]) == set(GrepArguments.model_fields) and schema["additionalProperties"] is False
    assert input_schema(BashArguments)["required"] == ["command"]
    assert "null" not in json.dumps(schema) and "title" not in json.dumps(schema)
