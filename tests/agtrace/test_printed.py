"""Output for a person: groups, sections, failures and their aftermath, and the next command to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from agtrace.render.lists import offers
from agtrace.text.next_call import call
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here, index_here

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"
LARGE, SURGE = "d41f7a52", "e97a4b06"
NARROW = [40, 80]


def offered(out: str) -> list[list[str]]:
    """The commands that are offered, as a shell reads them; what they do stands behind two spaces."""
    lines = [line for line in out.splitlines() if line.startswith("agtrace ")]
    return [shlex.split(line.rpartition("  ")[0]) for line in lines]


def answer_of(*arguments: str) -> Any:
    """What an agent would get."""
    return agtrace_here(*arguments, "--json").json()


# -- search ------------------------------------------------------------------------------------------


def test_a_search_by_session_has_a_line_for_each_and_its_newest_match_below(indexed: Path) -> None:
    data = answer_of("search", "surge", "--by-session")["data"]["matches"]
    lines = agtrace_here("search", "surge", "--by-session").out.splitlines()
    assert len(data) == 3
    for session in data:
        heading = next(n for n, line in enumerate(lines) if line.startswith(f"{session['session_id']}  "))
        assert "  claude  " in lines[heading] and f"  {session['hits']} matches  " in lines[heading]
        assert session["title"][:40] in lines[heading]
        place = f"  {session['session_id']}:{session['event_index']}  "
        assert lines[heading + 1].startswith(place)


def test_a_query_needs_no_quotes(indexed: Path) -> None:
    quoted = agtrace_here("search", "database is locked", "--newest").out
    assert quoted.startswith("Found") and agtrace_here("search", "database", "is", "locked", "--newest").out == quoted
    assert "lanternfish" in agtrace_here("search", "", "--kind", "human").out


def test_a_search_whose_words_stand_nowhere_has_found_nothing(indexed: Path) -> None:
    found = agtrace_here("search", "databasex123")
    assert found.code == 1 and "databasex123" in found.out
    assert agtrace_here("search", "databasex123 locked").code == 0


def test_a_filter_that_hides_everything_is_named_as_the_option_that_it_is(indexed: Path) -> None:
    said = agtrace_here("search", "atabase is locked", "--type", "User", "--failed").out
    (command,) = offered(said)
    assert agtrace_here(*command[1:]).out.startswith(("Found", "Best matches"))
    assert "event_type" not in said
    sessions = agtrace_here("sessions", "--query", "surge", "--since", "1d").out
    assert "shows 2 sessions that --since hides" in sessions
    assert offered(sessions) == [["agtrace", "sessions", "--query", "surge"], ["agtrace", "search", "surge"]]
    assert agtrace_here("sessions", "--query", "surge").out.startswith("Found 1 session and 1 sub-agent")


def test_every_call_of_a_hint_becomes_the_command_that_asks_the_same() -> None:
    event, quoted = {"session_id": "ab12", "event_index": 3}, "f(a='b') shows"
    apostrophe = "it's"
    calls = [
        (call("get_event_details", **event, start_line=4, end_line=9), "show ab12:3 --lines 4:9"),
        (call("get_event_details", **event, mode="standard"), "show ab12:3 --mode standard"),
        (call("get_session_details", session_id="ab12", sections=["failures"]), "show ab12 --sections failures"),
        (call("get_session_details", session_id="ab12", detail_level="turns"), "show ab12 --level turns"),
        (
            call("search_event_previews", order="newest", query=apostrophe, failed=False),
            f"search {shlex.quote(apostrophe)} --newest --not-failed",
        ),
        (call("search_event_previews", query="a  b", regex=True, order="oldest"), "search 'a  b' --regex --oldest"),
        (call("search_event_previews", query="--x", kind="error"), "search --kind error -- --x"),
        (
            call("search_event_previews", order="newest", query=quoted),
            f"search {shlex.quote(quoted)} --newest",
        ),
        (call("list_sessions", has_failures=False, project="ab"), "sessions --no-failures --project ab"),
        (call("compare_sessions", id1="ab12", id2="cd34"), "compare ab12 cd34"),
        (call("analyze_session", session_id="ab12", include_loops=True), "analyze ab12"),
        (call("read_artifact", ref="ax://session/ab12", start_line=9), "show ax://session/ab12 --lines 9:"),
    ]
    for written, typed in calls:
        said = written.saying("shows it", "(up to 7 KB)", after=". Left out: 3 of them.")
        assert list(offers([said])) == [(f"agtrace {typed}", "shows it")]
    both = calls[0][0].saying("is one", "(3-4 KB)", after="; "), calls[2][0].saying("is another", "(up to 2 KB)")
    assert [says for _, says in offers(both)] == ["is one", "is another"]
    hides = calls[9][0].saying("finds something: {} hides it", names=["project"])
    assert [says for _, says in offers([hides])] == ["finds something: --project hides it"]
    assert list(offers([call("get_project_info").saying("lists them")])) == []


# -- a session and its events --------------------------------------------------------------------------


def test_a_section_is_printed_to_its_end_however_small_an_answer_may_be(indexed: Path) -> None:
    said = agtrace_here("show", LARGE, "--sections", "failures,tools,files", AGTRACE_MAX_RESPONSE_BYTES="2048").out
    failures, tools, files = (part.splitlines() for part in said.split("\n\n")[1:])
    assert (failures[0], tools[0], files[0]) == ("failures: 45", "tools: 6", "files: 19")
    assert (len(failures), len(tools), len(files)) == (2 + 45, 2 + 6, 2 + 19)
    assert failures[2].split()[:4] == ["57", "1", "Bash", "failed"]
    assert tools[2].split() == ["233", "45", "Bash"]
    assert files[2].split() == ["11", "10", "tidepool/ingest/schedule.py"]


def test_failures_that_are_none_are_counted_by_what_became_of_them(indexed: Path) -> None:
    said = agtrace_here("show", SURGE, "--sections", "failures").out
    assert " 2 of 14 tool calls failed " in said.splitlines()[0]
    assert "\nfailures: 2 failed, 1 rejected\n" in said


def test_the_turns_with_failures_are_named_above_all_turns(indexed: Path) -> None:
    failing = answer_of("show", LARGE)["data"]["failing_turns"]
    first, *_ = failing["turns"]
    line = next(
        line
        for line in agtrace_here("show", LARGE, "--level", "summary").out.splitlines()
        if line.startswith("tools failed in turns")
    )
    assert line.startswith(f"tools failed in turns {first}, ")
    assert line.endswith(f" and {failing['total'] - len(failing['turns'])} more")
    assert "tools failed in turn 0\n" in agtrace_here("show", SURGE, "--level", "summary").out


def test_a_failed_call_says_what_became_of_it(indexed: Path) -> None:
    assert f"the same call succeeded at {LARGE}:69 after changes at 64\n" in agtrace_here("show", f"{LARGE}:57").out
    later = answer_of("show", f"{LARGE}:110")["data"]["later"]
    places = ", ".join(map(str, later["changes"]))
    said = (
        f"succeeded at {LARGE}:{later['succeeded']} after {later['total_changes']} changes, the last ones at {places}\n"
    )
    assert f"the same call failed 1 more time, then {said}" in agtrace_here("show", f"{LARGE}:110").out


@pytest.fixture
def failing_run(tmp_path: Path) -> str:
    """A test run whose failures lie in the middle of 2,000 lines."""
    lines = [f"tests/test_tide.py::test_{n} PASSED" for n in range(2_000)]
    lines[1_000:1_003] = [f"FAILED tests/test_tide.py::test_ebb_{n} - assert 3 == 4" for n in range(3)]
    log = claude_log(tmp_path / "logs", ONE).prompt("run the tests")
    log.call("Bash", {"command": "pytest"}, "\n".join([*lines, "=== 3 failed, 1997 passed in 3.21s ==="]), failed=True)
    index_here(tmp_path / "logs")
    return "aaaaaaaa:2"


def test_an_output_is_introduced_by_its_failures(failing_run: str) -> None:
    head, _, body = agtrace_here("show", failing_run).out.partition("\n\n")
    assert "3 failed, 1997 passed in 3.21s, 3 failed tests, " in head
    assert all(f"tests/test_tide.py::test_ebb_{n}" in head for n in range(3))
    assert " 1001  " in head, "the number of the line"
    assert len(body.splitlines()) == 2_001, "and then it stands there whole"


def test_a_digest_ends_with_the_command_that_shows_what_it_leaves_out(failing_run: str) -> None:
    said = agtrace_here("show", failing_run, "--mode", "minimal").out
    assert all(f"FAILED tests/test_tide.py::test_ebb_{n}" in said for n in range(3))
    assert len(said.splitlines()) < 150
    command, *_ = offered(said)
    assert command[:4] == ["agtrace", "show", failing_run, "--lines"]
    shown = agtrace_here(*command[1:]).out
    assert "FAILED tests/test_tide.py::test_ebb_0" in shown and len(shown.splitlines()) < 60
    read = agtrace_here("show", "ax://event/aaaaaaaa/2", "--mode", "minimal").out
    assert offered(read)[0][:4] == ["agtrace", "show", "ax://event/aaaaaaaa/2", "--lines"]


# -- the width of the terminal -------------------------------------------------------------------------

WIDE_NAMES = "潮汐データ🌊" * 12


@pytest.fixture
def wide(tmp_path: Path) -> None:
    """An index of two sessions whose names and texts are wider than a terminal."""
    log = claude_log(tmp_path / "logs", ONE).prompt(WIDE_NAMES)
    log.call("Write", {"file_path": f"/home/mira/projects/tidepool/{WIDE_NAMES}.py"}, f"no {WIDE_NAMES}", failed=True)
    log.call(f"mcp__{WIDE_NAMES}", {"text": WIDE_NAMES * 3}, WIDE_NAMES, failed=True)
    claude_log(tmp_path / "logs", TWO).prompt(WIDE_NAMES).say("x" * 300)
    index_here(tmp_path / "logs")


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("columns", NARROW)
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    """But what is to be copied whole: places in logs, cursors and commands, which the terminal wraps."""
    sections = "session,stats,children,turns,tools,files,failures,models"
    for command in (
        ["sessions"],
        ["search", "潮汐", "--by-session"],
        ["search", "潮汐", "--newest"],
        ["show", "aaaaaaaa", "--level", "summary"],
        ["show", "aaaaaaaa", "--sections", sections],
    ):
        said = agtrace_here(*command, COLUMNS=str(columns))
        assert said.code == 0 and said.out
        wider = [line for line in said.out.splitlines() if cell_len(line) > columns]
        assert wider == [], command


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("columns", NARROW)
def test_a_narrow_table_has_room_for_what_tells_rows_apart(columns: int) -> None:
    said = agtrace_here("show", "aaaaaaaa", "--sections", "failures,files", COLUMNS=str(columns)).out
    assert "潮汐データ🌊" in said.partition("files: ")[0], "what it said"
    assert "潮汐データ🌊" in said.partition("files: ")[2], "the path"
    grouped = agtrace_here("search", "潮汐", "--by-session", COLUMNS=str(columns)).out
    assert re.search(r"^aaaaaaaa .*\d+ matches  潮汐", grouped, re.M)
