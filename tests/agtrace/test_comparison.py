"""Two sessions side by side: every figure is recounted, every difference is true, every event can be opened."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import PORTABLE, Asker, ClaudeLog, call_in, claude_log, query, text_of
from tests.agtrace.terminal import agtrace_here
from tests.contents import texts

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
LARGE, CODEX_LOCK, CODEX_CHILD, REWOUND, SURGE = "d41f7a52", "01a11132", "01a11133", "338b9da1", "e97a4b06"
NAME = "compare_sessions"
MOST = 30_720


@pytest.fixture
def logs_of(tmp_path: Path) -> tuple[ClaudeLog, ClaudeLog]:
    """Two empty logs."""
    return claude_log(tmp_path / "logs", ONE), claude_log(tmp_path / "logs", TWO)


def compared(folder: Path, **more: Any) -> dict[str, Any]:
    """The comparison of the two authored logs."""
    value = Asker(folder / "data", folder / "logs").ask(NAME, id1=ONE, id2=TWO, **more)
    data: dict[str, Any] = value["data"]
    return data


# -- every figure, counted again -----------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(samples: Asker) -> list[dict[str, Any]]:
    """The comparison of every session with the next one, and of the last with the first."""
    uids = [uid for (uid,) in query(samples, "SELECT uid FROM session ORDER BY uid")]
    return [samples.ask(NAME, id1=one, id2=two, max_bytes=MOST)["data"] for one, two in pairwise([*uids, uids[0]])]


def section(asker: Asker, uid: str, name: str) -> list[dict[str, Any]]:
    """A section of a session, to its end."""
    return asker.items("get_session_details", name, session_id=uid, sections=[name])


@pytest.mark.thorough
def test_every_figure_of_every_real_session_is_that_of_its_details(samples: Asker, pairs: list[dict[str, Any]]) -> None:
    for data in pairs:
        side, uid = data["session_1"], data["session_1"]["session_id"]
        stats = samples.ask("get_session_details", session_id=uid, sections="stats")["data"]["stats"]
        assert side["tool_calls"] == stats["tool_calls"]
        assert side["failures"].get("failed", 0) == stats.get("failed_calls", 0)
        assert side.get("total_tokens") == stats.get("total_tokens")
        assert side.get("copied", {}) == stats.get("copied", {})
        refused = [item["outcome"] for item in section(samples, uid, "failures")]
        assert [side["failures"][name] for name in ("rejected", "interrupted")] == [
            refused.count(name) for name in ("rejected", "interrupted")
        ]


def test_every_failure_shown_opens_the_event_that_tells_it(samples: Asker, pairs: list[dict[str, Any]]) -> None:
    with closing(sqlite3.connect(samples.settings.database)) as connection:
        said = {(uid, index): text for uid, index, text, _ in texts(connection)}
    opened = 0
    for data in pairs:
        side = data["session_1"]
        uid = samples.ask("get_session_details", session_id=side["session_id"])["data"]["session_id"]
        examples = side["failures"]["examples"]
        failed = [example["outcome"] == "failed" for example in examples]
        assert failed == sorted(failed, reverse=True), "failed ones first"
        for example in examples[:3]:
            place = {"session_id": side["session_id"], "event_index": example["event_index"]}
            event = samples.ask("get_event_details", **place)["data"]
            assert event["outcome"] == example["outcome"]
            quoted = example["quote"].removesuffix("...").split()
            assert " ".join(quoted) in " ".join(said[uid, event["event_index"]].split())
            opened += 1
    assert opened > 10


# -- what counts ---------------------------------------------------------------------------------


def test_a_fork_is_told_and_only_its_own_events_count(logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path) -> None:
    origin, _ = logs_of
    origin.prompt("first").call("Bash", {"command": "make"}, "no rule", failed=True)
    origin.call("Read", {"file_path": "/home/mira/projects/tidepool/a.py"}).used(100, 5)
    copy = origin.fork(TWO)
    copy.prompt("second").call("Grep", {"pattern": "x"}).used(40, 1)
    data = compared(tmp_path)
    copied = data["relation"]["shared_events"]
    assert copied > 5
    assert data["relation"] == {"summary": "2 is a fork of 1", "shared_events": copied}
    one, two = data["session_1"], data["session_2"]
    assert (one["turns"], one["tool_calls"], one["total_tokens"], one.get("copied")) == (1, 2, 105, None)
    assert (two["turns"], two["tool_calls"], two["total_tokens"], two["failures"]["failed"]) == (1, 1, 41, 0)
    assert two["copied"] == {"events": copied, "turns": 1, "tool_calls": 2, "failed_calls": 1, "total_tokens": 105}
    assert {t["name"]: (t["calls_1"], t["calls_2"]) for t in data["tools"]} == {
        "Bash": (1, 0),
        "Read": (1, 0),
        "Grep": (0, 1),
    }
    assert [file["path"] for file in data["files"]["only_in_1"]] == ["a.py"]
    assert data["files"]["total_in_both"] == data["files"]["total_only_in_2"] == 0
    assert two["duration_seconds"] < 100, "the 1,000 seconds before the fork are not its own"


def test_forks_of_one_session_share_what_both_repeat(logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path) -> None:
    three = claude_log(tmp_path / "logs", "cccccccc-0000-4000-8000-000000000003").prompt("first").say("done")
    for session_id in (ONE, TWO):
        three.fork(session_id).prompt(f"on in {session_id}").say("done")
        three.clock += 10_000
    assert compared(tmp_path)["relation"] == {"summary": "1 and 2 have the same parent, cccccccc", "shared_events": 2}


def test_a_sub_agent_is_told_with_the_call_that_started_it(samples: Asker) -> None:
    for one, two, summary in (
        (CODEX_LOCK, CODEX_CHILD, "2 is a sub-agent of 1"),
        (CODEX_CHILD, CODEX_LOCK, "1 is a sub-agent of 2"),
        ("8c0d35f1", "agent-c4", "2 is a sub-agent of 1"),
    ):
        value = samples.ask(NAME, id1=one, id2=two)
        relation = value["data"]["relation"]
        assert relation["summary"] == summary and summary in value["summary"]
        parent = two if summary.startswith("1") else one
        call = samples.ask("get_event_details", session_id=parent, event_index=relation["started_by_event"])["data"]
        assert call["event_type"] == "ToolCall"


def test_sessions_that_have_nothing_to_do_with_each_other_have_no_relation(samples: Asker) -> None:
    assert "relation" not in samples.ask(NAME, id1=LARGE, id2=CODEX_LOCK)["data"]


# -- files ---------------------------------------------------------------------------------------


def test_a_file_that_two_agents_name_differently_is_one_file(samples: Asker) -> None:
    """Claude Code names it by its absolute path, Codex in a patch below its working directory."""
    data = samples.ask(NAME, id1=LARGE, id2=CODEX_LOCK, max_bytes=MOST)["data"]
    (shared,) = data["files"]["in_both"]
    assert shared["path"] == "tidepool/ingest/writer.py"
    assert min(shared["reads_1"], shared["writes_1"], shared["writes_2"]) > 0
    written = {file["path"] for file in data["files"]["only_in_1"] if file["writes"]}
    assert f"files written: {len(written)} only in 1, none only in 2, 1 in both" in data["differences"]


def test_two_attempts_in_two_worktrees_touch_the_same_files(tmp_path: Path) -> None:
    root = "/home/mira/projects/tidepool"
    for number, session_id in enumerate((ONE, TWO)):
        tree = f"{root}/.claude/worktrees/try-{number}"
        log = claude_log(tmp_path / "logs", session_id, cwd=tree).prompt("fix it")
        log.call("Edit", {"file_path": f"{tree}/tidepool/store.py"}).call("Read", {"file_path": f"{root}/README.md"})
        log.call("Read", {"file_path": f"{tree}/only-{number}.py"})
    files = compared(tmp_path)["files"]
    assert [(file["path"], file["writes_1"], file["writes_2"]) for file in files["in_both"]] == [
        ("tidepool/store.py", 1, 1), (f"{root}/README.md", 0, 0)
    ]  # fmt: skip
    assert [file["path"] for file in files["only_in_1"] + files["only_in_2"]] == ["only-0.py", "only-1.py"]


def test_the_same_name_in_two_projects_is_two_files(tmp_path: Path) -> None:
    for session_id, project in ((ONE, "tidepool"), (TWO, "lanternfish")):
        log = claude_log(tmp_path / "logs", session_id, cwd=f"/home/mira/projects/{project}").prompt("read it")
        log.call("Read", {"file_path": f"/home/mira/projects/{project}/README.md"}).call(
            "Read", {"file_path": "setup.py"}
        )
    data = compared(tmp_path)
    assert data["files"]["total_in_both"] == 0
    assert "/home/mira/projects/tidepool/setup.py" in [file["path"] for file in data["files"]["only_in_1"]]
    assert "different projects" in data["differences"]


# -- differences ---------------------------------------------------------------------------------


def test_the_differences_are_few_words_that_are_true(logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path) -> None:
    one, two = logs_of
    one.prompt("fix it")
    for number in range(40):
        one.call("Bash", {"command": f"make {number}"}, "no rule" if number < 4 else "", failed=number < 4)
    one.used(900, 100)
    two.prompt("fix it").call("Edit", {"file_path": "a.py"})
    two.used(3_000, 100)
    value = Asker(tmp_path / "data", tmp_path / "logs").ask(NAME, id1=ONE, id2=TWO)
    assert value["data"]["differences"] == [
        "last turn: partial in 1, success in 2",
        "failed calls: 4 of 40 in 1, none of 1 in 2",
        "2: 3.1x the tokens",
        "2: 2.5x the cost",
        "1: 27x the active time",
        "1: 20x the steps",
        "only 1 used Bash",
        "only 2 used Edit",
        "files written: none only in 1, 1 only in 2, none in both",
    ]
    assert (
        value["summary"] == "aaaaaaaa (1) and bbbbbbbb (2): last turn: partial in 1, success in 2; 2: 3.1x the tokens"
    )


def test_sessions_that_went_alike_have_no_marked_difference(
    logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path
) -> None:
    for log in logs_of:
        log.prompt("fix it").call("Bash", {"command": "make"}).used(900, 100)
    value = Asker(tmp_path / "data", tmp_path / "logs").ask(NAME, id1=ONE, id2=TWO)
    assert value["data"]["differences"] == []
    assert value["summary"].endswith("no notable difference")


def test_every_difference_of_real_sessions_is_short_and_holds_for_the_figures(pairs: list[dict[str, Any]]) -> None:
    for data in pairs:
        sides = (data["session_1"], data["session_2"])
        assert all(0 < len(difference) <= 100 for difference in data["differences"])
        for difference in data["differences"]:
            if times := re.fullmatch(r"([12]): ([\d.,]+)x the (tokens|turns|steps)( .*)?", difference):
                name = {"tokens": "total_tokens"}.get(times[3], times[3])
                ratio = sides[int(times[1]) - 1][name] / sides[2 - int(times[1])][name]
                assert ratio >= 1.5 and ratio == pytest.approx(float(times[2].replace(",", "")), rel=0.05)
        if "different projects" in data["differences"]:
            assert sides[0]["project_hash"] != sides[1]["project_hash"]


def test_missing_figures_are_said_and_never_compared(logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path) -> None:
    one, two = logs_of
    one.prompt("go").say("done")
    two.prompt("go").used(900, 100)
    differences = compared(tmp_path)["differences"]
    assert "the log of 1 has no token figures" in differences
    assert not any("x the tokens" in difference or "x the cost" in difference for difference in differences)


# -- requests ------------------------------------------------------------------------------------


def test_a_session_is_not_compared_with_itself(samples: Asker) -> None:
    for other in (LARGE, LARGE + "-6c0e", f"ax://session/{LARGE}"):
        error = samples.error(NAME, id1=LARGE, id2=other)
        assert (error["code"], error["details"]["field"]) == ("invalid_parameter", "id2")
        assert LARGE in error["message"] and "two different" in error["message"]


def test_the_hint_opens_a_failure_of_the_one_that_failed_more(samples: Asker) -> None:
    for one, two in ((LARGE, SURGE), (SURGE, LARGE)):
        value = samples.ask(NAME, id1=one, id2=two)
        name, arguments = call_in(value["hint"])
        assert (name, arguments["session_id"]) == ("get_event_details", LARGE)
        opened = samples.run(value["hint"])["data"]
        assert (opened["event_type"], opened["outcome"]) == ("ToolResult", "failed")
        assert text_of(opened["payload"])
    assert samples.run(samples.ask(NAME, id1=REWOUND, id2=CODEX_CHILD)["hint"])["success"]


# -- sizes ---------------------------------------------------------------------------------------


def crowded(log: ClaudeLog) -> None:
    """Many tools, files of long names and failures, in characters that take many bytes."""
    log.prompt("始め" * 200)
    for number in range(120):
        path = f"/srv/{'深い' * (number % 40)}/{log.session_id[:4]}{number}.py"
        name = f"道具{number}{'x' * 60}"
        log.call(name, {"file_path": path}, "失敗" * 99, failed=number % 2 == 0)


def test_longer_lists_are_shown_where_more_is_asked_for_and_the_totals_are_exact(
    logs_of: tuple[ClaudeLog, ClaudeLog], tmp_path: Path
) -> None:
    for log in logs_of:
        crowded(log)
    short, long = compared(tmp_path), compared(tmp_path, max_bytes=MOST)
    for data in (short, long):
        assert data["total_tools"] == 120
        assert (data["files"]["total_only_in_1"], data["files"]["total_in_both"]) == (120, 0)
        assert data["session_1"]["failures"]["failed"] == 60
    assert 0 < len(short["tools"]) < len(long["tools"])
    assert 0 < len(short["files"]["only_in_2"]) < len(long["files"]["only_in_2"])
    assert all(len(file["path"]) <= 160 for file in long["files"]["only_in_1"])
    sizes = [len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()) for data in (short, long)]
    assert sizes[0] <= PORTABLE < sizes[1] <= MOST


# -- in the terminal -----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_the_terminal_shows_two_columns_that_fit_its_width(columns: int, indexed: Path) -> None:
    said = agtrace_here("compare", LARGE, CODEX_LOCK, COLUMNS=str(columns))
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.splitlines())) <= columns
    for shown in (f"1  {LARGE}", f"2  {CODEX_LOCK}", "claude_code", "codex", "partial", "15,115,435", "32,891",
                  "files in both: 1", "tidepool/ingest/writer.py", "exec_command", "and 42 more calls"):  # fmt: skip
        assert shown in said.out
    assert agtrace_here("compare", LARGE, CODEX_LOCK, AGTRACE_MAX_RESPONSE_BYTES="2048").code == 0
