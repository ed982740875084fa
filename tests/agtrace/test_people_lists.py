"""Lists for people: what they show at which width, whole in a pipe, all pages at once."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.agtrace.asking import claude_log
from tests.agtrace.pseudo_terminal import in_terminal
from tests.agtrace.terminal import agtrace, agtrace_here, index_here

TITLE = "Make the tide table retry when the database is locked, and say which lock it was that was held so long"
IDS = [f"{number:08x}-0000-4000-8000-000000000001" for number in range(60)]


@pytest.fixture
def many(tmp_path: Path) -> None:
    """Sixty sessions of one project with the same long request."""
    for number, id in enumerate(IDS):
        log = claude_log(tmp_path / "home", id, cwd="/home/mira/projects/tidepool")
        log.clock += 60 * number
        log.prompt(TITLE)
        log.call("Bash", {"command": "make"}, "locked", failed=True).say("The lock was held.")
    index_here(tmp_path / "home")


@pytest.mark.thorough
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (40, {"began"}),
        (80, {"began", "agent", "project"}),
        (140, {"began", "last", "agent", "project", "lasted", "turns", "failed", "tokens", "cost"}),
        (200, {"started", "last", "agent", "project", "lasted", "turns", "failed", "tokens", "cost"}),
    ],
)
def test_sessions_show_as_much_as_the_terminal_has_room_for(columns: int, shown: set[str]) -> None:
    with in_terminal("sessions", columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.shown.rstrip().split("\n")
    head = lines[1].split()
    assert shown | {"session", "request"} <= set(head) and max(map(cell_len, lines[:-1])) <= columns
    row = lines[2]
    assert ("tidepool" in row, "claude" in row) == ("project" in shown, "agent" in shown)
    assert re.match(r"[0-9a-f]{8}", row) and "Make the tide" in row
    assert bool(re.match(rf"{IDS[0][8:]}", row[8:36])) == (columns >= 180)


@pytest.mark.thorough
def test_the_only_time_in_a_list_of_sessions_is_the_one_that_its_order_goes_by(tmp_path: Path) -> None:
    long, short = (claude_log(tmp_path / "home", id) for id in IDS[:2])
    long.clock, short.clock = (int(time.time()) - half_days * 43_200 for half_days in (181, 41))
    short.prompt("Begun last.")
    long.prompt("Begun first.").clock += 178 * 43_200
    long.say("Used last.")
    index_here(tmp_path / "home")
    for sort, column, ages in (
        ("newest", "began", ["20d", "3mo"]), ("oldest", "began", ["3mo", "20d"]), ("turns", "last", ["20d", "1d"]),
    ):  # fmt: skip
        with in_terminal("sessions", "--sort", sort, columns=80) as terminal:
            assert terminal.end() == 0
        head, *rows = terminal.shown.rstrip().split("\n")[1:]
        assert head.split()[1] == column and [row.split()[1] for row in rows] == ages


@pytest.mark.usefixtures("many")
def test_in_a_pipe_nothing_is_cut_or_padded_and_ids_are_whole() -> None:
    said = agtrace_here("sessions", COLUMNS="").out
    rows = [line for line in said.split("\n") if "tidepool" in line]
    assert len(rows) == 10 and all(line.endswith(TITLE[:100]) or TITLE in line for line in rows)
    assert all(line == line.rstrip() for line in said.split("\n")) and "…" not in said
    assert {row.split()[0] for row in rows} <= set(IDS)
    found = agtrace_here("search", "lock held", COLUMNS="").out
    assert "…" not in found and any(TITLE in line and line.split()[0] in IDS for line in found.split("\n"))
    assert "tidepool" in agtrace_here("projects", COLUMNS="").out


@pytest.mark.usefixtures("many")
def test_words_that_are_nowhere_lead_to_the_nearest_ones_that_are_there() -> None:
    assert agtrace("index", "--optimize").code == 0
    assert "agtrace search 'the locked'" in agtrace_here("search", "the lockde").out
    assert "agtrace search" not in agtrace_here("search", "xyzzy").out


@pytest.mark.usefixtures("many")
def test_all_as_json_is_a_line_for_each_with_its_whole_id() -> None:
    for key, command in (("id", ["sessions"]), ("session_id", ["search", "The lock was held", "--newest"])):
        lines = agtrace_here(*command, "--all", "--json").out.splitlines()
        assert sorted(json.loads(line)[key] for line in lines) == sorted(IDS)


@pytest.mark.thorough
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("options", "rows"), [(["-n", "3"], 3), (["-n", "55"], 55), (["--limit", "999"], 60), (["--all"], 60), ([], 10)]
)
def test_a_list_is_as_long_as_asked_for_however_many_pages_that_takes(options: list[str], rows: int) -> None:
    said = agtrace_here("sessions", *options).out
    assert len({id for id in IDS if f"\n{id[:8]}" in said}) == rows
    assert ("more: --limit N" in said) == (rows < 60)
    found = agtrace_here("search", "The lock was held", "--newest", *options).out
    assert len(re.findall(r"^[0-9a-f]{8}:\d+  ", found, re.M)) == rows


@pytest.mark.usefixtures("many")
def test_a_hit_says_of_which_session_it_is_and_what_kind_of_event() -> None:
    hit = agtrace_here("search", "The lock was held", "--newest", "-n", "1").out.split("\n")[1]
    assert re.match(r"[0-9a-f]{8}:\d+  .*  message  tidepool  Make the tide table", hit)
    line = agtrace_here("search", "The lock was held", "--by-session", "-n", "1").out.split("\n")[1]
    assert "  claude  tidepool  " in line and "  1 match  Make the tide table" in line


@pytest.mark.thorough
@pytest.mark.usefixtures("many")
def test_columns_of_a_report_are_not_far_apart_and_totals_are_money() -> None:
    for columns in (140, 60):
        with in_terminal("report", columns=columns) as terminal:
            assert terminal.end() == 0
        (row,) = (line.rstrip() for line in terminal.shown.split("\n") if line.startswith("  Bash "))
        assert " " * 16 not in row and cell_len(row) <= columns
    by_cost = agtrace_here("sessions", "--sort", "cost").out.split("\n")[0]
    assert "cost_usd" not in by_cost


def test_a_hit_that_a_fork_repeats_is_printed_once_with_both_places(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", IDS[1]).prompt("Find the zebra.").say("The zebra is here.").fork(IDS[2])
    index_here(tmp_path / "home")
    said = agtrace_here("search", "zebra is here", "--newest").out
    assert said.count("The zebra is here.") == 1
    assert all(f"{id[:8]}:1" in said for id in IDS[1:3]) and "also at " in said
