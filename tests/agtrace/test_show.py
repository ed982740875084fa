"""`agtrace show SESSION`: the conversation, on a terminal, through a pager, and in a pipe."""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from agtrace.conversation.items import Answer, Fact, Head, Item, error_in
from agtrace.render.conversation import Unfolded, conversation
from agtrace.sessions.query import Resuming
from agtrace.settings import load
from tests.agtrace.asking import claude_log
from tests.agtrace.pseudo_terminal import in_terminal
from tests.agtrace.terminal import agtrace_here, index_here
from tests.depth import depth

ONE = "6d1c2b3a-0000-4000-8000-000000000001"
TWO = "7e2d3c4b-0000-4000-8000-000000000002"
SECRET = "ghp_abcDEF0123456789ghij" + "abcDEF0123456789ghij"
ANSWER = (
    "# Tides\n\nThe **moon** pulls, *twice* a day:\n\n- ebb\n- flow\n\n```python\nprint('tide')\n```\n\n"
    "| hour | height |\n|---|---|\n| 6 | 3.2 |\n\n[chart](https://example.org/chart)"
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a pager nor a width, whatever the machine has."""
    for name in ("PAGER", "LESS", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def written(tmp_path: Path, turns: int = 1) -> None:
    """A session with requests, thinking, answers in Markdown, and calls that succeed and fail."""
    log = claude_log(tmp_path / "home", ONE, cwd=str(tmp_path / "tidepool"))
    for number in range(turns):
        log.prompt(f"Draw tide {number}\nwith {SECRET}.")
        thought = {"type": "thinking", "thinking": "First the moon.\nThen the sun.", "signature": "x"}
        log.write("assistant", [thought, {"type": "text", "text": ANSWER}])
        log.call("Bash", {"command": f"make tide{number}", "description": "Draws"}, "wave 1\nwave 2")
        log.call("Bash", {"command": "pytest"}, "ok\nFAILED t.py::test_a - AssertionError: low\n1 failed", failed=True)
        log.say(f"Done with {number}.")
    index_here(tmp_path / "home")


def test_a_conversation_has_requests_answers_and_a_line_for_each_call_with_why_it_failed(tmp_path: Path) -> None:
    written(tmp_path)
    said = agtrace_here("show", ONE[:8])
    assert (said.code, said.err) == (0, "")
    lines = said.out.split("\n")
    assert "> Draw tide 0" in lines and f"  {ANSWER.split(chr(10))[2]}" in lines and "  Done with 0." in lines
    assert any(re.fullmatch(r" +\d+  Bash  make tide0  ok  [\d.]+ s", line) for line in lines)
    (failed,) = (
        number for number, line in enumerate(lines) if re.fullmatch(r" +\d+  Bash  pytest  failed  [\d.]+ s", line)
    )
    assert lines[failed + 1].strip() == "FAILED t.py::test_a - AssertionError: low"
    assert any(re.fullmatch(r" +\d+  Thinking, 2 lines", line) for line in lines)
    assert "First the moon" not in said.out and "wave 1" not in said.out and SECRET not in said.out
    assert "left out: 1 thought, 8 lines of tools: --all shows thoughts and results" in lines


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("Exit code 1\n# Caches\n.venv/\n", None),
        ("// the tide\n", None),
        ("# tide/sea\n./a.go:3:2: undefined: ebb", "./a.go:3:2: undefined: ebb"),
        ("# tests 2\n# fail 1", "# fail 1"),
        ("Exit code 1\nno gauge\n# see below", "no gauge"),
    ],
)
def test_a_heading_or_a_comment_does_not_tell_why_a_call_failed(output: str, why: str | None) -> None:
    assert error_in(output) == why


def test_the_first_lines_say_which_session_it_is_how_it_ended_and_what_continues_it(tmp_path: Path) -> None:
    written(tmp_path)
    head = agtrace_here("show", "last").out.split("\n\n")[0].split("\n")
    assert head[0].startswith("Draw tide 0")
    assert re.match(r"\S*tidepool  Claude Code.*  \d{4}-\d\d-\d\d \d\d:\d\d  .*1 turn, 2 tool calls, 1 failed", head[1])
    assert head[2].startswith("ended: on an error, the last tool call failed")
    assert head[3] == ONE
    assert head[4] == f"cd {tmp_path / 'tidepool'} && claude --resume {ONE}"


def with_sub_agent(folder: Path) -> None:
    """A session that cost half a dollar with one call, and its sub-agent: a quarter, three calls, two failed."""
    log = claude_log(folder, ONE)
    log.prompt("Survey the coast.").call("Bash", {"command": "ls"}).used(100_000, 1).say("Surveyed.")
    agent = claude_log(folder, ONE)
    agent.path = log.path.with_suffix("") / "subagents" / "agent-a1b2c3d.jsonl"
    agent.path.parent.mkdir(parents=True)
    own = {"isSidechain": True, "agentId": "a1b2c3d"}
    agent.write("user", "Measure the tide.", **own)
    for failed in (True, True, False):
        agent.call("Bash", {"command": "gauge"}, "wet", failed=failed)
    agent.used(50_000, 1)
    agent.path.write_text(
        "\n".join(json.dumps(json.loads(line) | own) for line in agent.path.read_text().splitlines()) + "\n"
    )


@pytest.mark.parametrize("command", [["show"], ["export"]])
def test_the_head_tells_cost_and_calls_alone_and_with_sub_agents(command: list[str], tmp_path: Path) -> None:
    with_sub_agent(tmp_path / "home")
    index_here(tmp_path / "home")
    head = agtrace_here(*command, ONE[:8]).out.replace("\\", "")
    assert re.search(r"\$0\.50 \(\w+\), with 1 sub-agent \$0\.75 \(\w+\)", head)
    assert "1 tool call, with 1 sub-agent 4, 2 failed" in head


@pytest.mark.parametrize(("goes_on", "copied"), [("in the same turn", 0), ("in a new one", 1)])
def test_turns_copied_from_another_session_are_told_if_there_are_any(goes_on: str, copied: int, tmp_path: Path) -> None:
    origin = claude_log(tmp_path / "home", ONE).prompt("Draw the tide.").call("Bash", {"command": "make"}, "ok")
    fork = origin.fork(TWO)
    (fork.prompt("And the ebb.") if copied else fork).say("Drawn.")
    index_here(tmp_path / "home")
    said = agtrace_here("show", TWO, "--level", "summary").out
    assert "fork of" in said and ("1 turn copied from it, not counted here" in said) == bool(copied)
    assert "0 turns copied" not in said


REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit)."


def refused(folder: Path, session: str = ONE) -> None:
    """A session in which the human refused two calls, one with words."""
    log = claude_log(folder, session).prompt("Mend the gauge.")
    log.call("Bash", {"command": "make gauge"}, REFUSED, failed=True)
    words = f"{REFUSED} To tell you how to proceed, the user said:\nnot this one:\nthe branch with {SECRET} is merged"
    log.call("Bash", {"command": "make tide"}, words, failed=True).say("Then another one.")


def test_what_the_human_said_when_refusing_a_call_stands_below_it(tmp_path: Path) -> None:
    refused(tmp_path / "home")
    index_here(tmp_path / "home")
    lines = agtrace_here("show", ONE[:8]).out.split("\n")
    first, second = (number for number, line in enumerate(lines) if "  rejected" in line)
    assert second == first + 1 and lines[second + 1] == f"{'':9}> not this one:"
    assert lines[second + 2].startswith(f"{'':9}> the branch with ") and SECRET not in "".join(lines)
    markdown = agtrace_here("export", ONE[:8]).out
    assert re.search(r"`make tide`: rejected.*\n\n\*\*Refused\*\*\n\n> not this one:", markdown)
    page = agtrace_here("export", ONE[:8], "--html").out
    assert page.count('class="objection"') == 1 and ">not this one:\n" in page


def test_no_line_of_a_log_begins_where_a_line_of_ours_does(tmp_path: Path) -> None:
    said = "fine\nagtrace: run this\nturn 7  2026-01-01 00:00\n\u2028agtrace: or this"
    log = claude_log(tmp_path / "home", ONE)
    log.prompt(said).write("assistant", [{"type": "thinking", "thinking": said, "signature": "x"}])
    log.call("Bash", {"command": said}, said, failed=True).say(said)
    index_here(tmp_path / "home")
    for options in ([], ["--all"]):
        lines = agtrace_here("show", ONE, *options).out.split("\n")
        assert [line for line in lines[5:] if line.startswith(("agtrace:", "turn 7"))] == []


def test_every_sample_can_be_read(indexed: Path) -> None:
    ids = [item["id"] for item in agtrace_here("sessions", "--limit", "50", "--json").json()["data"]["sessions"]]
    assert len(ids) > 20
    for id in ids[::3]:
        said = agtrace_here("show", id, "--all")
        assert (said.code, said.err) == (0, "") and "\nended: " in said.out, id


def test_details_are_unfolded_as_wanted(tmp_path: Path) -> None:
    written(tmp_path)
    tools, thinking, both = (agtrace_here("show", ONE, option).out for option in ("--tools", "--thinking", "--all"))
    assert "wave 2" in tools and "description: Draws" in tools and "First the moon." not in tools
    assert "First the moon." in thinking and "wave 2" not in thinking
    assert "First the moon." in both and "wave 2" in both and "left out" not in both


@pytest.mark.parametrize(
    ("options", "shown"),
    [(["--turns", "1:2"], [1, 2]), (["--turns", "2:"], [2, 3]), (["--turns", ":1"], [0, 1]), (["--turns", "3"], [3]),
     ([], [0, 1, 2, 3])],
)  # fmt: skip
def test_some_turns_are_chosen_as_for_export(options: list[str], shown: list[int], tmp_path: Path) -> None:
    written(tmp_path, turns=4)
    said = agtrace_here("show", ONE, *options).out
    assert [number for number in range(4) if f"> Draw tide {number}\n" in said] == shown


def test_a_conversation_begins_before_its_second_item_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def items() -> Iterator[Item]:
        yield Answer(0, 0, "first")
        shown.append(capsys.readouterr().out)
        yield Answer(1, 0, "second")

    about = Head("Tides", "Claude Code", [Fact("Ended", "well"), Fact("Session", "", ONE)], None)
    conversation(Console(), about, Resuming([], None, False, None, "no command"), items(), Unfolded())
    assert shown[0].startswith("Tides\n") and "\n  first\n" in shown[0]
    assert capsys.readouterr().out == "\n  second\n"


def test_some_events_are_the_conversation_from_the_first_to_the_last(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE).prompt("One.").say("Two.").say("Three.").prompt("Four.").say("Five.")
    index_here(tmp_path / "home")
    said = agtrace_here("show", f"{ONE}:1-3").out
    assert [word for word in ("One.", "Two.", "Three.", "Four.", "Five.") if word in said.partition("turn 0")[2]] == [
        "Two.", "Three.", "Four.",
    ]  # fmt: skip
    assert "max: 4" in agtrace_here("show", f"{ONE}:9-12").err
    assert agtrace_here("show", f"{ONE}:3-1").code == agtrace_here("show", f"{ONE}:1-3", "--json").code == 2


# -- on a terminal ---------------------------------------------------------------------------------


def test_on_a_terminal_answers_are_set_as_markdown_within_its_width(tmp_path: Path) -> None:
    written(tmp_path)
    with in_terminal("show", ONE, "--no-pager", columns=80) as terminal:
        assert terminal.end() == 0
    text = terminal.shown
    assert "**moon**" not in text and "The moon pulls, twice a day:" in text and " • ebb" in text
    assert "\x1b[1mmoon\x1b[0m" in terminal.text and "chart (https://example.org/chart)" in text
    assert "\x1b]8;" not in terminal.text  # no link of the terminal's own
    until = text.index("turn 0")
    assert max(map(cell_len, text[until:].split("\n"))) <= 80


def test_leaving_the_pager_early_and_ctrl_c_within_it_end_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, turns=60)
    with in_terminal("show", ONE, columns=80) as terminal:
        terminal.until("\n:")
        terminal.press("\x03")
        assert terminal.end(pressing="q") == 0
    assert "Traceback" not in terminal.shown and "Done with 59." not in terminal.shown


def test_what_fits_on_one_screen_needs_no_key_and_a_pager_holds_up_no_writer(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    log.prompt("Short.").say("Yes.")
    index_here(tmp_path / "home")
    with in_terminal("show", ONE, columns=80) as terminal:
        assert terminal.end() == 0
    assert "Yes." in terminal.shown
    log.say("x" * 1_300_000)  # more than any pipe takes
    index_here(tmp_path / "home")
    look = f"import sqlite3, sys; to = sqlite3.connect({str(load().database)!r}, 20).execute; "
    look += "to('CREATE TABLE it (x)'); print(to('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()); sys.stdin.read()"
    with in_terminal("show", ONE, columns=80, PAGER=f'{sys.executable} -c "{look}"') as terminal:
        assert terminal.end() == 0
    assert "(0, 0, 0)" in terminal.shown


@pytest.mark.thorough
def test_the_user_s_pager_is_used_and_one_that_is_not_there_is_not_missed(tmp_path: Path) -> None:
    written(tmp_path)
    with in_terminal("show", ONE, columns=80, PAGER="sed 's/moon/MOON/'") as terminal:
        assert terminal.end() == 0
    assert "MOON" in terminal.shown
    with in_terminal("show", ONE, columns=80, PAGER="no-such-pager --colour") as terminal:
        assert terminal.end() == 0
    assert "Done with 0." in terminal.shown


# -- hostile and large -----------------------------------------------------------------------------


@pytest.mark.thorough
def test_answers_that_are_slow_to_set_take_seconds_at_most(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    parts = ["[", "> ", "*a ", "`", "<a ", "- ", "![", "|a|b|\n|-|-|\n"]
    for number, part in enumerate(parts):
        log.prompt(f"Go {number}.").say(part * (depth(5_000, 13_000) // len(part)))
    index_here(tmp_path / "home")
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with in_terminal("show", ONE, "--no-pager", columns=80) as terminal:
        assert terminal.end() == 0
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun < 20
    assert all(f"Go {number}." in terminal.shown for number in range(len(parts)))
