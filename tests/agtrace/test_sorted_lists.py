"""Sorted lists of sessions: each order equals the one computed from all events, and pages are disjoint and complete."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from agtrace_schema.codes import OUTCOME_CODE, TYPE_CODE
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.requests import Sort

from agtrace.render.lists import _COLUMN_OF
from tests.agtrace.asking import Asker, ClaudeLog, claude_log, query
from tests.agtrace.terminal import agtrace_here

FIELDS = {"turns": "turn_count", "duration": "duration_seconds", "cost": "cost_usd"}
MEASURES = [sort for sort in get_args(Sort) if sort not in ("newest", "oldest", "user")]
STORED = [sort for sort in MEASURES if sort not in ("cost",)]
WROTE = {None, *(code for outcome, code in OUTCOME_CODE.items() if outcome not in
    (Outcome.FAILED, Outcome.REJECTED, Outcome.INTERRUPTED))}  # fmt: skip


class Row(NamedTuple):
    """An event that counts."""

    session: int
    event_index: int
    type: int
    ts: int
    outcome: int | None


def counted_events(asker: Asker) -> dict[int, list[Row]]:
    found = query(
        asker,
        "SELECT session_id, event_index, type, ts, outcome FROM event "
        "WHERE superseded_by IS NULL AND copy_of IS NULL ORDER BY 1, 2",
    )
    return {key: list(rows) for key, rows in groupby((Row(*row) for row in found), lambda row: row.session)}


def longest_run(outcomes: Iterator[bool]) -> int:
    return max((len(list(run)) for failed, run in groupby(outcomes) if failed), default=0)


def by_hand(asker: Asker, measure: str) -> dict[int, int | None]:
    """A measure of every session, computed from its events one by one."""
    events = counted_events(asker)
    calls = {
        session: [row for row in rows if row.type == TYPE_CODE[EventType.TOOL_CALL]] for session, rows in events.items()
    }
    failed = OUTCOME_CODE[Outcome.FAILED]
    sessions = [row for (row,) in query(asker, "SELECT id FROM session WHERE kind != 'warmup'")]
    if measure in ("output_tokens", "total_tokens"):
        return tokens(asker, events, measure, sessions)
    if measure == "files":
        return files(asker, events, sessions)
    if measure in ("compactions", "edits"):
        return beside(asker, events, measure, sessions)
    found: dict[int, int | None] = {}
    for session in sessions:
        own = calls.get(session, [])
        times = [row.ts for row in events.get(session, []) if row.ts]
        found[session] = {
            "failed_calls": sum(row.outcome == failed for row in own),
            "failure_run": longest_run(row.outcome == failed for row in own),
            "tool_calls": len(own),
            "turns": len(query(asker, "SELECT 1 FROM turn WHERE session_id = ? AND NOT copied", session)),
            "duration": (max(times) - min(times)) // 1000 if times else None,
        }[measure]
    return found


def tokens(asker: Asker, events: dict[int, list[Row]], measure: str, sessions: list[int]) -> dict[int, int | None]:
    kinds = "output_tokens" if measure == "output_tokens" else (
        "input_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, cache_read_tokens, output_tokens"
    )  # fmt: skip
    there = {(row.session, row.event_index) for row in chain.from_iterable(events.values())}
    found: dict[int, int | None] = dict.fromkeys(sessions)
    for session, event, *figures in query(asker, f"SELECT session_id, event_index, {kinds} FROM token_usage"):
        known = [figure for figure in figures if figure is not None]
        if (session, event) in there and session in found and known:
            found[session] = (found[session] or 0) + sum(known)
    return found


def beside(asker: Asker, events: dict[int, list[Row]], measure: str, sessions: list[int]) -> dict[int, int | None]:
    there = {(row.session, row.event_index): row for row in chain.from_iterable(events.values())}
    sql = {
        "compactions": "SELECT session_id, event_index FROM landmark WHERE kind = 'compaction'",
        "edits": "SELECT DISTINCT session_id, event_index FROM touched WHERE access = 'write'",
    }[measure]
    counts = Counter(
        session
        for session, event in query(asker, sql)
        if (row := there.get((session, event))) is not None and row.outcome in WROTE
    )
    return {session: counts[session] for session in sessions}


def files(asker: Asker, events: dict[int, list[Row]], sessions: list[int]) -> dict[int, int | None]:
    there = {(row.session, row.event_index): row for row in chain.from_iterable(events.values())}
    written: dict[int, set[int]] = {session: set() for session in sessions}
    for session, event, path in query(
        asker, "SELECT session_id, event_index, path_id FROM touched WHERE access = 'write'"
    ):
        if (row := there.get((session, event))) is not None and row.outcome in WROTE and session in written:
            written[session].add(path)
    return {session: len(paths) for session, paths in written.items()}


def uids(asker: Asker, items: list[dict[str, Any]]) -> list[str]:
    known = [uid for (uid,) in query(asker, "SELECT uid FROM session")]
    return [next((uid for uid in known if uid == item["id"]), None) or
            next(uid for uid in known if uid.startswith(item["id"])) for item in items]  # fmt: skip


def rows_of(asker: Asker) -> dict[int, tuple[str, int]]:
    found = query(asker, "SELECT id, uid, coalesce(started_at, 0) FROM session WHERE kind != 'warmup'")
    return {row: (uid, start) for row, uid, start in found}


@pytest.mark.parametrize("sort", STORED)
def test_the_order_is_that_of_the_measure_computed_from_all_events(each: Asker, sort: str) -> None:
    """The largest first, of equal ones the newest; what has no such figure comes last."""
    rows, measured = rows_of(each), by_hand(each, sort)
    expected = sorted(rows, key=lambda row: (-1 if measured[row] is None else measured[row], rows[row][1], row))
    pages = list(each.pages("list_sessions", limit=50, sort=sort))
    items = [item for page in pages for item in page["data"]["sessions"]]
    assert uids(each, items) == [rows[row][0] for row in reversed(expected)]
    shown = [item.get(FIELDS.get(sort, sort)) for item in items]
    if sort == "failed_calls":
        shown = [figure or 0 for figure in shown]  # of an agent whose logs have no results it isn't shown
    assert shown == [measured[row] for row in reversed(expected)]


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
    newest = {item["id"]: item for item in each.items("list_sessions", "sessions", limit=50)}
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


def worked(log: ClaudeLog, turns: int) -> ClaudeLog:
    for number in range(turns):
        log.prompt(f"mend gauge {number}")
        for attempt in range(number % 4):
            log.call("Bash", {"command": "make"}, "no", failed=attempt != 2)
        log.call("Edit", {"file_path": "/srv/gauge.py", "new_string": "1"}, "ok", failed=number % 3 == 2)
        figures = {"input_tokens": 10, "output_tokens": 7 * number, "cache_read_input_tokens": 3}
        said: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "done"}], "usage": figures}
        said |= {"model": "claude-opus-4-5", "id": f"msg_{log.session_id[:8]}_{log.lines}_u", "type": "message"}
        log.write("assistant", said["content"], message=said)
        log.raw(
            {
                "type": "system",
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "level": "info",
                "sessionId": log.session_id,
                "uuid": f"{log.session_id[:8]}-c{number}-{log.lines}",
                "cwd": log.cwd,
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(log.clock)),
            }
        )
    return log


class Begun(NamedTuple):
    """A walk over a sorted list that was begun before the sessions grew, and what the whole list was then."""

    asker: Asker
    whole: list[dict[str, Any]]
    first: dict[str, Any]
    rest: Iterator[dict[str, Any]]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Begun]:
    """A walk in each order, over twelve sessions of which six grow, and one more comes."""
    folder, walks = tmp_path_factory.mktemp("begun"), {}
    logs = [claude_log(folder / "logs", f"{number:08x}-0000-4000-8000-000000000000") for number in range(12)]
    for number, log in enumerate(logs):
        log.clock += 1_000 * number
        worked(log, 1 + number % 5)
    asker = Asker(folder / "index", folder / "logs")
    for sort in get_args(Sort):
        whole = asker.items("list_sessions", "sessions", limit=50, sort=sort)
        rest = asker.pages("list_sessions", limit=4, sort=sort)
        walks[sort] = Begun(asker, whole, next(rest), rest)
    for log in logs[::2]:
        worked(log, 9)
    worked(claude_log(folder / "logs", "eeeeeeee-0000-4000-8000-000000000000"), 30)
    asker.index()
    return walks


@pytest.mark.parametrize("sort", get_args(Sort))
def test_pages_of_a_sorted_list_are_what_there_was_when_the_walk_began(begun: dict[str, Begun], sort: str) -> None:
    """Sessions that go to the top of the order by what they do next stay where they were."""
    asker, whole, first, rest = begun[sort]
    ids = [item["id"] for page in (first, *rest) for item in page["data"]["sessions"]]
    assert ids == [item["id"] for item in whole]
    assert len(asker.items("list_sessions", "sessions", limit=50, sort=sort)) == len(whole) + 1


def test_a_forgotten_session_at_the_end_of_a_page_hides_none_of_the_next(tmp_path: Path) -> None:
    for number in range(6):
        log = claude_log(tmp_path / "logs", f"{number:08x}-0000-4000-8000-000000000000")
        log.clock += 1_000 * number
        worked(log, 2)
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
    everything = each.items("list_sessions", "sessions", limit=50)
    assert each.items("list_sessions", "sessions", limit=50, kind="all") == everything
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


@pytest.mark.parametrize("columns", [40, 70, 160])
@pytest.mark.parametrize("sort", MEASURES)
def test_the_table_has_the_measure_on_any_terminal(indexed: Path, sort: str, columns: int) -> None:
    shown = agtrace_here("sessions", "--sort", sort, "--limit", "3", COLUMNS=str(columns)).out.splitlines()
    (header,) = [line for line in shown if line.startswith("session ")]
    assert _COLUMN_OF[sort] in header.split()
    assert max(map(len, shown[:5])) <= columns
