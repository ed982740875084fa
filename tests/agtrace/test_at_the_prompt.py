"""What people type at a prompt: help, completion, other names for commands, numbers as lists print them, pipes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agtrace_indexer.run import index

from agtrace.commands import group
from agtrace.settings import load
from tests import corpus
from tests.agtrace.live_logs import Claude
from tests.agtrace.pseudo_terminal import in_terminal
from tests.agtrace.terminal import AGTRACE, Said, agtrace, agtrace_here, index_here

needs_terminals = pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")


@pytest.mark.parametrize(("typed", "meant"), sorted(group._MEANT.items()))
def test_other_names_of_commands_say_what_is_meant(typed: str, meant: str) -> None:
    if typed in group.agtrace.commands:
        pytest.skip("is a command of its own by now")
    said = agtrace_here(typed)
    assert said.code == 2 and f"Did you mean `agtrace {meant}`?" in said.err
    for command in meant.replace("`", "").replace("agtrace ", "").split(" or "):
        assert command.startswith("--") or command.split()[0] in group.agtrace.commands


@pytest.mark.parametrize(("typed", "found"), [("100k", 1), ("0.1M", 1), ("101000", 0), ("1G", 0), ("100 K", 1)])
def test_tokens_are_typed_as_lists_print_them(own_home: Path, typed: str, found: int) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    log.says("They pass.")
    index_here(own_home)
    listed = agtrace_here("sessions", "--json", "--min-tokens", typed).json()
    assert len(listed["data"]["sessions"]) == found


@pytest.mark.parametrize("typed", ["50X", "M", "-1", "1e3", "1.M"])
def test_what_is_no_number_of_tokens_is_refused(typed: str) -> None:
    said = agtrace_here("sessions", "--min-tokens", typed)
    assert said.code == 2 and "50k or 1.5M" in said.err


# -- completion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_accepted_by_it(shell: str, tmp_path: Path) -> None:
    said = agtrace_here("completion", shell)
    assert said.code == 0 and "_AGTRACE_COMPLETE" in said.out
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(said.out)
        subprocess.run([shell, "-n", script], check=True, timeout=300, capture_output=True)


def completed(*words: str, run: Callable[..., Said] = agtrace_here) -> list[str]:
    """What bash is offered for the last word."""
    place = {"COMP_CWORD": str(len(words)), "COMP_WORDS": " ".join(["agtrace", *words])}
    said = run(_AGTRACE_COMPLETE="bash_complete", **place)
    assert (said.code, said.err) == (0, "")
    return [line.partition(",")[2] for line in said.out.splitlines() if line]


def test_commands_and_ids_of_sessions_are_completed(own_home: Path) -> None:
    one, other = Claude(own_home, 1), Claude(own_home, 2)
    for log in (one, other):
        log.asked("Run the tests.")
    index_here(own_home)
    assert completed("sess", run=agtrace) == ["sessions"]
    assert completed("show", "00000001") == [one.uid]
    assert set(completed("watch", "")) == {one.uid, other.uid}
    assert completed("analyze", "nothing") == []


def test_without_an_index_nothing_is_completed_and_nothing_said(database: Path) -> None:
    assert completed("show", "0") == []
    database.write_bytes(b"no index")
    assert completed("show", "0") == []


# -- terminals and pipes ---------------------------------------------------------------------------


@needs_terminals
def test_mcp_says_to_a_person_what_it_waits_for() -> None:
    with in_terminal("mcp", columns=100) as terminal:
        terminal.until("waiting for an MCP client on stdin")
        terminal.press("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.plain


@pytest.mark.thorough
def test_mcp_says_nothing_to_a_client() -> None:
    done = subprocess.run([AGTRACE, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert "waiting" not in done.stderr + done.stdout


@pytest.mark.thorough
@needs_terminals
def test_report_shows_at_a_terminal_how_far_it_is(tmp_path: Path) -> None:
    corpus.make(tmp_path / "logs", 6)
    index(load().database, [str(tmp_path / "logs")])
    with in_terminal("report", columns=100) as terminal:
        terminal.until("examining")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.plain
    piped = agtrace("report")
    assert "examining" not in piped.err


def test_a_width_that_is_set_holds_for_pipes_too(own_home: Path) -> None:
    log = Claude(own_home)
    log.asked("When is the tide " + "very " * 14 + "high?")
    index_here(own_home)
    assert max(map(len, agtrace("sessions", COLUMNS="70").out.splitlines())) <= 70
