"""`agtrace resume`: the agent's own command, in the folder where the session ran."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

from tests.agtrace.asking import claude_log
from tests.agtrace.live_logs import Gemini
from tests.agtrace.terminal import AGTRACE, agtrace_here, index_here

ONE = "6d1c2b3a-0000-4000-8000-000000000001"


def indexed(tmp_path: Path) -> Path:
    """A session that ran in a folder with a space in its name."""
    folder = tmp_path / "tide pool"
    folder.mkdir()
    claude_log(tmp_path / "home", ONE, cwd=str(folder)).prompt("Draw the tide.").say("Done.")
    index_here(tmp_path / "home")
    return folder


def test_the_command_can_be_pasted_and_names_the_folder_and_the_whole_id(tmp_path: Path) -> None:
    folder = indexed(tmp_path)
    said = agtrace_here("resume", ONE[:8])
    assert (said.out, said.err) == (f"cd '{folder}' && claude --resume {ONE}\n", "")
    told = agtrace_here("resume", ONE[:8], "--json").json()
    assert told == {"command": ["claude", "--resume", ONE], "folder": str(folder), "log_gone": False}


def test_a_folder_that_looks_like_an_option_is_none(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE, cwd="-tide").prompt("Draw the tide.").say("Done.")
    index_here(tmp_path / "home")
    assert agtrace_here("resume", ONE[:8]).out == f"cd -- -tide && claude --resume {ONE}\n"


def test_a_session_whose_log_is_gone_or_whose_folder_is_elsewhere_says_so(tmp_path: Path) -> None:
    folder = indexed(tmp_path)
    next((tmp_path / "home").rglob("*.jsonl")).unlink()
    folder.rmdir()
    index_here()
    said = agtrace_here("resume", ONE[:8])
    assert "its log is gone" in said.err and "its folder is not here" in said.err
    assert said.out.endswith(f"claude --resume {ONE}\n")


def test_a_session_whose_folder_no_log_tells_says_so(own_home: Path) -> None:
    log = Gemini(own_home)
    log.asked("Export the chart.")
    index_here(own_home)
    said = agtrace_here("resume", log.uid[:8])
    assert said.out == f"gemini --resume {log.uid}\n" and "its folder isn't known" in said.err


def test_a_sub_agent_is_continued_in_the_session_that_started_it(tmp_path: Path) -> None:
    parent = claude_log(tmp_path / "home", ONE).prompt("Draw the tide.").say("Done.")
    folder = parent.path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    agent = claude_log(tmp_path / "others", ONE).prompt("Look at the gauge.").say("Looked.")
    own = {"isSidechain": True, "agentId": "a" * 16}
    lines = [json.dumps(json.loads(line) | own) for line in agent.path.read_text().splitlines()]
    (folder / f"agent-{'a' * 16}.jsonl").write_text("\n".join(lines) + "\n")
    index_here(tmp_path / "home")
    said = agtrace_here("resume", "agent-aaaa")
    assert f"claude --resume {ONE}" in said.out and "is a sub-agent" in said.err


def run(claude: str | None, folder: Path) -> subprocess.CompletedProcess[str]:
    """Resume with the commands of an agent's program, or without the program."""
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    if claude:
        program.write_text(f"#!/bin/sh\n{claude}\n")
        program.chmod(stat.S_IRWXU)
    path = f"{program.parent}:{os.environ['PATH']}" if claude else str(program.parent)
    command = [AGTRACE, "resume", ONE[:8], "--exec"]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)


def test_exec_becomes_the_agent_in_that_folder(tmp_path: Path) -> None:
    folder = indexed(tmp_path)
    ran = run('echo "$PWD|$*"; exit 7', tmp_path)
    assert (ran.returncode, ran.stdout) == (7, f"{folder}|--resume {ONE}\n")


def test_a_folder_that_is_gone_is_an_error_and_nothing_is_run(tmp_path: Path) -> None:
    folder = indexed(tmp_path)
    folder.rmdir()
    ran = run("echo it ran", tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "") and f"can't change to {folder}" in ran.stderr


def test_an_agent_that_is_not_installed_and_a_session_that_is_not_there_are_errors(tmp_path: Path) -> None:
    indexed(tmp_path)
    ran = run(None, tmp_path)
    assert ran.returncode != 0 and "isn't on the PATH" in ran.stderr
    assert agtrace_here("resume", "nothing").code != 0
