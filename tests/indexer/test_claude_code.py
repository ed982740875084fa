"""Reading Claude Code's logs: sentences about single lines, laws over any line, and counts over real logs."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record, Said
from agtrace_indexer.providers.claude_code import parser as claude_code
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

SESSION = "5c0375b4-57a5-4f26-b12d-d022ee4e51b7"
MAIN_LOG = PurePath(f"projects/-home-ada-engine/{SESSION}.jsonl")
AGENT_LOG = PurePath(f"projects/-home-ada-engine/{SESSION}/subagents/agent-a1b2c3.jsonl")
NOON = "2026-07-01T12:00:00.000Z"
NOON_MS = 1782907200000
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA" * 50}}


def line(kind: str, **more: Any) -> Record:
    """A chain line as Claude Code writes it."""
    return {"type": kind, "uuid": "u1", "sessionId": SESSION, "timestamp": NOON, "isSidechain": False, **more}


def said(*content: Any, **more: Any) -> Record:
    """A user line; a single string stands by itself, anything else in a list of blocks."""
    single = len(content) == 1 and isinstance(content[0], str)
    return line("user", message={"role": "user", "content": content[0] if single else list(content)}, **more)


def answer(*content: Any, id: str = "msg_1", request: str | None = "req_1", **more: Any) -> Record:
    """An assistant line; `usage`, `model` and `stop_reason` belong to its message."""
    message: Record = {"id": id, "role": "assistant", "content": list(content)}
    message |= {key: more.pop(key) for key in ("usage", "model", "stop_reason") if key in more}
    return line("assistant", requestId=request, message=message, **more)


def words(text: str) -> Record:
    return {"type": "text", "text": text}


def result(content: Any, **more: Any) -> Record:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def usage(output: int, **more: int) -> Record:
    return {"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": output, **more}


def said_by(*lines: Record, path: PurePath = MAIN_LOG) -> tuple[list[Said], LogState]:
    """Read lines of one log; what a line skips and doesn't know stays in the state."""
    state = claude_code.begin(path)
    return [said for record in lines for said in claude_code.drafts(record, state)], state


def read(*lines: Record, path: PurePath = MAIN_LOG) -> tuple[list[Draft], LogState]:
    """The events of some lines, and the state behind them."""
    made, state = said_by(*lines, path=path)
    return [draft for draft in made if isinstance(draft, Draft)], state


def payloads(*lines: Record, path: PurePath = MAIN_LOG) -> list[Payload]:
    return [draft.payload for draft in read(*lines, path=path)[0]]


def only(record: Record, path: PurePath = MAIN_LOG) -> Payload:
    (payload,) = payloads(record, path=path)
    return payload


def only_result(record: Record) -> ToolResult:
    payload = only(record)
    assert isinstance(payload, ToolResult)
    return payload


def usages(*lines: Record) -> list[tuple[str | None, TokenUsage]]:
    return [(draft.key, draft.payload) for draft in read(*lines)[0] if isinstance(draft.payload, TokenUsage)]


# Whose log it is


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"type": ["user"]},
        {"type": "started", "key": "v2:hash0", "agentId": "ag000001"},
        {"type": "result", "key": "v2:hash0", "agentId": "ag000001", "result": {}},
        {"display": "hello", "pastedContents": {}, "timestamp": 1782907200000, "project": "/home/ada"},
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "parts": [{"text": "qwen"}]}},
        {"type": "message", "id": "m1", "timestamp": NOON, "message": {"role": "user", "content": "droid"}},
        {"role": "user", "message": {"content": [{"type": "text", "text": "cursor"}]}},
        {"type": "system", "subtype": "init", "sessionId": "s", "timestamp": 1767812640310, "cwd": "/tmp"},
        {"type": "response_item", "timestamp": NOON, "payload": {"type": "message", "role": "user"}},
        {"type": "user", "id": "u1", "timestamp": NOON, "content": "gemini"},
    ],
)
def test_lines_of_other_files_are_not(record: Record) -> None:
    assert not claude_code.recognizes(record)


def test_a_downloaded_session_is_one_document_of_lines() -> None:
    assert claude_code.unroll({"loglines": [said("hello"), "junk"]}) == [said("hello")]


@pytest.mark.parametrize("document", [None, [], {}, "x", {"loglines": 3}, {"loglines": [{"type": "x"}]}, [said("a")]])
def test_no_other_document_is_unrolled(document: Any) -> None:
    assert claude_code.unroll(document) is None


# Sessions and threads


def test_a_uuid_in_the_name_is_the_session_whatever_the_lines_say() -> None:
    _, state = read(said("hi", sessionId="of-the-origin"), said("hi", isSidechain=True, agentId="a9"))
    assert (state.sessions[""].id, state.sessions[""].kind, state.sessions[""].parent_id) == (SESSION, "main", None)


def test_any_other_name_leaves_it_to_the_first_line_with_a_session() -> None:
    _, state = read({"type": "mode", "mode": "normal", "sessionId": "s1"}, said("hi"), path=PurePath("copy.jsonl"))
    assert state.sessions[""].id == "s1"


def test_a_renamed_subagent_is_known_by_its_first_chain_line() -> None:
    mode = {"type": "mode", "mode": "normal", "sessionId": SESSION}
    drafts, state = read(mode, said("go", isSidechain=True, agentId="a1"), path=PurePath("samples/agent.jsonl"))
    facts = state.sessions[""]
    assert (facts.id, facts.kind, facts.parent_id) == ("agent-a1", "subagent", SESSION)
    assert [(draft.thread, draft.payload) for draft in drafts] == [("", User("go", UserKind.TASK))]


def test_facts_come_from_the_lines_as_they_come() -> None:
    _, state = read(
        said("a", cwd="/engine", gitBranch="", version="2.1.1"),
        answer(words("b"), cwd="/engine/src", gitBranch="main", version="2.1.2", model="claude-opus-4-8"),
        answer(words("c"), gitBranch="next", model="<synthetic>"),
    )
    facts = state.sessions[""]
    assert (facts.cwd, facts.branch, facts.version, facts.model) == ("/engine", "main", "2.1.2", "claude-opus-4-8")


def test_the_best_title_wins_and_among_equals_the_last() -> None:
    _, state = read(
        {"type": "custom-title", "customTitle": "Old name", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "Engine", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "A machine is built", "sessionId": SESSION},
        {"type": "summary", "summary": "Machines", "leafUuid": "u"},
    )
    assert (state.sessions[""].title, state.sessions[""].title_rank) == ("Engine", 4)
    assert state.skipped == ["custom-title", "custom-title", "ai-title"]


def test_inline_sidechains_are_threads_found_by_their_parents() -> None:
    side: Record = {"isSidechain": True, "cwd": "/engine"}
    drafts, state = read(
        said("please delegate", uuid="m1"),
        said("first task", uuid="a1", parentUuid=None, **side),
        said("second task", uuid="b1", parentUuid=None, **side),
        answer(words("first"), uuid="a2", parentUuid="a1", **side),
        answer(words("second"), uuid="b2", parentUuid="b1", **side),
        answer(words("first again"), uuid="a3", parentUuid="a2", **side),
        answer(words("the newest's, as its parent is nowhere"), uuid="a4", parentUuid="lost", **side),
        answer(words("main"), uuid="m2", parentUuid="m1"),
    )
    threads = [draft.thread.removeprefix("sidechain-") for draft in drafts]
    assert threads == ["", "a1", "b1", "a1", "b1", "a1", "a1", ""]
    assert [draft.payload for draft in drafts[:2]] == [
        User("please delegate", UserKind.HUMAN),
        User("first task", UserKind.TASK),
    ]
    facts = state.sessions["sidechain-b1"]
    assert (facts.id, facts.kind, facts.parent_id, facts.cwd) == ("sidechain-b1", "subagent", SESSION, "/engine")


# Users


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Build an engine", UserKind.HUMAN),
        ("<div> is what I want centred", UserKind.HUMAN),
        ("<command-name>/status</command-name>\n<command-args></command-args>", UserKind.COMMAND),
        ("<command-message>init is running</command-message>", UserKind.COMMAND),
        ("<bash-input>make</bash-input>", UserKind.COMMAND),
        ("<bash-stdout>done</bash-stdout><bash-stderr></bash-stderr>", UserKind.INJECTED),
        ("<local-command-stdout>Bye!</local-command-stdout>", UserKind.INJECTED),
        ("<local-command-caveat>Caveat: ...</local-command-caveat>", UserKind.INJECTED),
        ("  <system-reminder>Be brief.</system-reminder>", UserKind.INJECTED),
        ("<ide_opened_file>The user opened engine.py</ide_opened_file>", UserKind.INJECTED),
        ("Caveat: The messages below were generated by the user while running local commands.", UserKind.INJECTED),
        ("<task-notification>\n<task-id>a1</task-id>", UserKind.NOTIFICATION),
        ('<teammate-message teammate_id="bob">done', UserKind.NOTIFICATION),
        ("<ci-monitor-event>red</ci-monitor-event>", UserKind.NOTIFICATION),
        ("<some_editor_context>Three files are open</some_editor_context>\n", UserKind.INJECTED),
        ("<my-button> isn't centred", UserKind.HUMAN),
        ("<div>Explain</div>", UserKind.HUMAN),
        ("<agent-notification>\n<agent-id>a1</agent-id>", UserKind.NOTIFICATION),
        ("Another Claude session sent a message:\n<teammate-message>", UserKind.NOTIFICATION),
        ("[Request interrupted by user for tool use]", UserKind.INTERRUPTION),
        ("This session is being continued from a previous conversation", UserKind.COMPACTION_SUMMARY),
    ],
)
def test_the_start_of_a_text_tells_who_speaks(text: str, kind: UserKind) -> None:
    assert only(said(text)) == User(text, kind)


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ({"isMeta": True}, UserKind.INJECTED),
        ({"isCompactSummary": True}, UserKind.COMPACTION_SUMMARY),
        ({"origin": {"kind": "task-notification"}}, UserKind.NOTIFICATION),
        ({"promptSource": "system"}, UserKind.INJECTED),
        ({"origin": {"kind": "human"}, "promptSource": "typed", "isMeta": False}, UserKind.HUMAN),
        ({"origin": {"kind": "human"}, "message": {"content": "<my-button>Some text</my-button>"}}, UserKind.HUMAN),
        ({"turnOrigin": "human", "message": {"content": "<my-button>Some text</my-button>"}}, UserKind.HUMAN),
        ({"turnOrigin": "sdk", "promptSource": "sdk"}, UserKind.HUMAN),
        ({"turnOrigin": "task_notification"}, UserKind.NOTIFICATION),
        ({"turnOrigin": "peer", "origin": {"kind": "peer"}}, UserKind.NOTIFICATION),
        ({"turnOrigin": "scheduled"}, UserKind.INJECTED),
        ({"isMeta": "yes", "origin": "human", "turnOrigin": 3}, UserKind.HUMAN),
    ],
)
def test_flags_of_the_line_tell_more_than_its_text(flags: Record, kind: UserKind) -> None:
    record = {**said("Some text"), **flags}
    assert only(record) == User(record["message"]["content"], kind)


def test_in_a_subagent_the_parent_speaks() -> None:
    assert payloads(
        said("Find the leak"),
        said("injected", isMeta=True),
        said("<system-reminder>x</system-reminder>"),
        said('<teammate-message teammate_id="lead">Find another</teammate-message>'),
        said("[Request interrupted by user]"),
        path=AGENT_LOG,
    ) == [
        User("Find the leak", UserKind.TASK),
        User("injected", UserKind.INJECTED),
        User("<system-reminder>x</system-reminder>", UserKind.INJECTED),
        User('<teammate-message teammate_id="lead">', UserKind.INJECTED),
        User("Find another", UserKind.TASK),
        User("[Request interrupted by user]", UserKind.INTERRUPTION),
    ]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("tag", ["ide_opened_file", "ide_selection", "system_instruction"])
def test_an_envelope_before_a_prompt_leaves_the_prompt_human(apart: bool, tag: str) -> None:
    envelope, prompt = f"<{tag}>The user opened a.py</{tag}>", "Explain it"
    record = said(words(envelope), words(prompt)) if apart else said(f"{envelope}\n{prompt}")
    assert payloads(record) == [User(envelope, UserKind.INJECTED), User(prompt, UserKind.HUMAN)]


def test_texts_and_images_of_a_line_are_one_text() -> None:
    record = said(words("Like this:"), PICTURE, words("but green"), "please")
    assert only(record) == User("Like this:\n[image: image/png, 450 bytes]\nbut green\nplease", UserKind.HUMAN)


def test_a_line_may_hold_a_result_and_a_text() -> None:
    kinds = [type(payload) for payload in payloads(said(result("ok"), words("and now stop")))]
    assert kinds == [ToolResult, User]


def test_a_queued_prompt_is_the_users_and_a_queued_notification_is_not() -> None:
    notice = "<task-notification>done</task-notification>"
    assert payloads(
        line("attachment", attachment={"type": "queued_command", "commandMode": "prompt", "prompt": "and a test"}),
        line("attachment", attachment={"type": "queued_command", "prompt": [words("like"), PICTURE]}),
        line("attachment", attachment={"type": "queued_command", "prompt": notice}),
        line("attachment", attachment={"type": "queued_command", "commandMode": "task-notification", "prompt": "x"}),
    ) == [
        User("and a test", UserKind.HUMAN),
        User("like\n[image: image/png, 450 bytes]", UserKind.HUMAN),
        User(notice, UserKind.NOTIFICATION),
        User("x", UserKind.NOTIFICATION),
    ]


def test_what_is_queued_is_kept_and_what_happens_to_the_queue_is_not() -> None:
    drafts, state = read(
        {"type": "queue-operation", "operation": "enqueue", "content": "and a test", "timestamp": NOON},
        {"type": "queue-operation", "operation": "enqueue", "content": [words("/init")]},
        {"type": "queue-operation", "operation": "remove"},
    )
    assert [draft.payload for draft in drafts] == [
        Notification("queue-operation/enqueue", "and a test"),
        Notification("queue-operation/enqueue", "/init"),
    ]
    assert state.skipped == ["queue-operation/remove"]


# Responses


def test_the_blocks_of_a_response_share_its_step() -> None:
    drafts, _ = read(
        answer({"type": "thinking", "thinking": "", "signature": "x"}, {"type": "redacted_thinking", "data": "x"}),
        said(result("ok")),
        answer(words("Look:"), {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "a"}}),
    )
    assert [(draft.payload, draft.step) for draft in drafts if not isinstance(draft.payload, ToolResult)] == [
        (Reasoning(""), "msg_1"),
        (Reasoning(""), "msg_1"),
        (Message("Look:"), "msg_1"),
        (ToolCall("toolu_2", "Read", {"file_path": "a"}), "msg_1"),
    ]
    assert drafts[2].step is None
    assert {draft.timestamp for draft in drafts} == {NOON_MS}


def test_tools_that_run_at_the_api_are_calls_with_results() -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "engines"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [words("12 engines")]}
    assert payloads(answer(call, found)) == [
        ToolCall("srv_1", "web_search", {"query": "engines"}),
        ToolResult("srv_1", "12 engines", Outcome.OK, OutcomeSource.STRUCTURE),
    ]


ORCHESTRATE = (
    "<command-message>orchestrator is running…</command-message>\n<command-name>/orchestrator</command-name>\n"
    "<command-args>update @CLAUDE.md,\nthen stop</command-args>"
)
CHOOSE = (
    "<command-name>/model</command-name>\n            <command-message>model</command-message>\n"
    "            <command-args>opus</command-args>"
)


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([said(ORCHESTRATE), said("Thanks.")], "/orchestrator update @CLAUDE.md, then stop"),
        ([said(CHOOSE), said(ORCHESTRATE)], "/orchestrator update @CLAUDE.md, then stop"),
        ([said("Hello."), said(ORCHESTRATE)], None),
        ([said(CHOOSE), said("Hello.")], None),
        ([said(ORCHESTRATE.replace("update @CLAUDE.md,\nthen stop", ""))], None),
        ([said(ORCHESTRATE), line("summary", summary="Orchestrated")], "Orchestrated"),
        ([line("summary", summary="Orchestrated"), said(ORCHESTRATE)], "Orchestrated"),
    ],
)
def test_a_session_that_begins_with_a_prompting_command_is_called_by_it(lines: list[Record], title: str | None) -> None:
    assert read(*lines)[1].sessions[""].title == title


def test_a_failure_of_the_api_is_not_the_models_word() -> None:
    failure = answer(words("API Error: 529"), isApiErrorMessage=True, model="<synthetic>", usage=usage(0))
    assert only(failure) == Notification("api_error", "API Error: 529")


def test_words_that_claude_code_puts_in_the_models_mouth_cost_nothing_and_are_no_response() -> None:
    drafts, _ = read(answer(words("No response requested."), model="<synthetic>", usage=usage(0)))
    assert [(draft.payload, draft.step) for draft in drafts] == [(Message("No response requested."), None)]


# Tokens


@pytest.mark.parametrize(
    ("whole", "detail", "written"),
    [
        (420, {"ephemeral_1h_input_tokens": 400}, (20, 400)),
        (420, {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, (420, 0)),
        (0, {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 400}, (20, 400)),
        (3, {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 400}, (20, 400)),
        (420, "x", (420, None)),
    ],
)
def test_what_the_detail_of_cache_writes_leaves_open_is_short_lived(
    whole: int, detail: Any, written: tuple[int | None, int | None]
) -> None:
    figures = {**usage(57, cache_creation_input_tokens=whole), "cache_creation": detail}
    ((_, counted),) = usages(answer(words("x"), usage=figures))
    assert (counted.cache_creation_5m_tokens, counted.cache_creation_1h_tokens) == written


@pytest.mark.parametrize(
    ("speed", "cost", "known"),
    [
        ("standard", 0.5, (None, 0.5)),
        ("fast", 2, ("fast", 2.0)),
        (None, 0, (None, None)),
        (3, -1, (None, None)),
        ("fast", float("inf"), ("fast", None)),
        ("fast", "0.5", ("fast", None)),
    ],
)
def test_speed_and_cost_are_told_where_they_say_something(speed: Any, cost: Any, known: tuple[Any, ...]) -> None:
    ((_, counted),) = usages(answer(words("x"), usage={**usage(57), "speed": speed}, costUSD=cost))
    assert (counted.speed, counted.cost_usd) == known


def test_tokens_of_thinking_are_told_where_they_are_logged() -> None:
    ((_, counted),) = usages(answer(words("x"), usage={**usage(57), "output_tokens_details": {"thinking_tokens": 41}}))
    assert (counted.output_tokens, counted.reasoning_tokens) == (57, 41)


A, B = "claude-opus-4-8", "claude-fable-5"


def ran(output: int, model: str | None = None, **more: Any) -> Record:
    return {"type": "message", **usage(output), **({"model": model} if model else {}), **more}


@pytest.mark.parametrize(
    ("beside", "iterations", "counted", "unknown"),
    [
        (usage(57), [ran(57)], {A: (3, 57)}, 0),
        (usage(57), [ran(50), ran(7)], {A: (6, 57)}, 0),
        (usage(57), [ran(57), ran(9, B, type="advisor_message")], {A: (3, 57), B: (3, 9)}, 0),
        (usage(57), [ran(9, B), ran(57, A, type="fallback_message")], {A: (3, 57), B: (3, 9)}, 0),
        (usage(57), [ran(0, B), ran(57, A, type="fallback_message")], {A: (3, 57)}, 0),
        (usage(57), [ran(8, type="compaction"), ran(57)], {A: (6, 65)}, 0),
        (usage(66), [ran(57), ran(9, B)], {A: (3, 66), B: (3, 9)}, 1),
        (ran(66, input_tokens=6, cache_read_input_tokens=1800), [ran(57), ran(9, B)], {A: (3, 57), B: (3, 9)}, 1),
        (usage(57), [ran(9)], {A: (3, 57)}, 1),
        (usage(57), [ran(57, brand_new_tokens=3)], {A: (3, 57)}, 1),
        (usage(57), [ran(57), ran(9, type="oracle_message")], {A: (6, 66)}, 1),
        (usage(57), [ran(57), ran(9, type="advisor_message")], {A: (6, 66)}, 1),
    ],
)
def test_each_iteration_counts_for_its_own_model(
    beside: Record, iterations: list[Record], counted: dict[str, tuple[int, int]], unknown: int
) -> None:
    line = answer(words("x"), usage={**beside, "iterations": iterations}, model=A)
    drafts, state = read(line, line)
    told = [draft.payload for draft in drafts if isinstance(draft.payload, TokenUsage)]
    sums: dict[str | None, tuple[int, int]] = {}
    for one in told:
        before = sums.get(one.model, (0, 0))
        sums[one.model] = before[0] + (one.input_tokens or 0), before[1] + (one.output_tokens or 0)
    assert sums == counted
    assert bool(state.unknown) == bool(unknown)


@pytest.mark.parametrize(
    ("premium", "speed", "unknown"),
    [
        ({"inference_geo": "us", "speed": "fast"}, "fast us", []),
        ({"inference_geo": "not_available", "service_tier": "standard"}, None, []),
        ({"inference_geo": "eu"}, None, ["usage/inference_geo"]),
        ({"service_tier": "batch"}, None, ["usage/service_tier"]),
        ({"server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 3}}, None, []),
        ({"server_tool_use": {"web_search_requests": 50}, "speed": "fast"}, "fast 50_searches", []),
        ({"server_tool_use": {"code_execution_requests": 1}}, None, ["usage/server_tool_use.code_execution_requests"]),
    ],
)
def test_what_costs_more_is_a_speed_or_unknown(premium: Record, speed: str | None, unknown: list[str]) -> None:
    drafts, state = read(answer(words("x"), usage={**usage(57), **premium}))
    assert ([one.payload.speed for one in drafts if isinstance(one.payload, TokenUsage)], state.unknown) == (
        [speed],
        unknown,
    )


@pytest.mark.parametrize(
    ("version", "stop_reason", "complete"),
    [
        ("2.1.12", None, False),
        ("2.1.59", None, False),
        ("2.1.12", "tool_use", True),
        ("2.1.219", None, False),
        ("2.1.219", "end_turn", True),
        (None, None, True),
    ],
)
def test_a_response_that_never_stopped_is_incomplete(
    version: str | None, stop_reason: str | None, complete: bool
) -> None:
    ((_, counted),) = usages(answer(words("x"), usage=usage(1), stop_reason=stop_reason, version=version))
    assert counted.complete is complete


# Results


@pytest.mark.parametrize(
    ("text", "beside", "outcome", "source"),
    [
        ("Exit code 2\nno such file", "Error: Exit code 2", Outcome.FAILED, OutcomeSource.STRUCTURE),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "", Outcome.INTERRUPTED, OutcomeSource.TEXT),
        (
            *("<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>", ""),
            *(Outcome.INTERRUPTED, OutcomeSource.TEXT),
        ),
        ("The user doesn't want to proceed with this tool use.", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("The user doesn't want to take this action right now.", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("Permission to use Bash with command rm has been denied.", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("This command requires approval", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("cd in '/etc' was blocked. For security, Claude Code may only", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("Hook PreToolUse:Bash denied this tool", "", Outcome.REJECTED, OutcomeSource.TEXT),
        ("the ball was blocked. For security", "", Outcome.FAILED, OutcomeSource.STRUCTURE),
        ("No.", "User rejected tool use", Outcome.REJECTED, OutcomeSource.TEXT),
        ("[Request interrupted by user for tool use]", "", Outcome.INTERRUPTED, OutcomeSource.TEXT),
        ("killed", {"interrupted": True}, Outcome.INTERRUPTED, OutcomeSource.STRUCTURE),
    ],
)
def test_errors_are_failures_rejections_or_interruptions(
    text: str, beside: Any, outcome: Outcome, source: OutcomeSource
) -> None:
    found = only_result(said(result(text, is_error=True), toolUseResult=beside))
    assert (found.outcome, found.outcome_source) == (outcome, source)


def test_a_named_denial_needs_no_text() -> None:
    found = only_result(said(result("no", is_error=True), toolDenialKind="automode-unavailable"))
    assert (found.outcome, found.outcome_source) == (Outcome.REJECTED, OutcomeSource.STRUCTURE)


@pytest.mark.parametrize(
    "text", ["The user doesn't want to proceed is a line of this file", "Exit code 1 is in this file"]
)
def test_what_a_successful_tool_prints_is_no_error(text: str) -> None:
    found = only_result(said(result(text), toolUseResult={"stdout": text, "interrupted": False}))
    assert (found.outcome, found.exit_code) == (Outcome.OK, None)


def test_the_exit_code_stands_at_the_start_of_an_error() -> None:
    assert only_result(said(result("Exit code 128\nfatal: no", is_error=True))).exit_code == 128


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([words("one"), PICTURE, "two"], "one\n[image: image/png, 450 bytes]\ntwo"),
        ([{"type": "image", "data": "AAAA", "mimeType": "image/gif"}], "[image: image/gif, 3 bytes]"),
        ([{"type": "tool_reference", "tool_name": "Grep"}], '{"type":"tool_reference","tool_name":"Grep"}'),
        ([{"type": "r", "inner": {"blob": "QUJD" * 1000}}], '{"type":"r","inner":{"blob":"[base64: 3000 bytes]"}}'),
    ],
)
def test_the_text_of_a_result_is_what_the_model_saw(content: Any, text: str) -> None:
    assert only_result(said(result(content))).text == text


@pytest.mark.parametrize(
    ("content", "status", "outcome"),
    [
        ([words("Done"), words("agentId: a1b2c3 (use SendMessage with to: 'a1b2c3')")], "completed", Outcome.OK),
        (
            [words("Async agent launched successfully.\nagentId: a1b2c3 (internal ID)")],
            "async_launched",
            Outcome.RUNNING,
        ),
        ([words("Async agent launched successfully.\nagentId: a1b2c3 (internal ID)")], None, Outcome.RUNNING),
    ],
)
def test_an_agent_may_be_named_in_the_text_only(content: Any, status: str | None, outcome: Outcome) -> None:
    beside = {"toolUseResult": {"status": status}} if status else {}
    found = only_result(said(result(content), **beside))
    assert (found.agent_id, found.outcome) == ("agent-a1b2c3", outcome)


@pytest.mark.parametrize(
    ("detail", "outcome"),
    [
        ({"backgroundTaskId": "b1"}, Outcome.RUNNING),
        ({"status": "remote_launched", "taskId": "t1"}, Outcome.RUNNING),
        ({"taskId": "t1", "timeoutMs": 30_000, "persistent": False}, Outcome.RUNNING),
        ({"taskId": "1", "success": True, "updatedFields": ["status"]}, Outcome.OK),
        ({"shellId": "b1", "status": "running"}, Outcome.OK),
        ({"returnCodeInterpretation": "No matches found"}, Outcome.OK),
        ({"stdout": "Command running in background with ID: b1"}, Outcome.OK),
        (None, Outcome.RUNNING),
    ],
)
def test_a_result_that_only_tells_of_a_start_leaves_its_call_running(detail: Any, outcome: Outcome) -> None:
    beside = {} if detail is None else {"toolUseResult": detail}
    found = only_result(said(result("Command running in background with ID: b1"), **beside))
    source = OutcomeSource.TEXT if detail is None else OutcomeSource.STRUCTURE
    assert (found.outcome, found.outcome_source) == (outcome, source)


@pytest.mark.parametrize(
    ("detail", "duration"),
    [
        ({"durationMs": 12}, 12),
        ({"durationSeconds": 15.4297}, 15429),
        ({"totalDurationMs": 5000, "durationMs": 12}, 5000),
        ({}, None),
    ],
)
def test_a_duration_is_read_where_the_structure_has_one(detail: Any, duration: int | None) -> None:
    assert only_result(said(result("x"), toolUseResult=detail)).duration_ms == duration


def test_a_file_that_mentions_an_agent_names_none() -> None:
    assert only_result(said(result("agentId: a1b2c3"))).agent_id is None


def test_a_bare_result_is_read_from_the_structure() -> None:
    bare = line("tool_result", toolUseResult={"tool_use_id": "toolu_1", "status": "completed", "output": "total 8"})
    assert only(bare) == ToolResult("toolu_1", "total 8", Outcome.OK, OutcomeSource.STRUCTURE)
    assert only_result({**bare, "toolUseResult": {"output": "total 8"}}).outcome is Outcome.UNKNOWN


# Everything else


@pytest.mark.parametrize(
    ("record", "kind", "text"),
    [
        (line("system", subtype="away_summary", content="You were away"), "system/away_summary", "You were away"),
        (line("system", content="Running hooks", level="info"), "system", "Running hooks"),
        (
            line("system", subtype="turn_duration", durationMs=9, isMeta=False, version="2.1.1"),
            "system/turn_duration",
            '{"durationMs":9}',
        ),
        (
            line("system", subtype="compact_boundary", content="Compacted", compactMetadata={"preTokens": 9}),
            "system/compact_boundary",
            'Compacted\n{"preTokens":9}',
        ),
        (
            line("attachment", attachment={"type": "date_change", "newDate": "2026-06-05"}),
            "attachment/date_change",
            '{"newDate":"2026-06-05"}',
        ),
        ({"type": "pr-link", "prNumber": 7, "prUrl": "https://x/pull/7"}, "pr-link", "https://x/pull/7 7"),
        ({"type": "continued-in", "continuedInSessionId": "s2"}, "continued-in", "s2"),
        ({"type": "summary", "summary": "Machines", "leafUuid": "u"}, "summary", "Machines"),
        ({"type": "hologram", "size": 3}, "unknown/hologram", '{"type":"hologram","size":3}'),
    ],
)
def test_whatever_else_a_log_records_is_a_notification(record: Record, kind: str, text: str) -> None:
    assert only(record) == Notification(kind, text)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (line("progress", data={"type": "agent_progress", "message": "gone"}), "progress/agent_progress"),
        (line("attachment", attachment={"type": "new", "systemPrompt": ["x"]}), "attachment/new"),
        (line("progress", data={"type": "hook_progress"}), "progress/hook_progress"),
        ({"type": "last-prompt", "lastPrompt": "again", "sessionId": SESSION}, "last-prompt"),
        ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, "file-history-snapshot"),
        ({"type": "api-request-shape", "sessionId": SESSION, "system": ["You are"]}, "api-request-shape"),
        *(
            (
                line("attachment", attachment={"type": kind, **told}, rendered=[{"content": "again"}]),
                f"attachment/{kind}",
            )
            for kind, told in {
                "prompt_snapshot": {"systemPrompt": ["You are"], "tools": [{"name": "Bash", "description": "Runs"}]},
                "instructions": {"files": [{"path": "/p/CLAUDE.md", "content": "Count from zero"}]},
                "session_context": {"context": {"userEmail": "ada@example.com"}},
                "deferred_tools_record": {"entries": [{"name": "Cron", "description": "Schedules"}]},
            }.items()
        ),
        (said(), "user"),
    ],
)
def test_repetitions_and_bookkeeping_are_skipped_by_name(record: Record, kind: str) -> None:
    drafts, state = read(record)
    assert (drafts, state.skipped, state.unknown) == ([], [kind], [])


@pytest.mark.parametrize("kind", ["attachment", "progress", "system"])
def test_a_usage_where_nobody_knows_of_one_is_noted(kind: str) -> None:
    inner = {"type": "brand_new", "usage": usage(5)}
    assert read(line(kind, data=inner, attachment=inner))[1].unknown == [f"{kind}/usage"]
    assert read(line(kind, data={**inner, "usage": 0}, attachment={"type": "x"}))[1].unknown == []


def test_why_the_cache_was_missed_is_told_once_a_response() -> None:
    def line(id: str, reason: Any) -> Record:
        record = answer(words("x"), id=id, usage=usage(5), model="claude-opus-4-8")
        record["message"]["diagnostics"] = {"cache_miss_reason": reason}
        return record

    changed = {"type": "tools_changed", "cache_missed_input_tokens": 30_200}
    lines = [line("a", changed), line("a", changed), line("b", {"type": "unavailable"}), line("c", {"type": "none"})]
    found = [payload.text for payload in payloads(*lines, line("d", None)) if isinstance(payload, Notification)]
    assert found == ["tools_changed 30200", "unavailable"]


# Laws


def test_deep_nesting_is_no_reason_to_fail() -> None:
    deep: Any = 1
    for _ in range(200_000):  # from version 3.12 on, Python writes some 10,000 levels
        deep = [deep]
    assert only({"type": "hologram", "deep": deep}) == Notification(
        "unknown/hologram", "[nested too deeply to be shown]"
    )
    assert payloads({"type": "pr-link", "prUrl": deep}, said(deep), answer(deep))


def test_what_is_remembered_stays_small_however_long_the_log() -> None:
    state = claude_code.begin(MAIN_LOG)
    for number in range(2000):
        root = number % 20 == 0
        record = answer(words("x"), id=f"msg_{number:08}", request=f"req_{number:08}", usage=usage(number))
        record |= {"uuid": f"{number:036}", "isSidechain": number % 2 == 0, "parentUuid": None if root else "x"}
        claude_code.drafts(record, state)
        task = {"type": "tool_use", "id": f"toolu_{number:024}", "name": "Task", "input": {"prompt": str(number)}}
        claude_code.drafts(answer(task, uuid=f"t{number}"), state)
        beside = {"status": "async_launched", "agentId": f"{number:017}"}
        claude_code.drafts(said({**result("x"), "tool_use_id": f"b{number:024}"}, toolUseResult=beside), state)
        claude_code.drafts({"type": "summary", "summary": "x", "leafUuid": f"u{number}"}, state)
    assert (len(json.dumps(state.memory)) < 18_000, len(state.sessions[""].namings)) == (True, 256)


# --- the queue ---


def queued(operation: str, content: str | None = None) -> Record:
    said = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "sessionId": "s1", "timestamp": NOON, **said}


def prompts(*records: Record) -> list[str]:
    return [
        draft.payload.text
        for draft in read(*records)[0]
        if isinstance(draft.payload, User) and draft.payload.kind is UserKind.HUMAN
    ]


def test_a_queued_prompt_that_the_run_took_up_stands_only_in_the_queue_of_older_versions() -> None:
    """From 2.1.91 on an attachment has it."""
    for version, found in (("2.1.36", ["draft PR please"]), ("2.1.91", [])):
        first = line("assistant", version=version, message={"id": "m", "content": []})
        assert prompts(first, queued("enqueue", "draft PR please"), queued("remove")) == found


def test_what_left_the_queue_in_another_way_was_no_prompt_there() -> None:
    """Sent as a line of its own, taken back to the editor, a command, or a notice."""
    old = line("assistant", version="2.1.36", message={"id": "m", "content": []})
    for operations in (
        [queued("enqueue", "sent"), queued("dequeue"), queued("remove")],
        [queued("enqueue", "edited"), queued("popAll"), queued("remove")],
        [queued("enqueue", "/compact"), queued("remove")],
        [queued("enqueue", '{"task_id":"a"}'), queued("remove")],
        [queued("enqueue", "<task-notification>"), queued("remove")],
    ):
        assert prompts(old, *operations) == []
    first, second = queued("enqueue", "sent as a line"), queued("enqueue", "taken up")
    assert prompts(old, first, second, queued("dequeue"), queued("remove")) == ["taken up"]
