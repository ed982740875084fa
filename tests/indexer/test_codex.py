"""Reading Codex rollouts, from single lines and from real logs."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record, Said, Settlement
from agtrace_indexer.providers.codex import parser as codex
from agtrace_indexer.providers.codex.tools import read_output
from agtrace_indexer.providers.registry import AGENTS
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

# --- helpers ---


def heard(*records: Record, state: LogState | None = None) -> list[Said]:
    state = state or codex.begin(PurePath("rollout.jsonl"))
    return [said for record in records for said in codex.drafts(record, state)]


def read(*records: Record, state: LogState | None = None) -> list[Draft]:
    return [said for said in heard(*records, state=state) if isinstance(said, Draft)]


def payloads(*records: Record) -> list[Payload]:
    return [draft.payload for draft in read(*records)]


def line(kind: str, /, **payload: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:00.500Z", "type": kind, "payload": payload}


def item(kind: str, /, **fields: Any) -> Record:
    return line("response_item", type=kind, **fields)


def event(kind: str, /, **fields: Any) -> Record:
    return line("event_msg", type=kind, **fields)


def said(role: str, *texts: str) -> Record:
    return item("message", role=role, content=[{"type": "input_text", "text": text} for text in texts])


def call(call_id: str, name: str = "exec_command") -> Record:
    return item("function_call", name=name, arguments='{"cmd":"ls"}', call_id=call_id)


def output(call_id: str, text: Any = "") -> Record:
    return item("function_call_output", call_id=call_id, output=text)


def tokens(total: Record | None, last: Record | None = None) -> Record:
    return event(
        "token_count", info={"total_token_usage": total, "last_token_usage": last, "model_context_window": 1000}
    )


def used(given: int, cached: int, made: int) -> Record:
    return {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": made, "reasoning_output_tokens": 0}


def only(kind: type, found: list[Payload]) -> list[Any]:
    return [payload for payload in found if isinstance(payload, kind)]


# --- recognition and eras ---


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"type": ["session_meta"], "payload": {"a": 1}},
        {"type": "session_meta", "payload": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
        {"role": "user", "content": "hi", "timestamp": "2025-09-10T12:00:00Z"},
        {"id": "a", "timestamp": "2025-07-01T00:00:00Z"},
    ],
)
def test_what_another_program_could_write_is_not_recognized(record: Record) -> None:
    assert not codex.recognizes(record)


def test_a_typescript_rollout_unrolls_into_its_session_and_its_items() -> None:
    session = {"id": "s1", "timestamp": "2025-05-01T10:00:00Z", "instructions": ""}
    document = {"session": session, "items": [said("user", "hello")["payload"], "junk"]}
    records = list(codex.unroll(document) or [])
    state = LogState()
    assert only(User, [draft.payload for draft in read(*records, state=state)]) == [User("hello", UserKind.HUMAN)]
    assert state.sessions[""].id == "s1"
    assert codex.unroll({"items": []}) is None
    assert codex.unroll([1]) is None


def test_a_bare_log_gets_its_directory_from_the_environment_context() -> None:
    state = LogState()
    found = read(
        {"id": "b1", "timestamp": "2025-07-01T00:00:00Z", "instructions": None, "git": {"branch": "dev"}},
        {"record_type": "state"},
        said("user", "<environment_context>\n<cwd>/work/x</cwd>\n</environment_context>")["payload"],
        said("user", "hello")["payload"],
        call("c1")["payload"],
        output("c1", '{"output":"a\\n","metadata":{"exit_code":0,"duration_seconds":0.5}}')["payload"],
        state=state,
    )
    facts = state.sessions[""]
    assert (facts.id, facts.cwd, facts.branch) == ("b1", "/work/x", "dev")
    assert [type(draft.payload) for draft in found] == [Notification, User, User, ToolCall, ToolResult]
    assert found[-1].payload == ToolResult("c1", "a\n", Outcome.OK, OutcomeSource.STRUCTURE, 0, 500)


# --- the session ---


def test_the_first_session_meta_wins_over_the_parents() -> None:
    state = LogState()
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "agent_nickname": "Ohm", "agent_role": "explorer"}}}
    first = line("session_meta", id="c", cwd="/c", source=spawn, forked_from_id="p", base_instructions={"text": "LONG"})
    found = read(first, line("session_meta", id="p", cwd="/p", source="cli"), state=state)
    facts = state.sessions[""]
    assert (facts.id, facts.cwd, facts.kind, facts.parent_id, facts.agent_type) == (
        "c", "/c", "subagent", "p", "explorer",
    )  # fmt: skip
    assert [draft.payload.kind for draft in found if isinstance(draft.payload, Notification)] == ["session_meta"] * 2
    assert "LONG" not in str(found)


def test_a_resumed_session_and_another_sessions_meta_further_down_make_no_fork() -> None:
    state = LogState()
    meta = line("session_meta", id="a", cwd="/a", cli_version="0.50.0")
    read(meta, line("session_meta", id="a", cwd="/b", cli_version="0.51.0"), state=state)
    facts = state.sessions[""]
    assert (facts.kind, facts.cwd, facts.version) == ("main", "/a", "0.51.0")
    state = LogState()
    read(line("session_meta", id="a"), said("user", "hi"), line("session_meta", id="b", cwd="/b"), state=state)
    assert (state.sessions[""].kind, state.sessions[""].parent_id, state.sessions[""].cwd) == ("main", None, None)


def test_only_this_threads_name_becomes_its_title() -> None:
    state = LogState()
    named = [("p", "Parent"), ("a", "Mine"), ("p", "Parent again")]
    lines = [event("thread_name_updated", thread_id=thread, thread_name=name) for thread, name in named]
    read(line("session_meta", id="a"), *lines, state=state)
    assert (state.sessions[""].title, state.sessions[""].title_rank) == ("Mine", 3)


# --- doubled streams ---


@pytest.mark.parametrize("event_first", [True, False])
def test_a_text_in_both_streams_is_one_event_whichever_comes_first(event_first: bool) -> None:
    pair = [event("user_message", message="do it\n"), said("user", "do it")]
    reply = [event("agent_message", message="done"), item("message", role="assistant", content="done")]
    lines = (pair + reply) if event_first else (pair[::-1] + reply[::-1])
    assert [type(payload) for payload in payloads(*lines)] == [User, Message]


def test_a_text_said_twice_is_two_events_in_one_stream_or_in_both() -> None:
    pair = [said("user", "again"), event("user_message", message="again")]
    assert payloads(*pair, *pair) == [User("again", UserKind.HUMAN)] * 2
    assert len(payloads(event("agent_message", message="ok"), event("agent_message", message="ok"))) == 2


def test_a_double_is_not_sought_for_ever() -> None:
    between = [event("task_started") for _ in range(100)]
    assert len(payloads(said("user", "ok"), *between, event("user_message", message="ok"))) == 2


def test_an_images_tags_and_an_ides_preface_do_not_hide_a_double() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    parts = [{"type": "input_text", "text": text} for text in ("<image name=[Image #1]>", "</image>", "look")]
    shown = item("message", role="user", content=[parts[0], picture, *parts[1:]])
    found = payloads(shown, event("user_message", message="look", local_images=["/tmp/a.png"]))
    assert found == [User("<image name=[Image #1]>\n[image: image/png, 3 bytes]\n</image>\nlook", UserKind.HUMAN)]
    whole = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nfix it"
    assert payloads(said("user", whole), event("user_message", message="fix it")) == [User(whole, UserKind.HUMAN)]


def test_summary_parts_are_doubled_by_one_event_each() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("**A**", "**B**")]
    thought = item("reasoning", summary=summary, encrypted_content="SECRET")
    events = [event("agent_reasoning", text="**A**"), event("agent_reasoning", text="**B**")]
    assert payloads(thought, *events) == [Reasoning("**A**\n\n**B**")]
    assert payloads(*events, thought) == [Reasoning("**A**"), Reasoning("**B**")]
    assert payloads(events[0], thought) == [Reasoning("**A**"), Reasoning("**B**")]


def test_turn_items_of_paginated_threads_are_texts_of_the_screen() -> None:
    def completed(**turn_item: Any) -> Record:
        return event("item_completed", item=turn_item)

    found = payloads(
        said("user", "hi"),
        completed(type="UserMessage", content=[{"type": "text", "text": "hi"}]),
        completed(type="AgentMessage", content=[{"type": "Text", "text": "hello"}]),
        completed(type="Reasoning", summary_text=["why"], raw_content=[]),
    )
    assert found == [User("hi", UserKind.HUMAN), Message("hello"), Reasoning("why")]


def test_encrypted_reasoning_is_skipped() -> None:
    state = LogState()
    assert read(item("reasoning", summary=[], encrypted_content="SECRET"), state=state) == []
    assert state.skipped == ["reasoning/encrypted"]


# --- kinds of user texts ---


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<environment_context>\n</environment_context>", UserKind.INJECTED),
        ("# AGENTS.md instructions for /x\n", UserKind.INJECTED),
        ("<INSTRUCTIONS>", UserKind.INJECTED),
        ("<turn_aborted>\nThe user interrupted", UserKind.INTERRUPTION),
        ("<subagent_notification>\n{}", UserKind.NOTIFICATION),
        ("<user_shell_command>\nls", UserKind.COMMAND),
        ("<user_action>\n  <context>", UserKind.COMMAND),
        ("<app-context>Two windows</app-context>", UserKind.INJECTED),
        ("<div> does not centre", UserKind.HUMAN),
    ],
)
def test_texts_in_the_users_role_are_told_apart(text: str, kind: UserKind) -> None:
    assert payloads(said("user", text)) == [User(text, kind)]


def test_a_review_repeats_its_prompt_within_one_stream() -> None:
    """The thread that asked for it echoes what the reviewer is told."""
    prompt = event("user_message", message="Review the changes.")
    review = [event("entered_review_mode", target={}), prompt, prompt, said("user", "Review the changes.")]
    action = said("user", "<user_action>\n  <action>review</action>")
    lines = [*review, action, event("exited_review_mode"), *review, event("exited_review_mode"), prompt, prompt]
    assert [user.kind for user in only(User, payloads(*lines))] == [
        UserKind.TASK, UserKind.COMMAND, UserKind.TASK, UserKind.HUMAN, UserKind.HUMAN,
    ]  # fmt: skip


def test_an_injected_part_is_told_from_the_prompt_beside_it_and_so_is_a_developers_text() -> None:
    found = payloads(said("user", "<environment_context>x", "do it"), event("user_message", message="do it"))
    assert found == [User("<environment_context>x", UserKind.INJECTED), User("do it", UserKind.HUMAN)]
    assert payloads(said("developer", "rules")) == [User("rules", UserKind.INJECTED)]


@pytest.mark.parametrize("source", ["<source_thread_id>p</source_thread_id>\n  ", ""])
def test_what_another_thread_delegates_is_a_task_if_the_thread_begins_with_it(source: str) -> None:
    asked = f"<codex_delegation>\n  {source}<input>Test it</input>\n</codex_delegation>"
    meta, state = line("session_meta", id="r"), LogState()
    twice = [said("user", asked), event("user_message", message=asked)]
    assert [draft.payload for draft in read(meta, *twice, state=state)[1:]] == [User("Test it", UserKind.TASK)]
    assert (state.sessions[""].kind, state.sessions[""].parent_id) == ("subagent", "p" if source else None)
    assert payloads(meta, said("user", "Go"), *twice)[2:] == [User("Test it", UserKind.NOTIFICATION)]


def test_prompts_and_mail_in_a_subagents_log_are_tasks() -> None:
    meta = line("session_meta", id="r", thread_source="subagent", agent_path="/root/a")
    parts = [{"type": "input_text", "text": "review"}, {"type": "encrypted_content", "encrypted_content": "SECRET"}]
    mail = item("agent_message", author="/root", recipient="/root/a", content=parts)
    found = payloads(meta, event("user_message", message="go"), mail)
    assert found[1:] == [User("go", UserKind.TASK), User("review", UserKind.TASK)]


# --- tools ---


def test_arguments_are_decoded_and_broken_ones_kept() -> None:
    """Custom tools among them."""
    broken = item("function_call", name="shell", arguments='{"cmd":', call_id="b")
    patch = item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c")
    spaced = item("function_call", name="search", namespace="mcp__hub", arguments="{}", call_id="d")
    assert payloads(call("a"), broken, patch, spaced) == [
        ToolCall("a", "exec_command", {"cmd": "ls"}),
        ToolCall("b", "shell", '{"cmd":'),
        ToolCall("c", "apply_patch", "*** Begin Patch"),
        ToolCall("d", "mcp__hub__search", {}),
    ]


def test_calls_and_results_without_a_type_are_known_by_their_fields() -> None:
    asked = line("response_item", name="shell", call_id="a", arguments="{}", model="gpt-4", cwd="/x")
    usage = {"last_token_usage": {"input_tokens": 5, "output_tokens": 2}}
    answered = line("response_item", call_id="a", status="completed", output="text", info=usage)
    found = payloads(asked, answered)
    assert found[:2] == [ToolCall("a", "shell", {}), ToolResult("a", "text", Outcome.OK, OutcomeSource.STRUCTURE)]
    assert found[2] == TokenUsage(None, "gpt-4", 5, None, None, None, 2, None)


STRUCTURE, TEXT = OutcomeSource.STRUCTURE, OutcomeSource.TEXT


@pytest.mark.parametrize(
    ("shown", "outcome", "source", "exit_code"),
    [
        ('{"output":"x","metadata":{"exit_code":127,"duration_seconds":0.1}}', Outcome.FAILED, STRUCTURE, 127),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nExit code: 3", Outcome.OK, STRUCTURE, 0),
        ("Exit code: 1\nWall time: 1.5 seconds\nTotal output lines: 9\nOutput:\n", Outcome.FAILED, STRUCTURE, 1),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n", Outcome.FAILED, STRUCTURE, 2),
        (
            "Command: sh 'a\nb'\nChunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\n",
            Outcome.OK,
            STRUCTURE,
            0,
        ),
        ("Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 7\n", Outcome.RUNNING, STRUCTURE, None),
        ("Wall time: 0.1 seconds\nOutput:\nProcess exited with code 1", Outcome.UNKNOWN, None, None),
        ("Wall time: 3.1 seconds\naborted by user", Outcome.INTERRUPTED, TEXT, None),
        ("Script completed\nWall time 0.1 seconds\nOutput:\n{}", Outcome.OK, STRUCTURE, None),
        ("Script failed\nWall time 0.1 seconds\nOutput:\nboom", Outcome.FAILED, STRUCTURE, None),
        ("Script running with cell ID 4\nWall time 10 seconds", Outcome.RUNNING, STRUCTURE, None),
        ("apply_patch verification failed: no such line", Outcome.FAILED, TEXT, None),
        ("unsupported call: nothing", Outcome.FAILED, TEXT, None),
        ("exec command rejected by user", Outcome.REJECTED, TEXT, None),
        ("Command blocked by PreToolUse hook: use rg. Command: grep x", Outcome.REJECTED, TEXT, None),
        ("error: Failed to find expected lines in a.py:\nx", Outcome.FAILED, TEXT, None),
        ('exec_command failed for `rm`: CreateProcess { message: "Rejected(x)" }', Outcome.REJECTED, TEXT, None),
        ("exec_command failed for `rm`: No such file", Outcome.FAILED, TEXT, None),
        ("the log says: Process exited with code 1", Outcome.UNKNOWN, None, None),
        ("", Outcome.UNKNOWN, None, None),
        ({"content": "bad", "success": False}, Outcome.FAILED, STRUCTURE, None),
        ({"content": "fine", "success": True}, Outcome.OK, STRUCTURE, None),
    ],
)
def test_the_outcome_is_read_where_the_harness_wrote_it(
    shown: Any, outcome: Outcome, source: OutcomeSource | None, exit_code: int | None
) -> None:
    reading = read_output(shown)
    assert (reading.outcome, reading.source, reading.exit_code) == (outcome, source, exit_code)


def test_an_output_of_parts_is_one_text_with_counted_images() -> None:
    parts = [
        {"type": "input_text", "text": "Script completed\nWall time 0.4 seconds\nOutput:\n"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,AAAAAAAA"},
    ]
    reading = read_output(parts)
    assert reading.text == "Script completed\nWall time 0.4 seconds\nOutput:\n\n[image: image/jpeg, 6 bytes]"
    assert (reading.outcome, reading.duration_ms) == (Outcome.OK, 400)


def test_an_end_event_before_the_output_gives_it_its_outcome_and_after_it_adds_nothing() -> None:
    end = event("exec_command_end", call_id="a", exit_code=3, status="failed", duration={"secs": 1, "nanos": 5_000_000})
    before = payloads(call("a"), end, output("a", "plain"))
    after = payloads(call("a"), output("a", "plain"), end)
    assert before[1] == ToolResult("a", "plain", Outcome.FAILED, OutcomeSource.STRUCTURE, 3, 1005)
    assert after == [before[0], ToolResult("a", "plain", Outcome.UNKNOWN)]


def test_a_declined_command_is_rejected_and_a_failed_mcp_call_failed() -> None:
    declined = event("exec_command_end", call_id="a", exit_code=-1, status="declined")
    wrong = event("mcp_tool_call_end", call_id="b", result={"Ok": {"content": [], "isError": True}})
    found = payloads(call("a"), call("b"), declined, wrong, output("a", "no"), output("b", "no"))
    assert [result.outcome for result in only(ToolResult, found)] == [Outcome.REJECTED, Outcome.FAILED]


def test_where_only_events_tell_of_tool_runs_they_are_calls_and_results() -> None:
    patch = event("patch_apply_end", call_id="p", success=False, stderr="no", changes={"a": {}})
    ended = event("exec_command_end", call_id="e", exit_code=0, command=["ls"], cwd="/x", aggregated_output="a\n")
    asked = {"server": "hub", "tool": "find", "arguments": {"q": 1}}
    mcp = event("mcp_tool_call_end", call_id="m", invocation=asked, result={"Err": "gone"})
    item = {
        "type": "McpToolCall",
        "id": "f",
        "server": "hub",
        "tool": "find",
        "arguments": {"q": 1},
        "status": "failed",
    }
    failed = event("item_completed", item={**item, "error": {"message": "gone"}})
    assert payloads(patch, ended, mcp, failed) == [
        ToolCall("p", "apply_patch", {"a": {}}),
        ToolResult("p", "no", Outcome.FAILED, OutcomeSource.STRUCTURE),
        ToolCall("e", "exec_command", {"command": ["ls"], "cwd": "/x"}),
        ToolResult("e", "a\n", Outcome.OK, OutcomeSource.STRUCTURE, 0),
        ToolCall("m", "hub__find", {"q": 1}),
        ToolResult("m", "gone", Outcome.FAILED, OutcomeSource.STRUCTURE),
        ToolCall("f", "hub__find", {"q": 1}),
        ToolResult("f", "gone", Outcome.FAILED, OutcomeSource.STRUCTURE),
    ]


def test_a_call_that_an_event_told_first_is_not_told_again_by_its_item() -> None:
    end = event("exec_command_end", call_id="a", exit_code=0, aggregated_output="x")
    searched = event("web_search_end", call_id="ws_1", query="q", action={"type": "search", "query": "q"})
    search_item = item("web_search_call", status="completed", action={"type": "search", "query": "q"})
    assert len(payloads(end, call("a"), output("a", "x"))) == 2
    assert payloads(searched, search_item) == [ToolCall("ws_1", "web_search", {"type": "search", "query": "q"})]


def test_a_generated_picture_is_a_call_and_a_placeholder() -> None:
    state = LogState()
    drawn = item("image_generation_call", id="ig", status="completed", revised_prompt="a cat", result="AAAAAAAA")
    assert [draft.payload for draft in read(drawn, state=state)] == [
        ToolCall("ig", "image_generation", "a cat"),
        ToolResult("ig", "[image: image/png, 6 bytes]", Outcome.OK, OutcomeSource.STRUCTURE),
    ]
    assert state.unknown == ["usage/image_generation"]


def test_other_activity_of_an_agent_starts_none() -> None:
    activity = event("sub_agent_activity", event_id="a", agent_thread_id="t-9", kind="interacted")
    found = only(ToolResult, payloads(call("a", "send_message"), activity, output("a", "")))
    assert [result.agent_id for result in found] == [None]


# --- scripts of code mode ---


def script(call_id: str, source: str) -> Record:
    return item("custom_tool_call", name="exec", input=source, call_id=call_id)


def completed(call_id: str, *printed: str, end: str = "completed") -> Record:
    texts = [f"Script {end}\nWall time 0.1 seconds\nOutput:\n", *printed]
    parts = [{"type": "input_text", "text": text} for text in texts]
    return item("custom_tool_call_output", call_id=call_id, output=parts)


RUN = "const r = await tools.exec_command({cmd:'make'}); "


@pytest.mark.parametrize(
    ("source", "printed", "outcome"),
    [
        ("text(r.output)", "zsh:1: command not found: tidemark\n", Outcome.FAILED),
        ("text(r.output)", "bash: line 1: tidemark: command not found", Outcome.FAILED),
        ("text(`${r.output}\\nexit=${r.exit_code}`)", "low\n\nexit=2", Outcome.FAILED),
        ("text(`${r.output} exit=${r.exit_code}`)", "low exit=0", Outcome.OK),
        ("text(`\\n---EXIT:${r.exit_code}---\\n`)", "\n---EXIT:1---\n", Outcome.FAILED),
        ("text('code ' + r.exit_code)", "code 3", Outcome.FAILED),
        ("text(JSON.stringify({exit: r.exit_code}))", '{"exit":1}', Outcome.FAILED),
        ("text(r.output)", "error: cannot open the tide table\n", Outcome.UNKNOWN),
        ("text(r.output)", "a gauge that prints exit=127 is `zsh:1: command not found: x`", Outcome.OK),
        ("text(r.output)", "first-exit=0\nsecond-exit=128\n", Outcome.OK),
    ],
)
def test_a_completed_script_failed_if_it_shows_that_a_command_did(source: str, printed: str, outcome: Outcome) -> None:
    found = only(ToolResult, payloads(script("a", RUN + source), completed("a", printed)))
    assert [result.outcome for result in found] == [outcome]
    wait = item("function_call", name="wait", arguments='{"cell_id":"3"}', call_id="w")
    lines = [script("a", RUN + source), completed("a", end="running with cell ID 3"), wait, completed("w", printed)]
    assert settled(*lines) == [("a", outcome, AT)]


@pytest.mark.parametrize("paginated", [True, False])
def test_a_command_within_a_script_is_a_call_and_a_patch_says_what_the_script_wrote(paginated: bool) -> None:
    ran = {"id": "e1", "command": ["make"], "status": "failed", "exit_code": 2, "aggregated_output": "3 gauges failed"}
    patched = {"id": "exec-1", "changes": {"/work/a.py": {"type": "add"}}, "status": "completed"}
    if paginated:
        files: Any = [{"path": "/work/a.py", "kind": "add"}]
        events = [event("item_completed", item={"type": "CommandExecution"} | ran),
                  event("item_completed", item={"type": "FileChange"} | patched | {"changes": files})]  # fmt: skip
    else:
        events = [event("exec_command_end", **ran), event("patch_apply_end", **patched)]
    found = read(script("a", "tools.apply_patch(`*** Add File: ${path}`)"), *events, completed("a", "done"))
    assert [draft.payload for draft in found][1:3] == [
        ToolCall("e1", "exec_command", {"command": ["make"]}),
        ToolResult("e1", "3 gauges failed", Outcome.FAILED, OutcomeSource.STRUCTURE, 2),
    ]
    assert [type(draft.payload) for draft in found[3:]] == [ToolResult]
    assert found[-1].files == {"/work/a.py": "write"}
    assert read(script("a", ""), completed("a", end="failed"))[-1].files == {}
    assert len(payloads(call("a"), output("a", "x"), *events)) == 2


# --- executions that go on ---

RUNS = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 41\nOutput:\n"


def ended(code: int) -> str:
    return f"Chunk ID: 2\nWall time: 9.0 seconds\nProcess exited with code {code}\nOutput:\n"


def polls(call_id: str, session: int, shown: str) -> list[Record]:
    asked = json.dumps({"session_id": session, "chars": ""})
    return [item("function_call", name="write_stdin", arguments=asked, call_id=call_id), output(call_id, shown)]


def settled(*lines: Record) -> list[tuple[str, Outcome, int | None]]:
    return [tuple(said)[:3] for said in heard(*lines) if isinstance(said, Settlement)]


AT = 1767225600500


@pytest.mark.parametrize(("code", "outcome"), [(0, Outcome.OK), (3, Outcome.FAILED)])
def test_the_end_of_a_process_settles_the_call_that_started_it(code: int, outcome: Outcome) -> None:
    later = [*polls("q", 41, ended(code)), *polls("r", 41, ended(0))]
    assert settled(call("a"), output("a", RUNS), *polls("p", 41, RUNS), *later) == [("a", outcome, AT)]


def test_a_poll_of_another_process_or_one_that_fails_itself_settles_nothing() -> None:
    started = [call("a"), output("a", RUNS)]
    assert settled(*started, *polls("p", 7, ended(0))) == []
    assert settled(*started, *polls("p", 41, "write_stdin failed: Unknown process id 41")) == []
    assert settled(*started, call("b"), output("b", ended(0))) == []


GOES_ON = '{"chunk_id":"5c","wall_time_seconds":1.001,"session_id":%d,"output":""}'
HAS_ENDED = '{"chunk_id":"6d","wall_time_seconds":0.2,"exit_code":%d,"output":"ok"}'
ASKS = "const r = await tools.write_stdin({ session_id: 41, chars: '' }); text(JSON.stringify(r))"


@pytest.mark.parametrize(("code", "outcome"), [(0, Outcome.OK), (3, Outcome.FAILED)])
def test_a_command_that_outlives_its_script_is_settled_by_the_script_that_asks_for_it(
    code: int, outcome: Outcome
) -> None:
    started = [script("a", RUN + "text(JSON.stringify(r))"), completed("a", GOES_ON % 41)]
    assert [result.outcome for result in only(ToolResult, payloads(*started))] == [Outcome.RUNNING]
    asked = [script("p", ASKS), completed("p", GOES_ON % 41), script("q", ASKS)]
    assert settled(*started, *asked, completed("q", HAS_ENDED % code)) == [("a", outcome, AT)]
    waits = item("function_call", name="wait", arguments='{"cell_id":"3"}', call_id="w")
    asked += [completed("q", end="running with cell ID 3"), waits, completed("w", HAS_ENDED % code)]
    assert settled(*started, *asked) == [("q", Outcome.OK, AT), ("a", outcome, AT)]
    ends = [
        settled(*started, *asked[:4], waits, completed("w", end=end)) for end in ("failed", "terminated", "running")
    ]
    assert [found[0][:2] if found else None for found in ends] == [
        ("q", Outcome.FAILED),
        ("q", Outcome.INTERRUPTED),
        None,
    ]


def test_commands_of_one_script_end_one_by_one_and_one_that_fails_fails_it() -> None:
    started = [script("a", RUN + RUN), completed("a", GOES_ON % 41, GOES_ON % 42)]
    both = script("p", ASKS + "tools.write_stdin({session_id: 42})")
    assert settled(*started, both, completed("p", HAS_ENDED % 0, GOES_ON % 42)) == []
    assert settled(*started, both, completed("p", GOES_ON % 41, HAS_ENDED % 1)) == [("a", Outcome.FAILED, AT)]
    later = [*polls("q", 42, ended(0))]
    assert settled(*started, both, completed("p", HAS_ENDED % 0, GOES_ON % 42), *later) == [("a", Outcome.OK, AT)]


@pytest.mark.parametrize(
    ("shows", "printed"),
    [("text(`${r.output} exit=${r.exit_code}`)", " exit=undefined"), ("text(r.output)", "compiling\n")],
)
def test_the_end_of_a_script_that_waited_as_long_as_for_its_command_is_unknown(shows: str, printed: str) -> None:
    run = "const r = await tools.exec_command({cmd:'make', yield_time_ms: 100}); "
    found = only(ToolResult, payloads(script("a", run + shows), completed("a", printed)))
    assert [result.outcome for result in found] == [Outcome.UNKNOWN]


def test_an_end_event_behind_the_output_of_a_running_process_settles_it() -> None:
    end = event("exec_command_end", call_id="a", exit_code=1, status="failed")
    assert settled(call("a"), output("a", RUNS), end) == [("a", Outcome.FAILED, AT)]
    assert settled(call("a"), output("a", RUNS), end, *polls("q", 41, ended(1))) == [("a", Outcome.FAILED, AT)]
    assert settled(call("a"), output("a", "plain"), end) == []
    assert settled(call("a"), output("a", RUNS), event("exec_command_end", call_id="a")) == []


def test_one_response_is_one_step_and_a_result_and_late_tokens_join_it() -> None:
    thought = item("reasoning", summary=[{"text": "hm"}])
    found = read(thought, call("a"), call("b"), tokens(used(10, 0, 1)), output("a"), output("b"), call("c"))
    assert [draft.step for draft in found] == ["s1", "s1", "s1", "s1", "s1", "s1", "s2"]
    found = read(call("a"), output("a"), tokens(used(10, 0, 1)), call("b"), output("b"), tokens(used(20, 0, 2)))
    assert [draft.step for draft in found] == ["s1"] * 3 + ["s2"] * 3


# --- tokens ---


def usage(*lines: Record) -> list[tuple[int | None, int | None, int | None]]:
    found = only(TokenUsage, payloads(*lines))
    return [(each.input_tokens, each.cache_read_tokens, each.output_tokens) for each in found]


def test_a_request_is_what_the_total_grew_by() -> None:
    """Totals are never added up, and what was cached is inside the input."""
    assert usage(tokens(used(100, 40, 10)), tokens(used(250, 140, 15))) == [(60, 40, 10), (50, 100, 5)]


def test_repeated_totals_rate_limits_and_estimates_after_a_compaction_are_skipped() -> None:
    total = used(100, 0, 10)
    state = LogState()
    lines = [tokens(total, total), tokens(total, total), tokens(total, used(0, 0, 0)), event("token_count", info=None)]
    found = [list(codex.drafts(each, state)) for each in lines]
    assert [len(each) for each in found] == [1, 0, 0, 0]
    assert state.skipped == ["token_count/repeated", "token_count/repeated", "token_count/rate_limits"]


@pytest.mark.parametrize("more", [used(30, 10, 3), used(4000, 10, 300)])
def test_a_total_that_is_the_last_request_starts_again(more: Record) -> None:
    """Also where that request is larger than all before it."""
    assert usage(tokens(used(900, 0, 90)), tokens(more, more)) == [(900, 0, 90), counted(more)]
    assert usage(tokens(used(900, 0, 90)), tokens(used(30, 10, 3), used(20, 10, 2))) == [(900, 0, 90), (10, 10, 2)]


def test_a_figure_that_shrinks_alone_grew_by_nothing_and_one_that_is_missing_stays_unknown() -> None:
    assert usage(tokens(used(900, 500, 90)), tokens(used(950, 400, 95))) == [(400, 500, 90), (50, 0, 5)]
    assert usage(tokens({"output_tokens": 5}), tokens({"output_tokens": 9})) == [(None, None, 5), (None, None, 4)]


def counted(one: Record) -> tuple[int, int, int]:
    return one["input_tokens"] - one["cached_input_tokens"], one["cached_input_tokens"], one["output_tokens"]


def test_a_request_without_a_total_counts_once_a_step() -> None:
    """Its figures are repeated as well."""
    once = tokens(None, used(20, 0, 2))
    assert usage(call("a"), once, once, output("a"), call("b"), once) == [(20, 0, 2), (20, 0, 2)]


def test_a_record_counts_once_and_so_does_that_of_a_compaction_which_no_total_has() -> None:
    def recorded(response: str, usage: Record) -> Record:
        return line("token_usage_record", response_id=response, usage=usage)

    first, last, compaction = used(50, 20, 5), used(20, 0, 2), recorded("c", used(9, 0, 1))
    lines = [recorded("a", first), tokens(first), compaction, line("compacted", compaction_response_id="c")]
    lines += [tokens(used(70, 20, 7), last), recorded("b", last), recorded("b", last), tokens(used(80, 20, 8))]
    assert usage(*lines) == [(30, 20, 5), (9, 0, 1), (20, 0, 2), (10, 0, 1)]


def test_a_compaction_without_figures_makes_the_total_inexact() -> None:
    """Its record may stand in it alone; older versions count its request, in which nothing is said."""
    mine, other = ({"response_id": name, "usage": used(9, 0, 1)} for name in ("c", "d"))
    said, first = item("message", role="assistant", content="a"), tokens(used(50, 20, 5))
    for before, latest, figures, unknown in (
        ([said, first], {}, [(30, 20, 5)], ["usage/compaction"]),
        ([said, first], other, [(30, 20, 5)], ["usage/compaction"]),
        ([said, first], mine, [(30, 20, 5), (9, 0, 1)], []),
        ([said, first, tokens(used(60, 20, 6))], {}, [(30, 20, 5), (10, 0, 1)], []),
    ):
        state = LogState()
        ended = line("compacted", compaction_response_id="c", latest_token_usage_record=latest)
        found = only(TokenUsage, [draft.payload for draft in read(*before, ended, state=state)])
        assert [(each.input_tokens, each.cache_read_tokens, each.output_tokens) for each in found] == figures
        assert state.unknown == unknown


def test_the_total_of_a_review_that_a_log_repeats_is_told_from_its_own() -> None:
    review, own = [tokens(used(30, 0, 3), used(30, 0, 3)), tokens(used(80, 0, 8), used(50, 0, 5))], used(220, 0, 22)
    after = [tokens(own, used(120, 0, 12)), tokens(used(350, 0, 35), used(130, 0, 13))]
    assert usage(tokens(own), *review, review[-1], *after) == [(220, 0, 22), (30, 0, 3), (50, 0, 5), (130, 0, 13)]


def tier(name: str | None) -> Record:
    return event("thread_settings_applied", thread_settings={"model": "gpt-5.5", "service_tier": name})


def test_a_fast_turn_is_fast_from_the_turn_after_the_setting_on() -> None:
    lines = [
        tokens(used(10, 0, 1)), tier("priority"), tokens(used(20, 0, 2)), event("task_started"),
        tokens(used(30, 0, 3)), tier(None), event("task_started"), tokens(used(40, 0, 4)),
        line("turn_context", service_tier="fast"), tokens(used(50, 0, 5)),
        line("turn_context", service_tier="default"), tokens(used(60, 0, 6)),
        line("token_usage_record", response_id="r", usage=used(1, 0, 1), service_tier="priority"),
        line("token_usage_record", response_id="s", usage=used(1, 0, 1), service_tier="flex", model="o3"),
        *(item("web_search_call", action={"type": kind, "query": "q"}) for kind in ("search", "open_page")),
        tokens(used(70, 0, 7)),
    ]  # fmt: skip
    found = only(TokenUsage, payloads(*lines))
    assert [each.speed for each in found] == [None, None, "fast", None, "fast", None, "fast", "flex", "flex 1_searches"]
    assert [each.model for each in found[-3:-1]] == [None, "o3"]


def test_tokens_carry_the_model_the_window_and_the_cache_writes() -> None:
    total = used(100, 40, 10) | {"cache_write_input_tokens": 25, "reasoning_output_tokens": 4}
    found = payloads(line("turn_context", model="gpt-5.5"), tokens(total))
    assert found == [TokenUsage(None, "gpt-5.5", 35, 25, None, 40, 10, 4, context_window=1000)]
    count = tokens(used(100, 40, 10))
    count["payload"]["info"]["model"] = "gpt-5.6-luna"
    assert [one.model for one in payloads(count) if isinstance(one, TokenUsage)] == ["gpt-5.6-luna"]


# --- the rest ---


def test_compactions_without_their_history_errors_and_interruptions_are_notifications() -> None:
    found = payloads(line("compacted", message="Summary", replacement_history=[{"content": "OLD"}] * 3))
    assert found == [Notification("compacted", "Summary\n[3 items of history replaced]")]
    found = payloads(event("error", error={"message": "limit"}), event("turn_aborted", reason="interrupted"))
    assert found == [Notification("error", "limit"), Notification("turn_aborted", "interrupted")]


def test_a_record_without_a_readable_time_has_none() -> None:
    assert read(said("user", "a"))[0].timestamp == 1767225600500
    assert read(said("user", "a") | {"timestamp": "soon"})[0].timestamp is None


def test_the_memory_stays_small() -> None:
    state = LogState()
    for number in range(3000):
        read(said("user", f"text {number}"), call(f"call_{number:020}"), state=state)
        read(event("exec_command_end", call_id=f"call_{number:020}", exit_code=0), state=state)
        state.skipped.clear()
    assert len(json.dumps(state.to_json())) < 40_000


@pytest.mark.parametrize(
    "header",
    [
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n",
        "Chunk ID: 0a1b2c\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\n",
        "Command: sh -c 'a\nb'\nChunk ID: 0a1b2c\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n",
    ],
)
def test_what_is_written_before_an_output_is_known(header: str) -> None:
    known = AGENTS["codex"].output_header
    assert known is not None and known.sub("", f"{header}no such gauge", count=1) == "no such gauge"
    text = "Command: none of this\nis a header\n" * 300
    assert known.sub("", text, count=1) == text
