"""Sorted lists of sessions: each order equals the one computed from all events, and pages are disjoint and complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from agtrace_schema.requests import Sort

from agtrace.render.lists import _COLUMN_OF
from tests.agtrace.asking import Asker, claude_log, query
from tests.agtrace.terminal import agtrace_here

FIELDS = {"turns": "turn_count", "duration": "duration_seconds", "cost": "cost_usd"}
MEASURES = [sort for sort in get_args(Sort) if sort not in ("newest", "oldest", "user")]
STORED = [sort for sort in MEASURES if sort not in ("cost",)]


def uids(asker: Asker, items: list[dict[str, Any]]) -> list[str]:
    known = [uid for (uid,) in query(asker, "SELECT uid FROM session")]
    return [next((uid for uid in known if uid == item["id"]), None) or
            next(uid for uid in known if uid.startswith(item["id"])) for item in items]  # fmt: skip


def rows_of(asker: Asker) -> dict[int, tuple[str, int]]:
    found = query(asker, "SELECT id, uid, coalesce(started_at, 0) FROM session WHERE kind != 'warmup'")
    return {row: (uid, start) for row, uid, start in found}


@pytest.mark.thorough
@pytest.mark.parametrize("sort", STORED)
def test_the_order_is_that_of_the_measure_which_each_session_shows(each: Asker, sort: str) -> None:
    rows = rows_of(each)
    items = each.items("list_sessions", "sessions", limit=50, sort=sort)
    shown = dict(zip(uids(each, items), (item.get(FIELDS.get(sort, sort)) for item in items), strict=True))
    if sort == "failed_calls":
        shown = {uid: figure or 0 for uid, figure in shown.items()}  # of an agent whose logs have no results
    places = [(-1 if shown[uid] is None else shown[uid], start, row) for row, (uid, start) in rows.items()]
    assert list(shown) == [rows[row][0] for *_, row in sorted(places, reverse=True)]


def test_the_measures_are_those_of_what_was_done(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", "00000000-0000-4000-8000-000000000000").prompt("mend the gauge")
    for path, failed in (("a", False), ("a", True), ("b", False)):
        log.call("Edit", {"file_path": f"/srv/{path}.py", "new_string": "1"}, "x", failed=failed)
    for failed in (True, True, False, True):
        log.call("Bash", {"command": "make"}, "x", failed=failed)
    log.write("system", "Compacted", subtype="compact_boundary").prompt("and now?").used(10, 7)
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    figures = {"tool_calls": 7, "failed_calls": 4, "failure_run": 2, "edits": 2, "files": 2, "compactions": 1}
    (plain,) = asker.items("list_sessions", "sessions")
    assert not plain.keys() & {"output_tokens", "failure_run", "compactions", "edits", "files"}
    for sort, figure in {**figures, "turns": 2, "output_tokens": 7, "total_tokens": 17}.items():
        (item,) = asker.items("list_sessions", "sessions", sort=sort)
        assert item[FIELDS.get(sort, sort)] == figure, sort


@pytest.mark.parametrize("sort", MEASURES)
def test_the_summary_tells_what_all_rows_come_to(each: Asker, sort: str) -> None:
    items = each.items("list_sessions", "sessions", limit=50, sort=sort)
    field = FIELDS.get(sort, sort)
    known = [item[field] for item in items if field in item]
    said = each.ask("list_sessions", sort=sort, limit=1)["summary"].rpartition(", ")[2]
    if sort == "failure_run":
        assert said == f"longest failure_run {max(known)}"
    else:
        *least, number, name = said.split()
        bounds = sort == "cost" and any(item.get("cost_made") in ("partial", "unknown") for item in items)
        assert least == (["at", "least"] if bounds else [])
        assert name == field and float(number) == pytest.approx(sum(known))


def test_costs_are_those_that_the_list_shows(each: Asker) -> None:
    items = each.items("list_sessions", "sessions", limit=50, sort="cost")
    assert [item.get("cost_usd", -1) for item in items] == sorted((i.get("cost_usd", -1) for i in items), reverse=True)
    newest = {item["id"]: item for item in each.items("list_sessions", "sessions", limit=50, kind="all")}
    assert {item["id"]: item for item in items} == newest


def test_the_oldest_first_is_the_newest_first_backwards(each: Asker) -> None:
    newest = each.items("list_sessions", "sessions", limit=50)
    assert each.items("list_sessions", "sessions", limit=50, sort="oldest") == newest[::-1]
    assert each.items("list_sessions", "sessions", limit=50, sort="newest") == newest


@pytest.mark.parametrize("sort", get_args(Sort))
def test_small_pages_give_the_same_list(samples: Asker, sort: str) -> None:
    whole = samples.items("list_sessions", "sessions", limit=50, sort=sort)
    assert samples.items("list_sessions", "sessions", limit=3, sort=sort) == whole


@pytest.mark.parametrize("sort", MEASURES)
def test_filters_restrict_a_sorted_list_and_its_total(samples: Asker, sort: str) -> None:
    whole = samples.items("list_sessions", "sessions", limit=50, sort=sort)
    codex = samples.items("list_sessions", "sessions", limit=50, sort=sort, provider="codex")
    assert codex == [item for item in whole if item["provider"] == "codex"]


# -- while sessions grow ---------------------------------------------------------------------------


def test_a_forgotten_session_at_the_end_of_a_page_hides_none_of_the_next(tmp_path: Path) -> None:
    for number in range(6):
        log = claude_log(tmp_path / "logs", f"{number:08x}-0000-4000-8000-000000000000")
        log.clock += 1_000 * number
        log.prompt("mend it").call("Bash", {"command": "make"}, "ok")
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    walk = asker.pages("list_sessions", limit=2, sort="tool_calls")
    first = next(walk)
    last = first["data"]["sessions"][-1]["id"]
    agtrace = {"AGTRACE_DATA_DIR": str(asker.settings.data_dir)}
    assert agtrace_here("forget", last, "--yes", **agtrace).code == 0
    later = [item["id"] for page in walk for item in page["data"]["sessions"]]
    assert {f"{number:08x}" for number in range(6)} <= {*later, *(i["id"] for i in first["data"]["sessions"])}


# -- filters beside --------------------------------------------------------------------------------


def test_access_tells_those_that_wrote_a_file_from_those_that_read_it(tmp_path: Path) -> None:
    for number, tools in enumerate((["Read"], ["Edit"], ["Read", "Edit"], [])):
        log = claude_log(tmp_path / "logs", f"{number:08x}-0000-4000-8000-000000000000").prompt("go")
        for tool in tools:
            log.call(tool, {"file_path": "/srv/tide.py", "new_string": "x"}, "ok")
        log.call("Read", {"file_path": "/srv/other.py"}, "ok").say("done")
    asker = Asker(tmp_path / "index", tmp_path / "logs")

    def found(**filters: str) -> set[int]:
        return {int(item["id"], 16) for item in asker.items("list_sessions", "sessions", **filters)}

    assert found(path="tide") == {0, 1, 2}
    assert found(path="tide", access="read") == {0, 2}
    assert found(path="tide", access="write") == {1, 2}
    assert found(access="write") == {1, 2}
    assert found(access="read") == {0, 1, 2, 3}
    assert found(path="other", access="write") == set()


def test_a_list_by_path_says_how_often_each_read_and_wrote_it(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", "00000000-0000-4000-8000-000000000000").prompt("go")
    for tool, path in (("Read", "tide.py"), ("Edit", "tide.py"), ("Edit", "tide.py"), ("Edit", "other.py")):
        log.call(tool, {"file_path": f"/srv/{path}", "new_string": "x"}, "ok")
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    (item,) = asker.items("list_sessions", "sessions", path="tide.py")
    assert (item["path_reads"], item["path_writes"]) == (1, 2)
    (item,) = asker.items("list_sessions", "sessions", path="tide.py", fields="title")
    assert item.keys() == {"id", "snippet", "path_reads", "path_writes"}
    (item,) = asker.items("list_sessions", "sessions")
    assert "path_reads" not in item and "path_writes" not in item


def test_kind_parts_the_sessions(each: Asker) -> None:
    """A plain list leaves out the sub-agents that are below another session."""
    everything = each.items("list_sessions", "sessions", limit=50, kind="all")
    plain = each.items("list_sessions", "sessions", limit=50)
    assert plain == [item for item in everything if item.get("kind") != "subagent" or "parent_id" not in item]
    agents = each.items("list_sessions", "sessions", limit=50, kind="subagent")
    assert agents == [item for item in everything if item.get("kind") == "subagent"]
    main = each.items("list_sessions", "sessions", limit=50, kind="main")
    assert main == [item for item in everything if item.get("kind") != "subagent"]


def test_a_list_that_kind_or_access_empties_says_so(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", "00000000-0000-4000-8000-000000000000").prompt("go").say("done")
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    assert "that kind hides" in asker.ask("list_sessions", kind="subagent")["hint"]
    assert "that access hides" in asker.ask("list_sessions", access="write")["hint"]


def test_an_order_that_is_not_there_is_answered_with_the_nearest(samples: Asker) -> None:
    problem = samples.error("list_sessions", sort="failed_call")
    assert problem["code"] == "invalid_parameter" and "did you mean failed_calls?" in problem["message"]


# -- in the terminal -------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 160])
@pytest.mark.parametrize("sort", MEASURES)
def test_the_table_has_the_measure_on_any_terminal(indexed: Path, sort: str, columns: int) -> None:
    shown = agtrace_here("sessions", "--sort", sort, "--limit", "3", COLUMNS=str(columns)).out.splitlines()
    (header,) = [line for line in shown if line.startswith("session ")]
    assert _COLUMN_OF[sort] in header.split()
    assert max(map(len, shown[:5])) <= columns
