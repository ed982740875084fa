"""Cursor's transcripts become events; whatever they don't have is unknown, and never said to be none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.providers.cursor import parser as cursor
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.run import index
from agtrace_schema.events import (
    Message,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from tests.agtrace.terminal import agtrace_here, index_here
from tests.conftest import SAMPLES
from tests.contents import contents

ROOT = SAMPLES / "cursor" / "projects"
MAIN, CHILD = "6c1d0a94-3b7e-4f25-8e60-b2a91f7d4c38", "e05b83d7-1f42-4c9a-a7d6-3c8e5f90b214"


def line(role: str, *blocks: Any, **more: Any) -> Record:
    return {"role": role, "message": {"content": list(blocks)}, **more}


def text(said: str) -> Record:
    return {"type": "text", "text": said}


def payloads(*records: Record, state: LogState | None = None) -> list[Payload]:
    state = state or LogState()
    return [draft.payload for record in records for draft in cursor.drafts(record, state)]


# --- recognised last, and by two lines ---


def test_it_is_the_last_agent_that_is_asked_about_a_record() -> None:
    assert [*AGENTS][-1] == "cursor"


def test_one_line_is_not_enough_to_recognise_a_transcript_and_the_second_one_is(tmp_path: Path, database: Path) -> None:
    log = tmp_path / "a.jsonl"
    first, second = line("user", text("<user_query>\nHello\n</user_query>")), line("assistant", text("Hello"))
    log.write_text(json.dumps(first) + "\n")
    index(database, [str(tmp_path)])
    assert [row[1] for row in contents(database)["files"] if row[0] == str(log)] == ["unrecognized"]
    log.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    index(database, [])
    assert [event[2] for event in contents(database)["events"]] == [0, 1]


@pytest.mark.parametrize(
    "record",
    [
        {"role": "user", "content": [text("x")]},
        {**line("user", text("x")), "type": "user"},
        {**line("user", text("x")), "uuid": "u", "sessionId": "s"},
        line("system", text("x")),
        line("user"),
        line("user", "x"),
        {"role": "user", "message": {"content": "x"}},
        {"role": "assistant", "message": {"content": [text("x")], "id": "m"}},
        {"role": "assistant", "message": {"content": [text("x")], "usage": {}}},
        {"role": "assistant", "message": {"content": [text("x")], "model": "m"}},
        {"role": "assistant", "message": {"content": [text("x")], "timestamp": 1}},
    ],
)
def test_what_only_looks_like_a_line_of_its_own_is_not_claimed(record: Record) -> None:
    assert not cursor.recognizes(record)


# --- lines ---


def test_what_was_typed_is_told_apart_from_what_was_put_around_it() -> None:
    before, typed = "<user_info>\nWorkspace Path: /srv/kelp\n</user_info>", "<user_query>\nrun ls\n</user_query>"
    state = LogState()
    assert payloads(line("user", text(f"{before}\n{typed}\n<rules>\nno\n</rules>")), state=state) == [
        User(before, UserKind.INJECTED),
        User("run ls", UserKind.HUMAN),
        User("<rules>\nno\n</rules>", UserKind.INJECTED),
    ]
    assert state.sessions[""].cwd == "/srv/kelp"


def test_a_text_without_the_tag_is_injected_once_others_had_it() -> None:
    tagged, bare = line("user", text("<user_query>a</user_query>")), line("user", text("b"))
    kinds = [payload.kind for payload in payloads(bare, tagged, bare) if isinstance(payload, User)]
    assert kinds == [UserKind.HUMAN, UserKind.HUMAN, UserKind.INJECTED]


def test_a_response_becomes_events_and_hidden_reasoning_none() -> None:
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    said = line("assistant", {"type": "thinking", "thinking": "hm"}, text("[REDACTED]"), text("I look"), call)
    assert payloads(said) == [Reasoning("hm"), Message("I look"), ToolCall(None, "Shell", {"command": "ls"})]
    state = LogState()
    assert payloads(line("assistant", text("[REDACTED]")), {"type": "turn_ended"}, state=state) == []
    assert state.skipped == ["assistant/empty", "turn_ended"]


@pytest.mark.parametrize("told", [None, True, False])
def test_a_result_without_a_flag_is_not_taken_for_a_success(told: bool | None) -> None:
    outcome = {None: Outcome.UNKNOWN, True: Outcome.FAILED, False: Outcome.OK}[told]
    block = {"type": "tool_result", "tool_use_id": "t", "content": [text("done")], "is_error": told}
    source = None if told is None else OutcomeSource.STRUCTURE
    assert payloads(line("user", block)) == [ToolResult("t", "done", outcome, source)]


def test_a_time_in_a_request_is_its_time() -> None:
    said = line("user", text("<timestamp>2026-10-01T10:00:00Z</timestamp>\n<user_query>a</user_query>"))
    assert {draft.timestamp for draft in cursor.drafts(said, LogState())} == {1_790_848_800_000}


# --- sessions, and what isn't known of them ---


def test_a_sub_agent_belongs_to_the_session_whose_folder_it_is_in(database: Path) -> None:
    index(database, [str(ROOT)])
    sessions = {row[0]: row for row in contents(database)["sessions"]}
    assert (sessions[CHILD][4], sessions[CHILD][5]) == (MAIN, "subagent")
    (task,) = [event for event in contents(database)["events"] if event[0] == CHILD and event[2] == 0]
    assert task[6] == "task"
    assert (sessions[MAIN][7], sessions[MAIN][16], sessions[MAIN][17]) == ("/home/mira/projects/lanternfish", 2, 5)


def test_a_transcript_that_moved_into_a_folder_of_its_own_is_one_session(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "agent-transcripts"
    (folder / MAIN).mkdir(parents=True)
    for log in (folder / f"{MAIN}.jsonl", folder / MAIN / f"{MAIN}.jsonl"):
        log.write_bytes(next(ROOT.rglob(log.name)).read_bytes())
    index(database, [str(tmp_path)])
    assert [row[0] for row in contents(database)["sessions"]] == [MAIN]


def test_times_results_and_tokens_are_unknown_in_answers_and_not_0(tmp_path: Path) -> None:
    index_here(ROOT)
    listed = {item["id"]: item for item in agtrace_here("sessions", "--json").json()["data"]["sessions"]}
    session = next(item for item in listed.values() if item.get("kind") != "subagent")
    assert session["tool_calls"] == 5
    assert (session["tokens_made"], session["cost_made"]) == ("unknown", "unknown")
    absent = ("failed_calls", "total_tokens", "cost_usd", "start_time", "duration_seconds")
    assert not {name for name in absent if name in session}
    shown = agtrace_here("show", session["id"], "--json").json()
    stats = shown["data"]["stats"]
    assert all(stats.get(name) is None for name in ("failed_calls", "failure_run", "total_tokens"))
    assert "unknown (no results in its log), 5 tool calls whose results aren't logged" in shown["summary"]
    assert [(turn["outcome"], turn.get("failed_tools")) for turn in shown["data"]["turns"]] == [("unknown", None)] * 2
    analysis = agtrace_here("analyze", session["id"], "--json").json()["data"]
    assert "score" not in analysis and analysis["unscored"] == "its log doesn't say how its tool calls ended"
    assert not [found for found in analysis.get("insights", []) if "unanswered" in found["detector"]]


def test_a_session_without_a_call_has_none_that_failed(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(line(role, text("x"))) + "\n" for role in ("user", "assistant")))
    index_here(log.parent)
    (session,) = agtrace_here("sessions", "--json").json()["data"]["sessions"]
    assert session["failed_calls"] == 0
