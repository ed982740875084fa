"""`agtrace setup`: an existing entry is replaced as a whole or stays, with its environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agtrace.upkeep.agents import AGENTS
from tests.agtrace.terminal import AGTRACE, agtrace, agtrace_here

CLAUDE = """#!{python}
import json, os, pathlib, sys
what, *rest = sys.argv[2:]
settings = pathlib.Path.home() / ".claude.json"
value = json.loads(settings.read_text()) if settings.exists() else {{"mcpServers": {{}}}}
servers = value["mcpServers"]
if what == os.environ.get("FAILING"):
    sys.exit(7)
if what == "add" and "WAITING" in os.environ:
    print("adding", flush=True)
    sys.stdin.readline()
if what == "remove":
    del servers[rest[-1]]
elif rest[2] in servers:
    sys.exit(1)
elif what == "add-json":
    servers[rest[2]] = json.loads(rest[3])
else:
    at = rest.index("--")
    given = [option.split("=", 1) for option in rest[3:at] if option != "--env"]
    servers[rest[2]] = {{"type": "stdio", "command": rest[at + 1], "args": rest[at + 2:], "env": dict(given)}}
settings.write_text(json.dumps(value))
"""
"""What Claude Code 2.1.329 does: it adds nothing that is there, by neither way, and removes what is."""

BEFORE = {"type": "stdio", "command": "/old/agtrace", "args": ["mcp"], "timeout": 9, "env": {"MINE": "1"}}


@pytest.fixture
def claude(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Claude Code on the PATH; gives its settings."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return own_home / ".claude.json"


def entry(settings: Path) -> Any:
    return json.loads(settings.read_text())["mcpServers"].get("agtrace")


def write(settings: Path, before: dict[str, Any]) -> None:
    settings.write_text(json.dumps({"theme": "dark", "mcpServers": {"other": {"command": "x"}, "agtrace": before}}))


@pytest.mark.thorough
def test_an_entry_is_added_with_the_data_folder_in_effect_and_again(claude: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert agtrace("setup", "claude", "--apply").code == 0
        assert entry(claude)["env"] == {"AGTRACE_DATA_DIR": str(tmp_path / "data")}


@pytest.mark.thorough
def test_an_entry_is_taken_out_by_the_agent_itself(claude: Path) -> None:
    write(claude, BEFORE)
    assert "claude mcp remove --scope user agtrace" in agtrace_here("setup", "claude", "--remove").out
    assert entry(claude) == BEFORE
    assert agtrace("setup", "claude", "--remove", "--apply").code == 0
    assert (entry(claude), json.loads(claude.read_text())["mcpServers"]) == (None, {"other": {"command": "x"}})
    assert "nothing to do" in agtrace("setup", "claude", "--remove", "--apply").out


@pytest.mark.thorough
def test_an_entry_that_the_agent_fails_to_take_out_is_reported(claude: Path) -> None:
    write(claude, BEFORE)
    said = agtrace("setup", "claude", "--remove", "--apply", FAILING="remove")
    assert (said.code, "claude ended with exit code 7" in said.err, entry(claude)) == (3, True, BEFORE)


@pytest.mark.thorough
def test_an_entry_is_replaced_but_for_its_environment(claude: Path, tmp_path: Path) -> None:
    write(claude, BEFORE)
    said = agtrace("setup", "claude", "--apply")
    assert (said.code, "--env MINE=1" in said.out) == (0, True)
    assert f"timeout was set in {claude} and is now gone" in said.out
    assert entry(claude)["env"] == {"MINE": "1", "AGTRACE_DATA_DIR": str(tmp_path / "data")}
    assert entry(claude)["command"] != "/old/agtrace"


def test_an_entry_with_a_secret_goes_through_no_argument_and_stays(claude: Path, tmp_path: Path) -> None:
    rules = {"add": [{"name": "badge", "pattern": "BDG-[0-9]{8}"}]}
    (tmp_path / "data" / "redaction.json").write_text(json.dumps(rules))
    write(claude, {**BEFORE, "env": {"MINE": "BDG-12345678"}})
    said = agtrace_here("setup", "claude", "--apply")
    assert said.code and "holds a secret" in said.err and "BDG-12345678" not in said.out + said.err
    assert entry(claude) == {**BEFORE, "env": {"MINE": "BDG-12345678"}}


@pytest.mark.parametrize("failing", ["remove", "add"])
def test_where_that_fails_all_is_as_it_was(claude: Path, failing: str) -> None:
    write(claude, BEFORE)
    before = json.loads(claude.read_text())
    said = agtrace_here("setup", "claude", "--apply", FAILING=failing)
    assert (said.code, "ended with exit code 7; its settings are as they were" in said.err) == (3, True)
    assert json.loads(claude.read_text()) == before


def test_ctrl_c_waits_until_it_is_done(claude: Path) -> None:
    write(claude, BEFORE)
    with subprocess.Popen(
        [AGTRACE, "setup", "claude", "--apply"], env={**os.environ, "WAITING": "1"},
        stdin=-1, stdout=-1, stderr=-1, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        for line in iter(process.stdout.readline, b"adding\n"):
            assert line, "it ended without a word"
            assert entry(claude) in (BEFORE, None)
        os.killpg(process.pid, signal.SIGINT)
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode in (130, 0), "0 where nothing was left to end"
    assert entry(claude)["env"]["MINE"] == "1"


def test_settings_that_cannot_be_read_are_left_alone(claude: Path) -> None:
    claude.write_text('{"mcpServers": {"agtrace": ')
    said = agtrace_here("setup", "claude", "--apply")
    assert (said.code, "nothing was changed" in said.err) == (3, True)
    assert claude.read_text() == '{"mcpServers": {"agtrace": '


@pytest.mark.parametrize("name", AGENTS)
def test_what_is_shown_carries_the_data_folder_in_effect(name: str, tmp_path: Path) -> None:
    shown = agtrace_here("setup", name).out
    assert shown.count("AGTRACE_DATA_DIR") == 2, "in the command, and in the settings"
    assert shown.count(str(tmp_path / "data")) == 2
    assert "AGTRACE_DATA_DIR" not in agtrace_here("setup", name, AGTRACE_DATA_DIR="").out
