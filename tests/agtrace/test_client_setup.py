"""`agtrace setup` for programs whose settings it edits: it shows the change, makes it, takes it back, and lists all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agtrace.upkeep.agents import NAMES
from tests.agtrace.terminal import AGTRACE, agtrace_here

SAMPLES = Path(__file__).with_name("clients")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of this machine, and no variable that moves settings."""
    monkeypatch.setenv("PATH", str(AGTRACE.parent))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "COPILOT_HOME", "QWEN_HOME", "GOOSE_PATH_ROOT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cursor(own_home: Path) -> Path:
    """Settings of Cursor, with comments and another server."""
    file = own_home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes((SAMPLES / "cursor.before").read_bytes())
    return file


def test_without_apply_the_change_is_shown_and_nothing_is_written(cursor: Path, tmp_path: Path) -> None:
    before = cursor.read_bytes()
    said = agtrace_here("setup", "cursor")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == f"To add agtrace to Cursor, change {cursor} like this:"
    added = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
    entry = json.loads("{" + "".join(added).rstrip(",") + "}")["agtrace"]
    assert entry["command"] == str(AGTRACE)
    assert entry["env"] == {"AGTRACE_DATA_DIR": str(tmp_path / "data")}
    assert "AGTRACE_DATA_DIR" not in agtrace_here("setup", "cursor", AGTRACE_DATA_DIR="").out
    assert "`agtrace setup cursor --apply`" in lines[-1]
    assert cursor.read_bytes() == before
    agtrace_here("setup", "qwen")
    assert not (cursor.parents[1] / ".qwen").exists()


def test_it_is_added_once_and_taken_out_again(cursor: Path) -> None:
    before = cursor.read_bytes()
    assert f"agtrace was added to Cursor: {cursor}" in agtrace_here("setup", "cursor", "--apply").out
    after = cursor.read_bytes()
    assert b"// issues and pull requests" in after and b'"agtrace": {' in after
    for arguments in ([], ["--apply"]):
        assert "agtrace is in the settings of Cursor already" in agtrace_here("setup", "cursor", *arguments).out
    assert cursor.read_bytes() == after
    shown = agtrace_here("setup", "cursor", "--remove")
    assert '-    "agtrace": {' in shown.out and "`agtrace setup cursor --remove --apply`" in shown.out
    assert cursor.read_bytes() == after
    assert "agtrace was taken out of Cursor" in agtrace_here("setup", "cursor", "--remove", "--apply").out
    assert cursor.read_bytes() == before
    assert "agtrace isn't in the settings of Cursor" in agtrace_here("setup", "cursor", "--remove", "--apply").out


def test_another_data_folder_or_program_brings_the_entry_up_to_date(cursor: Path, tmp_path: Path) -> None:
    agtrace_here("setup", "cursor", "--apply")
    agtrace_here("setup", "cursor", "--apply", AGTRACE_DATA_DIR=str(tmp_path / "elsewhere"))
    assert str(tmp_path / "elsewhere") in cursor.read_text() and str(tmp_path / "data") not in cursor.read_text()


def test_secrets_and_commands_to_the_terminal_in_the_settings_are_not_shown(cursor: Path) -> None:
    token = "ghp_" + "q7Rk2mZx9Wv4Tn8Lb3Yc6Hd1Fs5Gj0Pa2Qe4"
    cursor.write_text(
        f'{{\n  "mcpServers": {{\n    "x": {{"env": {{"GITHUB_TOKEN": "{token}"}}}} // \x1b[31m\n  }}\n}}\n'
    )
    said = agtrace_here("setup", "cursor")
    assert token not in said.out and "redacted" in said.out
    agtrace_here("setup", "cursor", "--apply")
    assert token in cursor.read_text()


def test_malformed_settings_are_refused_with_the_place(cursor: Path) -> None:
    cursor.write_text('{\n  "mcpServers": oops\n}\n')
    for arguments in ([], ["--apply"], ["--remove", "--apply"]):
        said = agtrace_here("setup", "cursor", *arguments)
        assert (said.code, said.out) == (3, "")
        assert f"{cursor}: line 2, column 17: Expecting value; nothing was changed" in said.err
    assert cursor.read_text() == '{\n  "mcpServers": oops\n}\n'


def test_what_cannot_be_edited_comes_with_the_entry_to_add_by_hand(own_home: Path) -> None:
    file = own_home / ".config" / "goose" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("{extensions: }\n")
    file.write_text("{a: 1}\n")
    said = agtrace_here("setup", "goose", "--apply")
    assert said.code == 3 and "To add it by hand, put this below extensions: {" in said.err
    assert file.read_text() == "{a: 1}\n"


def test_settings_in_a_folder_that_cannot_be_written_stay(cursor: Path) -> None:
    if os.geteuid() == 0:
        cursor.unlink()
        cursor.parent.rmdir()
        cursor.parent.write_text("a file where the folder would be")
        said = agtrace_here("setup", "cursor", "--apply")
        assert said.code == 3 and "can't be read" in said.err
        return
    cursor.parent.chmod(0o500)
    before = cursor.read_bytes()
    said = agtrace_here("setup", "cursor", "--apply")
    assert said.code == 3 and "can't be written" in said.err and cursor.read_bytes() == before
    cursor.parent.chmod(0o700)


def rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in NAMES}


def test_the_list_says_which_programs_are_here_and_which_have_it(cursor: Path, own_home: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("zed", "codex"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    path = f"{AGTRACE.parent}{os.pathsep}{programs}"
    agtrace_here("setup", "cursor", "--apply")
    (own_home / ".claude.json").write_text('{"mcpServers": {"agtrace": {"command": "x"}}}')
    listed = rows(agtrace_here("setup", COLUMNS="40", PATH=path).out)
    assert list(listed) == list(NAMES)
    here = {"claude": "yes", "codex": "no", "cursor": "yes", "zed": "no"}
    assert {name: row[2] for name, row in listed.items() if row[1] == "yes"} == here
    assert {row[2] for name, row in listed.items() if name not in here} == {"no"}


def test_the_list_says_where_there_are_logs_of_a_program_that_is_not_on_the_path(own_home: Path) -> None:
    assert "logs" not in agtrace_here("setup").out
    (own_home / ".claude" / "projects").mkdir(parents=True)
    said = agtrace_here("setup", COLUMNS="40").out
    assert {name: row[1] for name, row in rows(said).items()} == dict.fromkeys(NAMES, "no") | {"claude": "logs"}
    assert "logs: logs found, program not on PATH" in said


@pytest.mark.parametrize(
    ("typed", "title"),
    [("claude-code", "Claude Code"), ("Claude Code", "Claude Code"), ("gemini_cli", "Gemini CLI"),
     ("agy", "Antigravity"), ("cursor-agent", "Cursor"), ("Kiro CLI", "Kiro")],
)  # fmt: skip
def test_a_client_is_named_as_its_agent_is_anywhere_else(typed: str, title: str) -> None:
    assert f"To add agtrace to {title}, " in agtrace_here("setup", typed).out


def test_the_list_names_settings_that_cannot_be_read_and_lists_all_others(cursor: Path) -> None:
    cursor.write_text("{")
    said = agtrace_here("setup")
    assert (said.code, list(rows(said.out))) == (0, list(NAMES))
    assert rows(said.out)["cursor"][3] == "unknown"
    assert f"{cursor}: line 1, column 2: Expecting property name enclosed in double quotes" in said.out


@pytest.mark.parametrize("arguments", [["--apply"], ["--remove"], ["--remove", "--apply"]])
def test_a_change_needs_a_client(arguments: list[str]) -> None:
    said = agtrace_here("setup", *arguments)
    assert said.code == 2 and "need a CLIENT" in said.err
