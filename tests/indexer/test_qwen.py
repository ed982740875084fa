"""Qwen Code's logs become events."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record, Rollback
from agtrace_indexer.providers.qwen import parser as qwen
from agtrace_indexer.run import index
from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)

from tests.conftest import SAMPLES
from tests.contents import contents


def line(kind: str, *parts: Any, uuid: str = "u1", **more: Any) -> Record:
    role = "model" if kind == "assistant" else "user"
    record = {"uuid": uuid, "parentUuid": None, "sessionId": "s1", "timestamp": "2026-08-24T10:00:00Z", "type": kind}
    return {**record, "cwd": "/w", "version": "0.21.6", "message": {"role": role, "parts": list(parts)}, **more}


def system(subtype: str, uuid: str = "u1", parent: str | None = None, **payload: Any) -> Record:
    record = line("system", uuid=uuid, subtype=subtype, systemPayload=payload, parentUuid=parent)
    del record["message"]
    return record


def call(name: str = "api_response", uuid: str = "t1", **event: Any) -> Record:
    return system(
        "ui_telemetry", uuid, uiEvent={"event.name": f"qwen-code.{name}", "prompt_id": "s1########0", **event}
    )


def answered(response: Any, status: str | None = "success", name: str = "read_file") -> Record:
    answer = {"functionResponse": {"id": "c1", "name": name, "response": response}}
    return line("tool_result", answer, toolCallResult={"callId": "c1", "status": status})


def drafts(*records: Record, state: LogState | None = None) -> list[Draft]:
    state = state or LogState()
    return [said for record in records for said in qwen.drafts(record, state) if isinstance(said, Draft)]


def read(*records: Record, state: LogState | None = None) -> list[Payload]:
    return [draft.payload for draft in drafts(*records, state=state)]


# --- whose log it is ---


def test_a_record_is_recognized_by_its_parts_or_its_payload() -> None:
    assert qwen.recognizes(line("user", {"text": "hi"}))
    assert qwen.recognizes(call())
    assert not qwen.recognizes({**line("user"), "message": {"role": "user", "content": "hi"}})
    assert not qwen.recognizes({**line("user"), "type": "gemini"})


# --- what is said ---


def test_a_response_is_divided_into_its_parts() -> None:
    thought, said = {"text": "hm", "thought": True}, {"text": "so"}
    asked = {"functionCall": {"id": "c1", "name": "read_file", "args": {"file_path": "x"}}}
    assert read(call(), line("assistant", thought, said, asked)) == [
        TokenUsage(None, None, None, None, None, None, None, None, complete=False),
        Reasoning("hm"),
        Message("so"),
        ToolCall("c1", "read_file", {"file_path": "x"}),
    ]


def test_a_response_and_the_call_before_it_are_one_step() -> None:
    usage, message = drafts(call(input_token_count=1), line("assistant", {"text": "so"}))
    assert usage.step is not None and usage.step == message.step
    (alone,) = drafts(call(input_token_count=1, subagent_name="managed-memory"))
    assert alone.step is None
    (alone,) = drafts(call(input_token_count=1, prompt_id="s1#managed-memory-17#0"))
    assert alone.step is None


def test_telemetry_counts_in_place_of_the_figures_with_a_response() -> None:
    figures = {"promptTokenCount": 10, "candidatesTokenCount": 4, "cachedContentTokenCount": 3, "totalTokenCount": 14}
    told = call(input_token_count=10, cached_content_token_count=3, output_token_count=4, total_token_count=14)
    response = line("assistant", {"text": "so"}, usageMetadata=figures, model="m")
    assert [p for p in read(told, response) if isinstance(p, TokenUsage)] == [
        TokenUsage(None, None, 7, None, None, 3, 4, None)
    ]
    assert [p for p in read(response) if isinstance(p, TokenUsage)] == [
        TokenUsage(None, "m", 7, None, None, 3, 4, None)
    ]


@pytest.mark.parametrize(("total", "output"), [(14, 4), (16, 6), (None, 4)])
def test_thoughts_are_added_to_the_output_only_if_the_total_has_them_beside_it(total: int | None, output: int) -> None:
    (usage,) = read(call(input_token_count=10, output_token_count=4, thoughts_token_count=2, total_token_count=total))
    assert isinstance(usage, TokenUsage) and (usage.output_tokens, usage.reasoning_tokens) == (output, 2)


@pytest.mark.parametrize(
    ("record", "outcome", "exit_code"),
    [
        (answered({"output": "fine"}), Outcome.OK, None),
        (answered({"error": "no"}, "error"), Outcome.FAILED, None),
        (answered({"error": "no"}, None), Outcome.FAILED, None),
        (answered({"output": "Command: x\nOutput: y\nExit Code: 2"}, name="run_shell_command"), Outcome.FAILED, 2),
        (answered({"error": "[Operation Cancelled] Reason: User cancelled"}, "cancelled"), Outcome.REJECTED, None),
        (answered({"error": "[Operation Cancelled]"}, "cancelled"), Outcome.INTERRUPTED, None),
    ],
)
def test_the_outcome_of_an_execution(record: Record, outcome: Outcome, exit_code: int | None) -> None:
    (result,) = read(record)
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.outcome, result.exit_code) == ("c1", outcome, exit_code)


def test_what_the_user_refused_is_a_rejection_and_durations_are_the_telemetrys() -> None:
    refused = call("tool_call", call_id="c1", decision="reject", duration_ms=9)
    (result,) = read(refused, answered({"error": "no"}, "error"))
    assert result == ToolResult("c1", "no", Outcome.REJECTED, OutcomeSource.STRUCTURE)
    (result,) = read(call("tool_call", call_id="c1", decision="accept", duration_ms=9), answered({"output": "fine"}))
    assert isinstance(result, ToolResult) and result.duration_ms == 9


def test_several_answers_on_one_line_are_several_results() -> None:
    one = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "a"}}}
    other = {"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "b"}}}
    record = line("tool_result", one, other, toolCallResult={"callId": "c1", "status": "success"})
    assert [(r.call_id, r.outcome) for r in read(record) if isinstance(r, ToolResult)] == [
        ("c1", Outcome.OK),
        ("c2", Outcome.FAILED),
    ]


@pytest.mark.parametrize(
    ("record", "kinds"),
    [
        (line("user", {"text": "hi"}, provenance="real_user"), ["human"]),
        (line("user", {"text": "hi"}, subtype="mid_turn_user_message"), ["human"]),
        (line("user", {"text": "hi"}, provenance="goal_control"), ["injected"]),
        (line("user", {"text": "<session_context>x"}), ["injected"]),
        (line("user", {"text": "hi"}, subtype="notification"), ["notification"]),
        (line("user", {"text": "hi"}, subtype="cron"), ["notification"]),
        (line("user", {"text": "hi"}, {"text": "hook"}, systemPayload={"displayText": "hi"}), ["human", "injected"]),
        (system("slash_command", phase="invocation", rawCommand="/x"), ["command"]),
        (system("slash_command", phase="result", rawCommand="/x"), []),
    ],
)
def test_who_speaks_in_the_users_role(record: Record, kinds: list[str]) -> None:
    assert [str(user.kind) for user in read(record) if isinstance(user, User)] == kinds


def test_a_compression_keeps_only_the_summary_of_the_history_that_it_repeats() -> None:
    history = [{"role": "user", "parts": [{"text": "so far"}]}, {"role": "model", "parts": [{"text": "again"}]}]
    assert read(system("chat_compression", info={"newTokenCount": 9}, compressedHistory=history)) == [
        Notification("system/chat_compression", '{"newTokenCount":9}'),
        User("so far", UserKind.COMPACTION_SUMMARY),
    ]


def test_an_error_of_the_api_is_told() -> None:
    assert read(call("api_error", error_message="503")) == [Notification("api_error", "503")]


@pytest.mark.parametrize(("parent", "dropped"), [("u1", 2), ("u3", 1), (None, 3), ("elsewhere", 0)])
def test_a_rewind_drops_the_turns_after_the_line_that_it_goes_back_to(parent: str | None, dropped: int) -> None:
    state = LogState()
    for number, before in enumerate((None, "u1", "u3")):
        drafts(line("user", {"text": str(number)}, uuid=f"p{number}", parentUuid=before), state=state)
    said = list(qwen.drafts(system("rewind", parent=parent), state))
    assert [told for told in said if isinstance(told, Rollback)] == ([Rollback(dropped)] if dropped else [])
    assert len(state.memory["before"]) == 3 - dropped


# --- the session ---


def test_a_title_of_the_users_stays_when_another_is_made_up() -> None:
    state = LogState()
    read(system("custom_title", customTitle="Mine", titleSource="manual"), state=state)
    read(system("custom_title", customTitle="Made up", titleSource="auto"), state=state)
    assert state.sessions[""].title == "Mine"


def test_a_branch_copies_lines_that_count_in_the_session_they_come_from(database: Path) -> None:
    index(database, [str(SAMPLES / "qwen")])
    sessions = {session[5]: session for session in contents(database)["sessions"]}
    assert sessions["fork"][39] == sessions["main"][-2]
    assert (sessions["fork"][16], sessions["fork"][33]) == (1, 1), "its own turn, and the copied one"


def test_a_sub_agents_log_names_its_parent_and_its_task_and_its_tokens_count_in_the_parent(database: Path) -> None:
    index(database, [str(SAMPLES / "qwen")])
    (agent,) = [session for session in contents(database)["sessions"] if session[5] == "subagent"]
    assert (agent[0], agent[4], agent[6], agent[25]) == (
        "agent-Explore-9c2d",
        "5d0c7e41-92a3-4b68-8f15-c3e7a6b0d606",
        "Explore",
        "which greens",
    )
    assert agent[19:22] == (None, None, None)


def test_a_sub_agents_tokens_count_in_its_own_log_if_no_telemetry_has_them(database: Path, tmp_path: Path) -> None:
    index(database, [str(shutil.copytree(SAMPLES / "qwen", tmp_path / "qwen", ignore=shutil.ignore_patterns("chats")))])
    assert [session[19:22] for session in contents(database)["sessions"]] == [(1500, 45, 1545)]


def test_a_sub_agents_log_is_told_by_its_lines_if_its_name_is_lost() -> None:
    state = LogState()
    said = read(line("user", {"text": "look"}, isSidechain=True, agentId="x1", agentName="Explore"), state=state)
    assert said == [User("look", UserKind.TASK)]
    facts = state.sessions[""]
    assert (facts.id, facts.parent_id, facts.kind, facts.agent_type) == ("agent-x1", "s1", "subagent", "Explore")
