"""The tool `bash`: what it gives of a command, and what it says of one that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agtrace.pruning.output import MOST_CAPTURED
from tests.pruning.running import failure, run


def test_a_command_gives_its_output_then_its_errors_and_their_sizes(tmp_path: Path) -> None:
    output = run("bash", tmp_path, command="printf out; echo wrong >&2; pwd")
    assert output.text == f"out{tmp_path}\n[stderr]\nwrong\n"
    assert (output.stdout_bytes, output.stderr_bytes) == (len(f"out{tmp_path}\n"), 6)
    assert (output.exit_code, output.truncated, output.first_line) == (0, None, 1)
    assert output.duration_ms > 0


@pytest.mark.parametrize("command", ["-x", "--help", "-c 'echo no'"])
def test_a_command_that_begins_like_an_option_is_a_command(command: str, tmp_path: Path) -> None:
    failed = failure("bash", tmp_path, command=command)
    assert failed.exit_code == 127 and failed.output and "command not found" in failed.output.text


def test_a_failing_command_is_an_answer_if_that_is_allowed(tmp_path: Path) -> None:
    output = run("bash", tmp_path, command="echo tried; exit 3", allow_nonzero_exit=True)
    assert (output.text, output.exit_code) == ("tried\n", 3)


def test_a_command_whose_time_is_up_gives_what_it_wrote_until_then(tmp_path: Path) -> None:
    command = "trap 'echo ending; exit 0' TERM; echo begun; while :; do sleep 0.01; done"
    failed = failure("bash", tmp_path, command=command, timeout_ms=500)
    assert (failed.error_code, failed.timeout_ms, failed.exit_code) == ("timeout", 500, None)
    assert failed.output and failed.output.text.startswith("begun\nending\n")


def test_output_that_comes_just_after_the_end_is_not_lost(tmp_path: Path) -> None:
    assert run("bash", tmp_path, command="echo late > >(sleep 0.02; cat)").text == "late\n"


def test_a_command_works_in_the_folder_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    assert run("bash", tmp_path, command="pwd", cwd="inner").text == f"{tmp_path}/inner\n"
    environment = {**os.environ, "HOME": str(tmp_path)}
    assert run("bash", Path("/"), environment, command="pwd", cwd="~/inner").text == f"{tmp_path}/inner\n"


def test_where_there_is_no_bash_it_is_sh(tmp_path: Path) -> None:
    assert run("bash", tmp_path, {"PATH": str(tmp_path)}, command="echo $0").text == "/bin/sh\n"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    output = run("bash", tmp_path, command=r"printf 'a\xffb\r\n\x1b[1m\0'")
    assert output.text == "a\ufffdb\r\n\x1b[1m\0" and output.stdout_bytes == 10


def test_of_a_long_output_both_ends_are_kept_in_whole_lines(tmp_path: Path) -> None:
    output = run("bash", tmp_path, command="seq 1000000; echo wrong >&2")
    total = output.stdout_bytes + output.stderr_bytes
    lines = output.text.split("\n")
    gap = next(number for number, line in enumerate(lines) if line.startswith("..."))
    assert lines[:gap] == [str(number) for number in range(1, gap + 1)]
    rest = lines[gap + 1 :]
    assert rest[-3:] == ["[stderr]", "wrong", ""]
    assert rest[:-3] == [str(number) for number in range(1_000_001 - len(rest) + 3, 1_000_001)]
    assert output.truncated and output.truncated.total_bytes == total == 6_888_896 + 6
    assert MOST_CAPTURED - 30 < output.truncated.kept_bytes <= MOST_CAPTURED
    assert (
        lines[gap]
        == f"... ({total - output.truncated.kept_bytes:,} bytes left out; the lines below are counted without them) ..."
    )
