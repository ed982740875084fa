"""The answers of each tool about the sample sessions, which sample_sessions/README.md describes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.providers.registry import AGENTS

from agtrace.answers.service import Service
from agtrace.index.trouble import Freshness
from agtrace.settings.model import Settings
from tests.agtrace.asking import Asker, claude_log
from tests.depth import THOROUGH

SURGE, LARGE, WHEEL, LOOP = "e97a4b06", "d41f7a52", "8c0d35f1", "01a0ec9d"
CODEX_LOCK, CODEX_CHILD, GEMINI, REWOUND = "01a11132", "01a11133", "ccde789b", "338b9da1"


def at_line(asker: Asker, session_id: str, line: int) -> list[dict[str, Any]]:
    """The events of a line of a session's log, opened."""
    found = []
    for index in range(asker.ask("get_session_details", session_id=session_id)["data"]["stats"]["total_events"] + 20):
        given = asker.anything("get_event_details", session_id=session_id, event_index=index)
        if given.is_error:
            break
        if given.value["data"]["origin"]["line"] == line:
            found.append(given.value["data"])
    return found


def small(tmp_path: Path, number: int = 1) -> Any:
    return claude_log(tmp_path / "logs", f"{number:08}-0000-4000-8000-000000000000")


def asker_of(tmp_path: Path) -> Asker:
    return Asker(tmp_path / "data", tmp_path / "logs")


# -- lists ---------------------------------------------------------------------------------------


def test_a_list_of_sessions_says_what_each_was_about(samples: Asker) -> None:
    value = samples.ask("list_sessions", limit=50)
    large = next(item for item in value["data"]["sessions"] if item["id"] == LARGE)
    assert large == {
        "id": LARGE, "provider": "claude_code", "project": "tidepool",
        "title": "October backfill and the store's locking",
        "snippet": "Get an overview of tidepool: what happens between a gauge's packet and a row in readings?",
        "start_time": "2026-11-03T08:03:49Z", "duration_seconds": 17469, "turn_count": 44, "tool_calls": 536,
        "failed_calls": 45, "total_tokens": large["total_tokens"], "tokens_made": "partial",
        "cost_usd": large["cost_usd"], "cost_made": "partial",
    }  # fmt: skip
    assert value["summary"] == "Found 30 sessions (19 with failures); kind=all adds 12 sub-agents"
    assert all(len(item.get("snippet", "")) <= 200 and len(item["id"]) >= 8 for item in value["data"]["sessions"])


@pytest.mark.parametrize(
    ("child", "parent"), [("agent-a3", SURGE), ("agent-c4", WHEEL), ("sidechai", "5be1c2d7"), (CODEX_CHILD, CODEX_LOCK)]
)
def test_a_sub_agent_and_its_parent_name_each_other(samples: Asker, child: str, parent: str) -> None:
    """Inline, flat, in a folder, and Codex's own."""
    of_child = samples.ask("get_session_details", session_id=child)["data"]
    assert of_child["kind"] == "subagent"
    assert of_child["parent_id"] == parent
    children = samples.ask("get_session_details", session_id=parent)["data"]["children"]
    of_parent = next(item for item in children if item["id"] == child)
    assert of_parent["started_by"] == of_child["started_by"]
    call = samples.ask("get_event_details", session_id=parent, event_index=of_child["started_by"])["data"]
    assert (call["event_type"], call["started_session"]) == ("ToolCall", child)
    listed = {item["id"]: item for item in samples.items("list_sessions", "sessions", kind="all")}
    assert (listed[child]["kind"], listed[child]["parent_id"]) == ("subagent", parent)
    assert "kind" not in listed[parent]


def test_a_list_of_projects_says_where_they_are_and_what_happened_last(samples: Asker) -> None:
    lanternfish, tidepool, *_ = samples.ask("get_project_info")["data"]["projects"]
    assert lanternfish["root_path"] == "/home/mira/projects/lanternfish"
    assert tidepool["root_path"] == "/home/mira/projects/tidepool"
    assert tidepool["providers"] == ["claude_code", "codex", "copilot", "gemini", "goose", "kiro", "opencode"]
    assert lanternfish["last_activity"] == "2026-11-10T08:31:34Z"
    assert lanternfish["session_count"] + tidepool["session_count"] == 22, "of one, no log says the folder"


def test_a_parent_of_many_sub_agents_does_not_hide_any_without_saying_so(tmp_path: Path) -> None:
    parent = small(tmp_path).prompt("fan out")
    for number in range(14):
        name = f"agent-{number:016x}"
        log = claude_log(tmp_path / "logs", f"{number:08x}-1111-4000-8000-000000000000")
        log.path = parent.path.parent / parent.session_id / "subagents" / f"{name}.jsonl"
        log.path.parent.mkdir(parents=True, exist_ok=True)
        log.session_id = parent.session_id
        log.write("user", "look", isSidechain=True, agentId=f"{number:016x}")
    value = asker_of(tmp_path).ask("get_session_details", session_id=parent.session_id)
    shown = len(value["data"]["children"])
    assert shown == 14 or "14" in json.dumps(
        {k: v for k, v in value["data"].items() if "child" in k and k != "children"}
    )


# -- a session -----------------------------------------------------------------------------------


def test_the_summary_of_a_session_is_one_line_a_turn(samples: Asker) -> None:
    value = samples.ask("get_session_details", session_id=SURGE)
    assert (
        value["summary"]
        == "Session e97a4b06: unknown (open call), 2 of 14 tool calls failed (549 s, 68 events, 6 turns)"
    )
    first = value["data"]["turns"][0]
    assert first["user_message"].startswith("潮汐データの地図に高潮の警報を表示したい 🌊")
    assert (first["turn_index"], len(value["data"]["turns"])) == (0, 6)
    assert value["untrusted"] is True


def test_level_turns_shows_every_step_with_its_tools_and_how_they_ended(samples: Asker) -> None:
    (turn,) = samples.ask("get_session_details", session_id=LOOP, detail_level="turns")["data"]["turns"]
    calls = [
        step["summary"]
        for step in turn["steps"]
        if "pytest -x -q tests/test_tides.py::test_high_water" in step["summary"]
    ]
    assert len(calls) >= 6
    assert sum("(failed)" in summary for summary in calls) == 5
    assert turn["outcome"] in ("partial", "success")
    assert sum(step["tool_calls"] for step in turn["steps"]) == 8
    assert sum(step["failed_tools"] for step in turn["steps"]) == 5
    assert turn["key_actions"][0].startswith("Used tools: ")


def test_reasoning_is_quoted_only_where_it_is_asked_for(samples: Asker) -> None:
    plain = samples.ask("get_session_details", session_id=WHEEL, detail_level="turns", turn_index=0)
    quoted = samples.ask(
        "get_session_details", session_id=WHEEL, detail_level="turns", turn_index=0, include_reasoning=True
    )
    assert not any("reasoning" in step for step in plain["data"]["turns"][0]["steps"])
    assert any("reasoning" in step for step in quoted["data"]["turns"][0]["steps"])


def test_turn_index_opens_one_turn(samples: Asker) -> None:
    for level in ("summary", "turns"):
        turns = samples.items("get_session_details", "turns", session_id=LARGE, detail_level=level, turn_index=22)
        assert {turn["turn_index"] for turn in turns} == {22}


def test_a_turn_of_hundreds_of_steps_is_walked_within_the_turn(tmp_path: Path) -> None:
    log = small(tmp_path).prompt("count")
    for number in range(400):
        log.call("Bash", {"command": f"echo {number} {'潮' * 40}"}, str(number))
    log.prompt("and now?").say("done")
    asker = asker_of(tmp_path)
    steps = [
        (turn["turn_index"], step["step_index"], step["summary"])
        for turn in asker.items("get_session_details", "turns", session_id=log.session_id, detail_level="turns")
        for step in turn["steps"]
    ]
    assert [step[:2] for step in steps] == [*((0, number) for number in range(400)), (1, 0)]
    assert all(f"echo {number} " in step[2] for number, step in enumerate(steps[:400]))


# -- search --------------------------------------------------------------------------------------


def test_a_preview_shows_the_match_and_not_the_beginning(samples: Asker) -> None:
    (match,) = samples.ask("search_event_previews", order="newest", query="DATABASE IS LOCKED", session_id=LARGE)[
        "data"
    ]["matches"]
    shown = match["preview"]["preview"]
    assert shown.startswith("...")
    assert shown.endswith("sqlite3.OperationalError: database is locked (tidepool/ingest/writer.py:88)")
    assert match["outcome"] == "failed"
    assert len(shown) <= 306


def test_a_match_among_many_long_arguments_is_shown(tmp_path: Path) -> None:
    arguments = {f"option_{number}": "x" * 5_000 for number in range(40)} | {
        "zone": "y" * 9_000 + "needle" + "z" * 9_000
    }
    small(tmp_path).prompt("go").call("Configure", arguments)
    (match,) = asker_of(tmp_path).ask("search_event_previews", order="newest", query="needle")["data"]["matches"]
    assert "needle" in next(iter(match["preview"]["arguments"].values()))
    assert next(iter(match["preview"]["arguments"])) == "zone"


def test_a_preview_marks_a_cut_only_where_something_is_missing(tmp_path: Path) -> None:
    small(tmp_path).prompt("\x1b[31mred\x1b[0m tide")
    (match,) = asker_of(tmp_path).ask("search_event_previews", order="newest", query="red")["data"]["matches"]
    assert match["preview"]["text"] == "red tide"


@pytest.mark.parametrize("session_id", ["%", "_", "*", "[e]*", "?", SURGE + "%", "\U0010ffff", "' OR '1'='1"])
def test_wildcards_are_no_part_of_an_id(samples: Asker, session_id: str) -> None:
    assert samples.error("get_session_details", session_id=session_id)["code"] == "session_not_found"
    assert (
        samples.error("search_event_previews", order="newest", query="e", session_id=session_id)["code"]
        == "session_not_found"
    )


def test_an_empty_session_id_is_no_session(samples: Asker) -> None:
    """What a client gives is never ignored: an empty id must not search everything."""
    assert samples.anything("search_event_previews", order="newest", query="e", session_id="").is_error


# -- single events -------------------------------------------------------------------------------


def test_an_event_comes_whole_with_its_origin_and_links(samples: Asker) -> None:
    (result,) = [event for event in at_line(samples, WHEEL, 6) if event["event_type"] == "ToolResult"]
    assert "Traceback" in result["payload"]["content"]
    log = samples.ask("get_session_details", session_id=result["session_id"])["data"]["log"]
    data = Path(log).read_bytes()
    start = result["origin"]["byte_offset"]
    line = json.loads(data[start : start + result["origin"]["byte_length"]])
    assert line["message"]["content"][0]["content"] == result["payload"]["content"]
    call = samples.ask("get_event_details", session_id=WHEEL, event_index=result["call_event"])["data"]
    assert call["result_event"] == result["event_index"]
    assert call["payload"]["arguments"]["command"]


def test_what_was_rolled_back_is_found_and_marked_and_what_was_replaced_is_only_marked(samples: Asker) -> None:
    search = {"order": "newest", "session_id": REWOUND}
    listed = {
        match["event_index"]: match.get("rolled_back", False)
        for match in samples.items("search_event_previews", "matches", query="", limit=50, **search)
    }
    opened = [
        samples.ask("get_event_details", session_id=REWOUND, event_index=index)["data"]
        for index in range(max(listed) + 1)
    ]
    back = {event["event_index"] for event in opened if event.get("rolled_back")}
    assert back and back == {index for index, marked in listed.items() if marked}
    assert {event["event_index"] for event in opened if not event.get("superseded")} == listed.keys() - back
    (request,) = (event for event in at_line(samples, REWOUND, 9) if event["event_type"] == "User")
    text = request["payload"]["text"]
    (found,) = samples.items("search_event_previews", "matches", query=text, **search)
    assert found["rolled_back"] is True


def test_a_short_id_stays_good_when_a_second_log_of_that_id_comes(tmp_path: Path) -> None:
    log = small(tmp_path).prompt("Look at the first tide.")
    asker = asker_of(tmp_path)
    short = log.session_id[:8]
    assert asker.ask("get_session_details", session_id=short)["data"]["session_id"] == log.session_id
    other = log.path.parent.parent / "other" / log.path.name
    other.parent.mkdir()
    other.write_bytes(log.path.read_bytes().replace(b"first tide", b"second tide"))
    assert asker.ask("get_session_details", session_id=short)["data"]["session_id"] == log.session_id
    assert (
        asker.ask("get_session_details", session_id=f"{log.session_id}~2")["data"]["session_id"]
        == f"{log.session_id}~2"
    )


def test_a_long_output_comes_in_chunks_that_join_to_it(tmp_path: Path) -> None:
    output = "潮汐 🌊\r\n" * 2_000 + "\x1b[31m\x07\n" * 500 + "x" * 300_000 + "\n\n\nend"
    log = small(tmp_path).prompt("go").call("Bash", {"command": "tide"}, output)
    assert asker_of(tmp_path).body(log.session_id, 2, max_bytes=102_400) == output


@pytest.mark.parametrize("most", [2_048, 10_240])
def test_no_event_is_too_odd_to_be_opened(tmp_path: Path, most: int) -> None:
    """Complete detail is always possible, whatever a log holds for a name, an id or a type."""
    long = "T" * 20_000
    log = small(tmp_path).prompt("go")
    log.write("assistant", [{"type": "tool_use", "id": long, "name": long, "input": {long: "e"}}])
    log.write("user", [{"type": "tool_result", "tool_use_id": long, "content": "the output", "is_error": True}])
    log.raw({"type": long, "sessionId": log.session_id, "timestamp": "2026-09-21T00:00:00Z", "note": "e"})
    asker = asker_of(tmp_path).with_most(most)
    for match in asker.items("search_event_previews", "matches", order="newest", query=""):
        opened = asker.ask("get_event_details", session_id=log.session_id, event_index=match["event_index"])
        assert "payload" in opened["data"], f"{opened['summary']}: {opened['data']}"
    assert asker.body(log.session_id, 2) == "the output"


# -- analysis ------------------------------------------------------------------------------------


def test_the_same_call_that_fails_five_times_in_a_row_is_a_finding_with_evidence_that_opens(samples: Asker) -> None:
    data = samples.ask("analyze_session", session_id=LOOP, include_loops=True)["data"]
    (loop,) = [insight for insight in data["insights"] if insight["lens"] == "Loops"]
    assert (loop["detector"], loop["count"], loop["severity"]) == ("returning_error", 5, "Warning")
    assert loop["message"].startswith("5 attempts got the same error within ")
    for evidence in loop["evidence"]:
        opened = samples.ask("get_event_details", session_id=LOOP, event_index=evidence["event_index"])["data"]
        assert (opened["event_type"], opened["outcome"]) == ("ToolResult", "failed")
        assert "high_water" in samples.ask("read_artifact", ref=evidence["ref"])["data"]["text"]


def test_thousands_of_failures_are_counted_in_five_kilobytes(tmp_path: Path) -> None:
    log = small(tmp_path).prompt("Raise the tide gauge.")
    calls = 12_000 if THOROUGH else 1_200
    failed, ok = calls * 5 // 6, calls // 6
    for number in range(calls):
        log.call(f"Gauge{number % 40}", {"level": number}, f"level {number}: no such gauge", failed=number % 6 > 0)
    answer = asker_of(tmp_path).ask("analyze_session", session_id=log.session_id, include_loops=True)
    data = answer["data"]
    assert len(json.dumps(answer, ensure_ascii=False).encode()) <= 5_120
    assert data["summary"]["outcomes"] == {"failed": failed, "ok": ok}
    (failures,) = (part for part in data["parts"] if part["part"] == "failures")
    assert failures["why"] == f"{failed:,} of {calls:,} tool calls failed (83%)"
    told = {insight["detector"]: insight["count"] for insight in data["insights"]}
    assert told == {"returning_error": failed}, "one finding for one set of events"


def test_a_finding_that_is_not_asked_for_is_not_shown_and_costs_all_the_same(samples: Asker) -> None:
    everything = samples.ask("analyze_session", session_id=LOOP, include_loops=True)["data"]
    nothing = samples.ask("analyze_session", session_id=LOOP, include_failures=False)["data"]
    assert {insight["lens"] for insight in nothing["insights"]} <= {"TokenUsage", "Time", "Outcome"}
    assert (nothing["score"], nothing["parts"]) == (everything["score"], everything["parts"])


def test_rejections_and_interruptions_are_no_failures(samples: Asker) -> None:
    data = samples.ask("analyze_session", session_id=SURGE)["data"]
    assert [part["why"] for part in data["parts"] if part["part"] == "failures"] == ["2 of 15 tool calls failed (13%)"]
    assert data["summary"]["outcomes"] == {"ok": 10, "failed": 2, "rejected": 1, "unknown": 1}


# -- what to do next -----------------------------------------------------------------------------


def test_the_hint_of_an_error_can_be_followed(samples: Asker) -> None:
    for arguments in ({"session_id": "nobody"}, {"session_id": SURGE, "event_index": 10**6}):
        name = "get_event_details" if "event_index" in arguments else "get_session_details"
        hint = samples.anything(name, **arguments).value["hint"]
        assert samples.run(hint)["success"]


# -- the index -----------------------------------------------------------------------------------


def test_nothing_is_found_only_when_the_index_is_ready(tmp_path: Path) -> None:
    """While the first run goes on an answer says so, or is an error to be tried again."""
    small(tmp_path).prompt("tide")
    settings = Settings(
        data_dir=tmp_path / "data",
        cursor_ttl_seconds=60,
        environment={"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "logs")},
    )
    answers = Service(settings, refresh_seconds=0.0, log=lambda record: None)
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end, "the first run takes more than a minute"
        given = answers.ask("search_event_previews", {"order": "newest", "query": "tide"})
        if given.is_error:
            assert given.value["error"]["code"] == "index_unavailable"
            assert given.value["error"]["retryable"] is True
        elif given.value["data"]["matches"]:
            break
        else:
            assert not given.value["summary"].startswith("Found 0"), given.text
            assert given.value["index"]["state"] in ("building", "catching_up")


def test_an_answer_of_a_growing_index_says_how_far_it_is() -> None:
    from agtrace.shaping.replies import Reply
    from agtrace.shaping.shape import answer  # the smallest answer there is

    value = answer(Reply("Found 3 sessions", {}, 2_048), Freshness("catching_up", 3, 81_920)).value
    assert value["index"] == {"state": "catching_up", "files_behind": 3, "bytes_behind": 81_920}


@pytest.mark.parametrize("name", ["claude_code", "Claude Code", "claude-code", "claude", "CLAUDE"])
def test_an_agent_goes_by_all_its_names(samples: Asker, name: str) -> None:
    meant = samples.ask("list_sessions", provider="claude_code", limit=50)
    found = samples.ask("list_sessions", provider=name, limit=50)
    assert found["data"]["sessions"] == meant["data"]["sessions"] != []


@pytest.mark.parametrize("name", ["cloude", "", "-", "aider"])
def test_an_unknown_agent_is_answered_with_those_that_are_known(samples: Asker, name: str) -> None:
    error = samples.error("list_sessions", provider=name)
    assert error["code"] == "invalid_parameter" and error["details"]["allowed"] == list(AGENTS)
