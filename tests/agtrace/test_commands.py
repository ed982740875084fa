"""The command line as people and scripts use it, on the sample sessions.

The console script itself runs if the start or end of a process matters, otherwise the same commands within the test.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from tests.agtrace.terminal import Said, agtrace, agtrace_here, index_here
from tests.conftest import SAMPLES, keep_rules
from tests.contents import contents

LARGE = "d41f7a52"


def run(*arguments: str | Path, **environment: str) -> Said:
    """Run a command in this process, but for `index`: it gives way to others for as long as its process lives."""
    return (agtrace if arguments[:1] == ("index",) else agtrace_here)(*arguments, **environment)


# --- every command on the samples ---


@pytest.mark.thorough
def test_the_console_script_says_what_its_commands_say(indexed: Path) -> None:
    said = agtrace("index")
    assert (said.code, said.err) == (0, "")
    assert "sessions" in said.out and "0 changed" in said.out
    for arguments in (["search", "locked", "--failed"], ["show", "zzzz"]):
        assert agtrace(*arguments) == agtrace_here(*arguments)


def test_the_doctor_names_what_was_not_understood_and_exits_with_1(indexed: Path) -> None:
    said = agtrace_here("doctor")
    assert said.code == 1
    for text in ("where it looked", "tide-gauge-calibration", "e97a4b06-73c8-4f52-8d1e-b06c5a2f91d4.jsonl:42"):
        assert text in said.out
    found = agtrace_here("doctor", "--json")
    assert found.code == 1
    assert found.json()["index"]["integrity"] == "ok"
    assert [agent["provider"] for agent in found.json()["agents"]] == [
        "antigravity",
        "claude_code",
        "codex",
        "copilot",
        "cursor",
        "gemini",
        "goose",
        "kiro",
        "oh_my_pi",
        "openclaw",
        "opencode",
        "pi",
        "qwen",
    ]


def test_the_doctor_exits_with_0_where_all_is_well(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES / "codex" / "sessions" / "2026" / "10", logs)
    index_here(logs)
    said = agtrace_here("doctor", "--json")
    assert (said.code, said.json()["trouble"]) == (0, [])


@pytest.mark.parametrize("query", ["zebra quagga", "[bold]markup[/bold]"])
def test_a_search_without_a_match_exits_with_1_as_grep_does(query: str, indexed: Path) -> None:
    for options in ([], ["--newest"], ["--by-session"]):
        said = agtrace_here("search", query, "--session", LARGE, *options)
        assert (said.code, said.err) == (1, "") and f"containing {query!r}" in said.out
    assert agtrace_here("search", query, "--json").code == 1


def test_an_event_is_shown_whole_however_long_it_is(indexed: Path) -> None:
    said = {(uid, number): text for uid, number, text, _ in contents(indexed / "index.sqlite3")["texts"]}
    outputs = {row[:2] for row in contents(indexed / "index.sqlite3")["events"] if row[2] in (1, 4)}
    place, text = max(((place, said[place]) for place in outputs), key=lambda item: len(item[1]))
    assert len(text) > 2048, "more than an answer of this size takes"
    shown = agtrace_here("show", f"{place[0]}:{place[1]}", AGTRACE_MAX_RESPONSE_BYTES="2048").out
    assert text.rstrip("\n") in shown


def test_every_command_and_setting_is_in_the_help() -> None:
    said = agtrace("--help")
    assert said.code == 0
    commands = re.findall(r"^  (\w+)  ", said.out.partition("Find and read:")[2], re.M)
    assert {"index", "sessions", "show", "search", "analyze", "mcp", "doctor", "setup"} <= set(commands)
    for command in commands:
        shown = run(command, "-h")
        assert (shown.code, shown.err) == (0, "")
        assert f"Usage: agtrace {command}" in shown.out
    assert "AGTRACE_DATA_DIR" in said.out
    assert agtrace_here("--version").out.startswith("agtrace, version ")


# --- usage ---


def test_a_folder_that_is_not_there_is_not_indexed() -> None:
    said = run("index", "no/such/folder")
    assert (said.code, said.out) == (2, "") and "does not exist" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--", "apiKey: '{secret}'"],
        ["show", "--", "CREATE LOGIN tide WITH PASSWORD = N'{secret}';"],
        ["search", "x", "--project", "CREATE LOGIN tide WITH PASSWORD = N'{secret}';"],
        ["sessions", "--project", "artifactory: AKCp8H42a1g5Hspe1{secret}GmjCYkwBoqh7fNFk2InMV"],
    ],
    ids=" ".join,
)
def test_a_secret_in_a_wrong_place_is_not_printed_changed_or_cut_so_that_it_is_known_no_more(
    arguments: list[str], indexed: Path
) -> None:
    secret = "xL4dIz7x5zVWXM" + "pStX3u6EhvPvCmJwuyWsZ"
    said = run(*(argument.replace("{secret}", secret) for argument in arguments))
    assert said.code == 2 and "[redacted: " in said.err
    assert secret[:14].lower() not in said.err.lower()


# --- nothing there, nothing readable ---

QUESTIONS = [
    ["index"], ["sessions"], ["search", "x"], ["search", "x", "--by-session"], ["show", LARGE],
    ["show", f"ax://session/{LARGE}"], ["analyze", LARGE], ["doctor"],
]  # fmt: skip


def test_without_any_log_everything_is_said_to_be_empty_and_what_was_looked_for(own_home: Path) -> None:
    said = agtrace("index")
    assert said.code == 0
    assert said.out.startswith("Found no logs of Claude Code, Codex, Gemini CLI, ")
    assert "agtrace doctor (all places: --json)" in said.out
    homes = agtrace_here("doctor", "--json").json()["homes"]
    assert str(own_home / ".claude" / "projects") in [home["path"] for home in homes]
    (own_home / "empty").mkdir()
    assert f"No logs found. Looked in:\n  {own_home / 'empty'}\n" in agtrace("index", str(own_home / "empty")).out
    assert "Found 0 sessions" in agtrace_here("sessions").out
    doctor = agtrace_here("doctor")
    assert doctor.code == 1
    assert "no logs found" in doctor.out


PLACES = ("a file", "below a file", "of a text", "a folder in its place", "a newer version")


@pytest.mark.parametrize(
    ("place", "command"), [*product(PLACES, (["sessions"],)), *(("a newer version", one) for one in QUESTIONS)], ids=str
)
def test_an_index_that_cannot_be_used_is_said_so_with_3(
    place: str, command: list[str], tmp_path: Path, compiled_rules: Path
) -> None:
    data = tmp_path / "elsewhere"
    if place == "a file":
        data.write_text("not a folder")
    elif place == "below a file":
        data.write_text("not a folder")
        data = data / "below"
    elif place == "a folder in its place":
        (data / "index.sqlite3").mkdir(parents=True)
    elif place == "of a text":
        data.mkdir()
        (data / "index.sqlite3").write_text("this is no database, but a text of some length\n" * 100)
    else:
        keep_rules(compiled_rules, data)
        connection = sqlite3.connect(data / "index.sqlite3")
        connection.execute("PRAGMA user_version = 999")
        connection.close()
    said = run(*command, AGTRACE_DATA_DIR=str(data))
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("agtrace: ")
    assert len(said.err.splitlines()) <= 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("command", QUESTIONS, ids=" ".join)
def test_a_data_folder_without_permissions_is_said_so_with_3(command: list[str], tmp_path: Path) -> None:
    data = tmp_path / "closed"
    data.mkdir(mode=0)
    said = run(*command, AGTRACE_DATA_DIR=str(data))
    assert (said.code, said.out) == (3, "")


def test_a_data_folder_that_is_not_there_is_named_as_it_may_be_mistyped(tmp_path: Path) -> None:
    mistyped = tmp_path / "dta"
    said = agtrace_here("sessions", AGTRACE_DATA_DIR=str(mistyped))
    assert f"there is no data folder {mistyped} yet: a new index is made in it" in said.err
    assert "no data folder" not in agtrace_here("sessions", AGTRACE_DATA_DIR=str(mistyped)).err
    assert "no data folder" not in agtrace_here("sessions").err
