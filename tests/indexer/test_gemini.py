"""Gemini CLI's logs become events, and the events of a changing log are those of its last state."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path, PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction
from agtrace_indexer.providers.gemini import parser as gemini
from agtrace_indexer.providers.notes import known_as, live_parts, part_known_as
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
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contents import contents
from tests.depth import examples
from tests.indexer.strange import any_json


def key_of(message: str, part: str) -> str:
    return f"{known_as(message)}/{part_known_as(part)}"


def apply(records: list[Record], state: LogState | None = None) -> tuple[dict[str, Payload], list[Payload], LogState]:
    """The live payloads by key, the payloads without a key, and the state at the end."""
    state = state or LogState()
    live: dict[str, Payload] = {}
    loose: list[Payload] = []
    for record in records:
        for draft in gemini.drafts(record, state):
            if isinstance(draft, Retraction):
                assert all(live.pop(key, None) is not None for key in draft.keys)
            elif draft.key is None:
                loose.append(draft.payload)
            else:
                live[draft.key] = draft.payload
    return live, loose, state


def payloads(*records: Record, state: LogState | None = None) -> list[Payload]:
    """What is live, but for the figures of responses that have none."""
    live = apply(list(records), state)[0].values()
    return [payload for payload in live if not (isinstance(payload, TokenUsage) and not payload.complete)]


def figures(*records: Record) -> list[TokenUsage]:
    """The figures that count after all records."""
    return [payload for payload in apply(list(records))[0].values() if isinstance(payload, TokenUsage)]


def user(content: Any, message_id: str = "u1", **more: Any) -> Record:
    return {"id": message_id, "timestamp": "2026-01-01T10:00:00Z", "type": "user", "content": content, **more}


def answer(message_id: str = "g1", content: Any = "", **more: Any) -> Record:
    return {"id": message_id, "timestamp": "2026-01-01T10:00:01Z", "type": "gemini", "content": content, **more}


def tool(status: str | None = "success", output: Any = "done", name: str = "read_file", **more: Any) -> Record:
    response = {"functionResponse": {"id": "c1", "name": name, "response": {"output": output}}}
    return {"id": "c1", "name": name, "args": {"a": 1}, "status": status, "result": [response], **more}


def result_of(call: Record) -> ToolResult | None:
    found = [p for p in payloads(answer(toolCalls=[call])) if isinstance(p, ToolResult)]
    return found[0] if found else None


# --- whose log it is ---


@pytest.mark.parametrize(
    "record",
    [
        {"id": "x", "timestamp": "t", "type": "user", "content": "hi", "parentId": None},
        {"type": "user", "content": "hi"},
        {"sessionId": "s", "type": "user", "uuid": "u", "message": {"parts": []}},
        {"$set": {"name": "somebody"}},
        {"$set": {"summary": "x"}, "$unset": {}},
        {"$rewindTo": 3},
        {"method": "generateContentStream", "response": []},
    ],
)
def test_records_with_common_names_are_not_taken_for_geminis(record: Record) -> None:
    assert not gemini.recognizes(record)


@pytest.mark.parametrize(
    "document", [[], [{"sessionId": "s", "message": "hi"}], {"history": []}, {"messages": []}, "x"]
)
def test_a_document_that_is_no_session_is_left_alone(document: Any) -> None:
    assert gemini.unroll(document) is None


def test_a_subagents_log_names_its_parent_by_its_folder() -> None:
    facts = gemini.begin(PurePath("/tmp/p/chats/parent-id/child.jsonl")).sessions[""]
    assert (facts.parent_id, facts.kind) == ("parent-id", "subagent")
    assert gemini.begin(PurePath("/tmp/p/chats/session-2026.jsonl")).sessions[""].parent_id is None


# --- what messages become ---


def test_a_response_becomes_thinking_text_calls_tokens_and_results_in_one_step() -> None:
    thought = {"subject": "Plan", "description": "Read it.", "timestamp": "2026-01-01T09:59:59Z"}
    tokens = {"input": 100, "output": 10, "cached": 30, "thoughts": 5, "tool": 2, "total": 117}
    call = tool(timestamp="2026-01-01T10:00:09Z")
    given = list(
        gemini.drafts(
            answer(content="Yes.", thoughts=[thought], tokens=tokens, model="m", toolCalls=[call]), LogState()
        )
    )
    assert [d.payload for d in given if isinstance(d, Draft)] == [
        Reasoning("Plan\nRead it."),
        Message("Yes."),
        ToolCall("c1", "read_file", {"a": 1}),
        TokenUsage("g1", "m", 72, None, None, 30, 15, 5),
        ToolResult("c1", "done", Outcome.OK, OutcomeSource.STRUCTURE),
    ]
    drafts = [d for d in given if isinstance(d, Draft)]
    assert {d.step for d in drafts} == {"g1"}
    assert [d.identity for d in drafts] == ["g1/thought.0", "g1/text", "g1/call.c1", "g1/usage", "g1/result.c1"]
    assert [(d.timestamp or 0) % 60_000 for d in drafts] == [59_000, 1000, 1000, 1000, 9000]


@pytest.mark.parametrize("tokens", [None, {}, {"input": 0, "output": 0, "cached": 0, "total": 0}, "none"])
def test_a_response_without_figures_has_unknown_ones(tokens: Any) -> None:
    unknown = TokenUsage("g1", "m", None, None, None, None, None, None, complete=False)
    assert figures(answer(content="x", model="m", tokens=tokens)) == [unknown]
    assert figures(answer(content="x", model="m")) == [unknown]


def test_what_is_no_response_has_no_figures() -> None:
    written_back = answer(content=[{"text": "Got it."}])
    assert figures(answer(), user("hi"), written_back) == []
    assert [len(figures({**written_back, key: None})) for key in ("tokens", "model")] == [1, 1]


def test_the_figures_of_a_message_are_its_own_and_its_last_version_counts() -> None:
    """No running total, and a message that comes again is no other one."""
    tokens = {"input": 9000, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 9010}
    said = (answer("g1", "a", tokens=tokens), answer("g2", "b", tokens=None), answer("g2", "b", tokens=tokens))
    again = answer("g2", "b", tokens={**tokens, "output": 20}, toolCalls=[tool()])
    assert [(one.input_tokens, one.output_tokens) for one in figures(*said)] == [(9000, 10), (9000, 10)]
    assert [(one.input_tokens, one.output_tokens) for one in figures(*said, again)] == [(9000, 10), (9000, 20)]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Fix it", UserKind.HUMAN),
        ("/compress", UserKind.COMMAND),
        ("?", UserKind.COMMAND),
        ("\n<session_context>\ntoday", UserKind.INJECTED),
        ("<hook_context>x</hook_context>", UserKind.INJECTED),
        ("System: Please continue.", UserKind.INJECTED),
    ],
)
def test_only_what_a_human_asked_opens_a_turn(said: str, kind: UserKind) -> None:
    assert payloads(user(said, displayContent="typed")) == [User(said, kind)]


def test_the_prompt_of_a_subagent_is_a_task() -> None:
    metadata = {"sessionId": "s", "projectHash": "h", "kind": "subagent"}
    assert payloads(metadata, user("Look around")) == [User("Look around", UserKind.TASK)]


def test_an_empty_message_is_left_out_and_noted() -> None:
    state = LogState()
    assert payloads(user(" \n"), state=state) == []
    assert state.skipped == ["user"]


def test_parts_of_content_are_joined_and_images_counted() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert payloads(user([{"text": "See"}, image, "this"])) == [
        User("See\n[image: image/png, 3 bytes]\nthis", UserKind.HUMAN)
    ]
    assert payloads(answer(content={"text": "One part"})) == [Message("One part")]


@pytest.mark.parametrize("kind", ["info", "error", "warning"])
def test_notices_of_the_cli_are_notifications(kind: str) -> None:
    assert payloads({"id": "n", "type": kind, "content": "Update!"}) == [Notification(kind, "Update!")]


def test_metadata_become_facts_wherever_they_stand() -> None:
    first = {"sessionId": "s1", "projectHash": "h", "kind": "main", "startTime": "x"}
    patch = {"$set": {"summary": "Fix login", "directories": ["/work/p", "/work/q"], "sessionId": "s2"}}
    state = apply([first, patch, answer(model="gemini-3")])[2]
    facts = state.sessions[""]
    assert (facts.id, facts.project_hash, facts.kind) == ("s1", "h", "main")
    assert (facts.title, facts.title_rank, facts.cwd, facts.model) == ("Fix login", 3, "/work/p", "gemini-3")
    assert state.skipped == ["metadata", "$set", "gemini"]


def test_a_checkpoint_is_read_as_a_session() -> None:
    history = [
        {"role": "user", "parts": [{"text": "List"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "ls", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"error": "no such"}}}]},
    ]
    assert payloads(*(gemini.unroll({"history": history}) or ())) == [
        User("List", UserKind.HUMAN),
        Reasoning("hm"),
        ToolCall("history-1.1", "ls", {}),
        ToolResult("history-1.1", "no such", Outcome.FAILED, OutcomeSource.STRUCTURE),
    ]


# --- tools ---

OLD_SHELL = "Command: x\nDirectory: (root)\nOutput: oh\nError: (none)\nExit Code: {}\nSignal: 0\nProcess Group PGID: 7"


@pytest.mark.parametrize(
    ("output", "display", "outcome", "exit_code"),
    [
        (OLD_SHELL.format(0), "oh", Outcome.OK, 0),
        (OLD_SHELL.format(2), "oh", Outcome.FAILED, 2),
        ("Output: oh\nExit Code: 1\nProcess Group PGID: 7", "oh", Outcome.FAILED, 1),
        ("Output: Exit Code: 1\nthen more\nProcess Group PGID: 7", "Exit Code: 1\nthen more", Outcome.OK, None),
        ("Output: a\nExit Code: 1\nProcess Group PGID: 7", "a\nExit Code: 1", Outcome.OK, None),
        ("a file's text\nExit Code: 1", "", Outcome.OK, None),
        ("Command was automatically cancelled because it exceeded", "", Outcome.INTERRUPTED, None),
    ],
)
def test_a_shell_command_is_judged_by_the_exit_code_that_the_cli_wrote(
    output: str, display: str, outcome: Outcome, exit_code: int | None
) -> None:
    result = result_of(tool(output=output, name="run_shell_command", resultDisplay=display))
    assert result and (result.outcome, result.exit_code) == (outcome, exit_code)
    text_decided = outcome is not Outcome.OK
    assert result.outcome_source is (OutcomeSource.TEXT if text_decided else OutcomeSource.STRUCTURE)


def test_an_exit_code_in_another_tools_output_is_only_text() -> None:
    result = result_of(tool(output=OLD_SHELL.format(2)))
    assert result and result.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("status", "said", "outcome"),
    [
        ("error", "boom", Outcome.FAILED),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", Outcome.REJECTED),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled the operation.", Outcome.REJECTED),
        ("cancelled", "[Operation Cancelled] Reason: shutdown", Outcome.INTERRUPTED),
        ("new-status", "x", Outcome.UNKNOWN),
    ],
)
def test_the_status_of_a_call_decides_its_outcome(status: str, said: str, outcome: Outcome) -> None:
    result = result_of(tool(status, said))
    assert result and (result.outcome, result.text) == (outcome, said)


@pytest.mark.parametrize("status", ["validating", "scheduled", "executing", "awaiting_approval"])
def test_a_call_that_is_not_finished_has_no_result(status: str) -> None:
    assert result_of(tool(status)) is None


def test_the_text_of_a_result_is_what_the_model_got() -> None:
    both = [{"functionResponse": {"response": {"output": "a"}}}, {"functionResponse": {"response": {"error": "b"}}}]
    said = [
        result_of({**tool(), "result": both}),
        result_of({**tool(), "result": ["plain"]}),
        result_of({**tool(), "result": None, "resultDisplay": "shown"}),
        result_of({**tool(), "result": [], "resultDisplay": {"fileDiff": "+"}}),
        result_of({**tool(output={"k": [1]})}),
    ]
    assert [r.text if r else None for r in said] == ["a\nb", "plain", "shown", '{"fileDiff":"+"}', '{"k":[1]}']


def test_calls_without_an_id_still_find_their_results() -> None:
    calls = [{"name": "a", "status": "success"}, {"name": "b", "status": "error"}]
    found = payloads(answer(toolCalls=calls))
    assert [p.call_id for p in found if isinstance(p, (ToolCall, ToolResult))] == ["g1.0", "g1.1", "g1.0", "g1.1"]


def test_a_result_names_the_subagent_that_it_comes_from() -> None:
    result = result_of(tool(agentId="agent-7"))
    assert result and result.agent_id == "agent-7"


# --- folding ---


def test_a_rewind_drops_the_message_and_all_after_it() -> None:
    records = [user("a", "1"), user("b", "2"), user("c", "3"), {"$rewindTo": "2"}]
    live, loose, _ = apply(records)
    assert list(live) == [key_of("1", "text")] and loose == [Notification("rewind", "2")]
    assert apply([*records[:3], {"$rewindTo": "unheard"}])[0] == {}


TOKENS = {"input": 100, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 110}


@pytest.mark.parametrize("dropped", [{"$rewindTo": "1"}, {"$rewindTo": "unheard"}, {"$set": {"messages": []}}])
def test_what_a_dropped_message_cost_was_spent(dropped: Record) -> None:
    records = [user("a", "1"), answer("2", "b", tokens=TOKENS), dropped]
    assert [one.output_tokens for one in figures(*records)] == [10]
    assert payloads(*records) == figures(*records)
    assert len(figures(*records, answer("2", "b", tokens=TOKENS))) == 1


def test_a_document_that_lost_a_message_counts_only_what_is_left() -> None:
    head = {"sessionId": "s", "projectHash": "h"}
    state = apply([head, answer("2", "b", tokens=TOKENS)])[2]
    (patch,) = gemini.as_patch([head, user("a", "1")])
    assert next(iter(gemini.drafts(patch, state))) == Retraction([key_of("2", "text"), key_of("2", "usage")])


def test_a_messages_own_id_identifies_its_parts_in_any_log() -> None:
    (_, *turns) = gemini.unroll({"history": [{"role": "user", "parts": [{"text": "hi"}]}]}) or ()
    for message, identity in ((user("hi"), "u1/text"), (turns[0], None), (user("hi", "message-3"), None)):
        (draft,) = gemini.drafts(message, LogState())
        assert isinstance(draft, Draft) and draft.identity == identity


def test_a_replaced_list_keeps_what_is_still_in_it() -> None:
    state = LogState()
    apply([user("a", "1"), answer("2", "b")], state)
    changes = gemini.drafts({"$set": {"messages": [user("summary", "0"), answer("2", "b")]}}, state)
    assert [c.keys if isinstance(c, Retraction) else c.key for c in changes] == [
        [key_of("1", "text")],
        key_of("0", "text"),
    ]
    assert [*live_parts(state)] == [known_as("0"), known_as("2")]


def test_a_history_that_the_cli_wrote_back_as_messages_gives_each_call_and_result_once() -> None:
    called = answer(
        "g", [{"text": "ok"}, {"functionCall": {"name": "read_file", "args": {"a": 1}}}], toolCalls=[tool()]
    )
    back = user([{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "done"}}}], "u2")
    found = payloads({"$set": {"messages": [called, back]}})
    assert [type(p) for p in found] == [Message, ToolCall, ToolResult]


JSON = any_json()
IDS = st.sampled_from(["a", "b", "c", "d", "e"])


@st.composite
def messages(draw: st.DrawFn) -> Record:
    """A message of any type, with parts that may be missing; call ids belong to one message."""
    message_id, said = draw(IDS), draw(st.sampled_from(["", "one", "two"]))
    if draw(st.booleans()):
        return user(said, message_id)
    statuses = draw(st.lists(st.sampled_from(["success", "error", "executing"]), max_size=2))
    calls = [{**tool(status, said), "id": f"{message_id}{n}"} for n, status in enumerate(statuses)]
    return answer(message_id, said, toolCalls=calls, thoughts=draw(st.lists(st.sampled_from(["p", "q"]), max_size=2)))


def steps() -> st.SearchStrategy[list[Record]]:
    replaced = st.lists(messages(), max_size=4).map(lambda found: {"$set": {"messages": found}})
    rewound = st.sampled_from("abcdez").map(lambda message_id: {"$rewindTo": message_id})
    patched = st.just({"$set": {"lastUpdated": "now"}})
    return st.lists(st.one_of(messages(), messages(), messages(), replaced, rewound, patched), max_size=14)


def folded(records: list[Record]) -> list[Record]:
    """The list of messages at the end, by the plainest reading of the format."""
    state: list[Record] = []
    for record in records:
        if "$rewindTo" in record:
            ids = [m["id"] for m in state]
            state = state[: ids.index(record["$rewindTo"])] if record["$rewindTo"] in ids else []
        elif "$set" in record:
            state = put([], record["$set"]["messages"]) if "messages" in record["$set"] else state
        else:
            state = put(state, [record])
    return state


def put(state: list[Record], added: list[Record]) -> list[Record]:
    for message in added:
        known = [m["id"] for m in state]
        at = known.index(message["id"]) if message["id"] in known else len(state)
        state = [*state[:at], message, *state[at + 1 :]]
    return state


@settings(max_examples=examples(75), deadline=None)
@given(steps())
def test_the_live_events_are_those_of_the_messages_that_are_left(records: list[Record]) -> None:
    live, _, state = apply(records)
    left = folded(records)
    assert [*live_parts(state)] == [known_as(m["id"]) for m in left]
    assert without_figures(live) == without_figures(apply(left)[0])


def without_figures(live: dict[str, Payload]) -> dict[str, Payload]:
    return {key: payload for key, payload in live.items() if not isinstance(payload, TokenUsage)}


# --- the index of whole logs ---

HEAD = {"sessionId": "s1", "projectHash": "ab" * 32, "startTime": "2026-05-01T10:00:00Z", "kind": "main"}


def lines(*records: Record) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def sessions(database: Path, root: Path) -> dict[str, dict[str, Any]]:
    """Bring the index up to date; the sessions by their ids."""
    index(database, [str(root)])
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    try:
        rows = connection.execute(
            "SELECT s.*, p.own_id AS parent, n.text AS started_with FROM session s "
            "LEFT JOIN session p ON p.id = s.parent_session LEFT JOIN event e ON e.session_id = p.id "
            "AND e.event_index = s.started_by LEFT JOIN name n ON n.id = e.name_id"
        )
        return {row["own_id"]: dict(row) for row in rows}
    finally:
        connection.close()


def test_a_session_says_that_a_response_has_no_figures(tmp_path: Path, database: Path) -> None:
    log = tmp_path / "chats" / "session-1.jsonl"
    log.parent.mkdir()
    log.write_text(lines(HEAD, user("go"), answer("g1", "a", tokens=TOKENS), answer("g2", "b", tokens=None)))
    found = sessions(database, log)["s1"]
    assert (found["responses"], found["incomplete_usage"], found["output_tokens"]) == (2, 1, 10)
    with log.open("a") as file:
        file.write(lines(answer("g2", "b", tokens=TOKENS)))
    found = sessions(database, log)["s1"]
    assert (found["responses"], found["incomplete_usage"], found["output_tokens"]) == (2, 0, 20)


def test_an_edited_request_keeps_its_turn(tmp_path: Path, database: Path) -> None:
    log = tmp_path / "session-1.jsonl"
    log.write_text(lines(HEAD, user("Build a boat", "u1"), answer("g1", "Built.", tokens=TOKENS)))
    sessions(database, log)
    with log.open("a") as file:
        file.write(lines(user("Build an engine", "u1"), user("And a test", "u2")))
    found = sessions(database, log)["s1"]
    assert (found["turn_count"], found["snippet"]) == (2, "Build an engine")


def test_changes_of_a_session_are_folded_wherever_its_log_lies(tmp_path: Path, database: Path) -> None:
    """JSON lines with `$set` and `$rewindTo`, in folders of their own."""
    folder = tmp_path / "tmp" / "tidepool" / "chats"
    (folder / "s1").mkdir(parents=True)
    said = answer("g1", "", tokens=TOKENS, toolCalls=[tool(name="investigate", agentId="k3v9q1")])
    dropped = (user("Never mind", "u2"), answer("g2", "Hm.", tokens=TOKENS), {"$rewindTo": "u2"})
    named = {"$set": {"summary": "An engine", "lastUpdated": "2026-05-01T11:00:00Z"}}
    (folder / "session-2026-05-01T10-00-s1.jsonl").write_text(lines(HEAD, user("Build"), said, *dropped, named))
    agent = {**HEAD, "sessionId": "k3v9q1", "kind": "subagent", "directories": ["/work/tidepool"]}
    (folder / "s1" / "k3v9q1.jsonl").write_text(lines(agent, user("Look", "a1"), answer("a2", "Seen.", tokens=TOKENS)))
    (folder / "s1" / "x7.jsonl").write_text(lines({**HEAD, "sessionId": "x7", "kind": None}, user("Look", "b1")))
    found = sessions(database, tmp_path)
    main, child = found["s1"], found["k3v9q1"]
    assert (found["x7"]["kind"], found["x7"]["parent"], found["x7"]["started_with"]) == ("subagent", "s1", None)
    assert (main["title"], main["turn_count"], main["tool_calls"], main["output_tokens"]) == ("An engine", 1, 1, 20)
    assert (child["kind"], child["parent"], child["started_with"]) == ("subagent", "s1", "investigate")
    assert (child["turn_count"], child["output_tokens"]) == (1, 10)


@pytest.mark.parametrize("copy_first", [True, False])
def test_a_session_that_was_migrated_counts_once(tmp_path: Path, database: Path, copy_first: bool) -> None:
    """Its messages keep their ids in the new folder, and in the JSON lines that continue a document."""
    talk = [user("Build", "u1"), answer("g1", "Built.", tokens=TOKENS, toolCalls=[tool()])]
    old = tmp_path / ("ab" * 32) / "chats" / "session-1.json"
    new = tmp_path / "tidepool" / "chats" / "session-1.jsonl"
    writes = [(old, json.dumps({**HEAD, "messages": talk})), (new, lines(HEAD, *talk, user("Test", "u2")))]
    for path, content in reversed(writes) if copy_first else writes:
        path.parent.mkdir(parents=True)
        path.write_text(content)
        index(database, [str(tmp_path)])
    connection = sqlite3.connect(database)
    sums = connection.execute(
        "SELECT sum(turn_count), sum(tool_calls), sum(output_tokens), sum(copied_turns), count(*) FROM session"
    ).fetchone()
    connection.close()
    assert sums == (2, 1, 10, 1, 2)


def test_a_log_with_the_context_alone_is_a_mere_start_until_somebody_speaks(tmp_path: Path, database: Path) -> None:
    """Each `gemini --resume` leaves one, under the same id, and goes on in the first log."""
    chats = tmp_path / "waterworks" / "chats"
    chats.mkdir(parents=True)
    head = {"sessionId": "f74ed4b6-0056-4000-8000-000000000056", "projectHash": "a" * 64}
    context = user([{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}], "c1")
    logs = {"13-46": [head, context], "13-49": [head, context, user("survey the pumps"), answer(content="surveyed")]}
    for name, records in logs.items():
        (chats / f"session-2026-06-22T{name}-f74ed4b6.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert index(database, [str(chats)]).sessions == 1
    listed = {row[0]: row[5] for row in contents(database)["sessions"]}
    assert listed == {head["sessionId"]: "main", f"{head['sessionId']}~2": "warmup"}
