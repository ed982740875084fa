"""Kiro CLI's logs become events; what stands next to a log, and may change later, counts as a part of it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path, PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.providers.kiro import parser as kiro
from agtrace_indexer.run import index
from agtrace_schema.events import (
    Message,
    Notification,
    Outcome,
    OutcomeSource,
    Payload,
    Reasoning,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import SAMPLES
from tests.contents import contents
from tests.depth import examples

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

CLI = SAMPLES / "kiro" / "sessions" / "cli"
LOG = CLI / "3f0b7c52-8e14-4a6d-9b3c-5d21e0f7a486.jsonl"
SAVED = SAMPLES / "kiro" / "saved" / "map.json"


def records_of(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def payloads(*records: Record, state: LogState | None = None) -> list[Payload]:
    state = state or LogState()
    return [draft.payload for record in records for draft in kiro.drafts(record, state)]


def line(kind: str, *content: Record, **more: Any) -> Record:
    return {"version": "v1", "kind": kind, "data": {"message_id": "m1", "content": list(content), **more}}


def result(status: str, *content: Record) -> Record:
    return line(
        "ToolResults", {"kind": "toolResult", "data": {"toolUseId": "t", "content": list(content), "status": status}}
    )


def command(ended: str) -> Record:
    return {"kind": "json", "data": {"exit_status": ended, "stdout": "out\n", "stderr": "err\n"}}


def text(said: str) -> Record:
    return {"kind": "text", "data": said}


# --- the published logs, and an independent count ---


def test_no_tokens_are_said_to_be_known_to_be_none(database: Path) -> None:
    assert contents_of(database, [CLI])["usage"] == []


# --- lines ---


def test_a_prompt_a_response_and_results_become_events() -> None:
    call = {"kind": "toolUse", "data": {"toolUseId": "t", "name": "shell", "input": {"command": "ls"}}}
    made = payloads(
        line("Prompt", text("Look"), meta={"timestamp": 1_790_000_000}),
        line("AssistantMessage", {"kind": "reasoning", "data": {"text": "hm"}}, text(""), call),
        result("success", command("exit status: 0")),
        line("AssistantMessage", text("Done")),
    )
    assert made == [
        User("Look", UserKind.HUMAN),
        Reasoning("hm"),
        ToolCall("t", "shell", {"command": "ls"}),
        ToolResult("t", "out\nerr\nexit status: 0", Outcome.OK, OutcomeSource.STRUCTURE, 0),
        Message("Done"),
    ]


@pytest.mark.parametrize(
    ("given_result", "outcome", "code"),
    [
        (result("success", command("exit status: 0")), Outcome.OK, 0),
        (result("success", command("exit status: 3")), Outcome.FAILED, 3),
        (result("success", command("1")), Outcome.FAILED, 1),
        (result("success", command("signal: 9 (SIGKILL)")), Outcome.FAILED, None),
        (result("success", command("signal: 2 (SIGINT)")), Outcome.INTERRUPTED, None),
        (result("success", text("exit status: 3")), Outcome.OK, None),
        (result("error", text("no such file")), Outcome.FAILED, None),
        (result("error", text("Tool use was cancelled by the user")), Outcome.REJECTED, None),
        (result("odd", text("x")), Outcome.UNKNOWN, None),
    ],
)
def test_the_outcome_of_a_call_is_what_its_result_says(
    given_result: Record, outcome: Outcome, code: int | None
) -> None:
    (made,) = payloads(given_result)
    assert isinstance(made, ToolResult)
    assert (made.outcome, made.exit_code) == (outcome, code)


def test_a_result_that_is_only_beside_the_content_is_read_and_one_that_repeats_it_is_not() -> None:
    value = {"result": {"Error": {"items": [{"Text": "no"}]}}}
    record = result("success", text("yes"))
    record["data"]["results"] = {"t": value, "u": value}
    assert [(made.call_id, made.text, made.outcome) for made in payloads(record) if isinstance(made, ToolResult)] == [
        ("t", "yes", Outcome.OK),
        ("u", "no", Outcome.FAILED),
    ]


def test_a_picture_is_told_by_its_type_and_size() -> None:
    picture = {"kind": "image", "data": {"format": "png", "source": {"bytes": "A" * 400}}}
    assert payloads(line("Prompt", text("Look"), picture)) == [
        User("Look\n[image: image/png, 300 bytes]", UserKind.HUMAN)
    ]


# --- Kiro CLI 3 and the editor ---


NUMBERS = count()


def event(kind: str, **told: Any) -> Record:
    return {"id": f"id-{next(NUMBERS)}", "timestamp": "2026-11-12T10:00:00.000Z", "payload": {"type": kind, **told}}


EVENTS = [
    event("session_start", agentType="vibe"),
    event("user", content="Count KELPWORD", images=[]),
    event("turn_start", executionId="x"),
    event("assistant", content="hm", operationType="Reasoning"),
    event("assistant", content="Counting", operationType="Say"),
    event("tool_call", toolCallId="t", toolName="execute_bash", args={"command": "make"}, status="in_progress"),
    event("tool_call", toolCallId="t", toolName="execute_bash", args={"command": "make"}, status="completed"),
    event("tool_result", toolCallId="t", content="Output:\nno\n\nExit Code: 2", success=True),
    event("assistant", content="It failed"),
    event("usage_summary", promptTurnSummaries=[{"unit": "credit", "usage": 1.5}], status="success"),
    event("turn_end", stopReason="cancelled"),
]


def test_a_session_of_kiro_3_is_read_with_the_file_next_to_its_log(tmp_path: Path, database: Path) -> None:
    log = tmp_path / ".kiro/sessions/4748/sess_1/messages.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(record) + "\n" for record in EVENTS))
    beside = {"id": "sess_1", "workspacePaths": ["/srv/kelp"], "modelId": "claude-opus-4.8", "title": "Counting"}
    log.with_name("session.json").write_text(json.dumps(beside))
    found = contents_of(database, [tmp_path / ".kiro/sessions"])
    ((session,),) = [found["sessions"]]
    assert (session[7], session[11]) == ("/srv/kelp", "Counting") and found["usage"] == []
    log.with_name("session.json").write_text(json.dumps(beside | {"title": "Renamed"}))
    index(database, [])
    assert contents(database)["sessions"][0][11] == "Renamed"
    assert all(map(kiro.recognizes, EVENTS[:3])) and kiro.unroll(beside) == []


def test_an_event_of_kiro_3_is_what_it_says() -> None:
    state = LogState()
    drafts = [draft for record in EVENTS for draft in kiro.drafts(record, state)]
    made = [draft.payload for draft in drafts]
    call = ToolCall("t", "execute_bash", {"command": "make"})
    assert made == [
        User("Count KELPWORD", UserKind.HUMAN), Reasoning("hm"), Message("Counting"), call, call,
        ToolResult("t", "Output:\nno\n\nExit Code: 2", Outcome.FAILED, OutcomeSource.TEXT, 2),
        Message("It failed"), Notification("turn_end", "cancelled"),
    ]  # fmt: skip
    assert len({draft.step for draft in drafts[1:5]}) == 1 and drafts[6].step != drafts[1].step
    assert drafts[3].key == drafts[4].key != drafts[5].key
    assert kiro.drafts(event("compaction", summary="x"), state) and state.unknown == ["compaction"]


# --- the file next to a log ---


def contents_of(database: Path, roots: list[Path]) -> dict[str, Any]:
    index(database, [str(root) for root in roots])
    return contents(database)


def copied(folder: Path) -> tuple[Path, Path]:
    """A log with the file next to it, in a folder of its own."""
    folder.mkdir()
    shutil.copy(LOG, folder)
    shutil.copy(LOG.with_suffix(".json"), folder)
    return folder / LOG.name, folder / LOG.with_suffix(".json").name


def test_the_facts_of_a_session_are_in_the_file_next_to_its_log() -> None:
    facts = kiro.begin(PurePath(LOG)).sessions[""]
    assert (facts.id, facts.cwd, facts.title) == (
        LOG.stem,
        "/home/mira/projects/tidepool",
        "Fronds that are counted twice",
    )
    assert (facts.kind, facts.parent_id, facts.model) == ("main", None, "claude-sonnet-4.5")


@pytest.mark.parametrize(("reason", "kind"), [("subagent", "subagent"), ("rewind", "fork"), (None, "fork")])
def test_a_session_has_a_parent_only_if_its_file_names_one(tmp_path: Path, reason: str, kind: str) -> None:
    log, sidecar = copied(tmp_path / "cli")
    said = json.loads(sidecar.read_text()) | {"parent_session_id": "p", "session_created_reason": reason}
    sidecar.write_text(json.dumps(said))
    state = kiro.begin(log)
    assert (state.sessions[""].kind, state.sessions[""].parent_id) == (kind, "p")
    (user,) = payloads(line("Prompt", text("Count")), state=state)
    assert user == User("Count", UserKind.TASK if kind == "subagent" else UserKind.HUMAN)


def test_a_turn_that_was_cancelled_is_interrupted_with_its_open_calls(database: Path) -> None:
    events = contents_of(database, [CLI])["events"]
    of_log = [event for event in events if event[0] == LOG.stem and event[12] is None]
    (end,) = [event for event in of_log if event[6] == "turn_end"]
    (call,) = [event for event in of_log if event[6] == "shell" and event[4] == end[4]]
    assert (end[4], call[7]) == (2, 3), "interrupted"


def test_a_changed_sidecar_is_noticed_though_its_log_is_the_same(tmp_path: Path, database: Path) -> None:
    log, sidecar = copied(tmp_path / "cli")
    index(database, [str(log.parent)])
    assert index(database, []).files_opened == 0
    said = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**said, "title": "Renamed", "cwd": "/srv/kelp"}))
    assert index(database, []).files_opened == 2
    ((session,),) = [contents(database)["sessions"]]
    assert (session[7], session[11]) == ("/srv/kelp", "Renamed")
    assert contents(database) == contents_of(tmp_path / "fresh.sqlite3", [log.parent])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"session_id": 5}', b"[" * 100_000, None])
def test_a_sidecar_that_cannot_be_read_costs_nothing_that_was_known(
    tmp_path: Path, database: Path, content: bytes | None
) -> None:
    log, sidecar = copied(tmp_path / "cli")
    index(database, [str(log.parent)])
    before = contents(database)
    if content is None:
        sidecar.unlink()
    else:
        sidecar.write_bytes(content)
    index(database, [])
    assert {**contents(database), "files": 0} == {**before, "files": 0}


TURNS = json.loads(LOG.with_suffix(".json").read_text())
"""What the sidecar of the sample says."""

steps = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(["UserTurnEnd", "Cancelled", "Odd"])),
    min_size=1,
    max_size=5,
)


@settings(relaxed, max_examples=examples(25))
@example([(0.5, 1, "UserTurnEnd"), (1.0, 3, "Cancelled")])
@example([(1.0, 0, "UserTurnEnd"), (1.0, 3, "Odd"), (1.0, 3, "Cancelled"), (1.0, 3, "UserTurnEnd")])
@given(steps)
def test_any_sequence_of_appends_and_changes_of_the_sidecar_gives_what_reading_both_at_once_gives(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("kiro")
    (folder / "cli").mkdir()
    log, sidecar, data = folder / "cli" / LOG.name, folder / "cli" / LOG.with_suffix(".json").name, LOG.read_bytes()
    length = 1 + int(changes[0][0] * (len(data) - 1))
    for end, turns, reason in changes:
        length = max(length, int(end * len(data)))
        log.write_bytes(data[:length])
        said = json.loads(json.dumps(TURNS))
        metadata = said["session_state"]["conversation_metadata"]
        metadata["user_turn_metadatas"] = metadata["user_turn_metadatas"][:turns]
        for turn in metadata["user_turn_metadatas"][-1:]:
            turn["end_reason"] = reason
        sidecar.write_text(json.dumps(said | {"title": f"{reason} {turns}"}))
        index(folder / "grown.sqlite3", [str(log.parent)])
    assert contents(folder / "grown.sqlite3") == contents_of(folder / "fresh.sqlite3", [log.parent])


def test_a_rewound_session_repeats_its_parent_and_counts_once(database: Path) -> None:
    sessions = {row[0]: row for row in contents_of(database, [CLI])["sessions"]}
    child = sessions["b86d19e4-07f2-4c5b-a1e8-93c4f25d7b60"]
    assert (child[4], child[5], child[16], child[33]) == (LOG.stem, "fork", 1, 1), "parent, kind, turns, copied turns"


# --- conversations of Amazon Q and Kiro CLI 1 ---


SAID = json.loads(SAVED.read_text())


def q_database(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS conversations (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS conversations_v2 (key TEXT, conversation_id TEXT, value TEXT, "
        "created_at INTEGER, updated_at INTEGER, PRIMARY KEY (key, conversation_id))"
    )
    return connection


def keep(connection: sqlite3.Connection, table: str, conversation: Record, changed: int = 1) -> None:
    value = json.dumps(conversation)
    if table == "conversations":
        connection.execute("REPLACE INTO conversations VALUES ('/home/mira/projects/tidepool', ?)", (value,))
    else:
        row = ("/home/mira/projects/tidepool", conversation["conversation_id"], value, 1, changed)
        connection.execute("REPLACE INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", row)


def told(database: Path) -> list[tuple[Any, ...]]:
    """Type, name and outcome of each event with its text."""
    found = contents(database)
    return [
        (event[2], event[6], event[7], said[2]) for event, said in zip(found["events"], found["texts"], strict=True)
    ]


@pytest.mark.parametrize("table", ["conversations", "conversations_v2"])
def test_a_conversation_in_a_database_is_what_its_export_is(tmp_path: Path, database: Path, table: str) -> None:
    path = tmp_path / "data" / "data.sqlite3"
    with closing(q_database(path)) as connection:
        keep(connection, table, SAID)
        index(database, [str(path)])
    index(tmp_path / "export.sqlite3", [str(SAVED)])
    assert told(database) == told(tmp_path / "export.sqlite3")
    (session,) = contents(database)["sessions"]
    assert (session[0], session[7], session[10]) == (
        SAID["conversation_id"],
        "/home/mira/projects/tidepool",
        "claude-sonnet-4",
    )
    assert [event[9] for event in contents(database)["events"]] == [1, 1, 1, 2, 2, 3, 3, 3], "the exchange is the line"


@pytest.mark.parametrize("table", ["conversations", "conversations_v2"])
def test_a_conversation_that_goes_on_gives_what_all_of_it_gives(tmp_path: Path, database: Path, table: str) -> None:
    path = tmp_path / "data" / "data.sqlite3"
    with closing(q_database(path)) as connection:
        for end in range(len(SAID["history"]) + 1):
            keep(connection, table, {**SAID, "history": SAID["history"][:end]}, end)
            index(database, [str(path)])
        fresh = contents_of(tmp_path / "fresh.sqlite3", [path])
    assert {**contents(database), "files": 0} == {**fresh, "files": 0}


@pytest.mark.parametrize("table", ["conversations", "conversations_v2"])
def test_what_a_compaction_takes_out_of_a_conversation_stays_known(tmp_path: Path, database: Path, table: str) -> None:
    path = tmp_path / "data" / "data.sqlite3"
    more = json.loads(json.dumps(SAID["history"][0]).replace("q-kelp-1", "q-kelp-9").replace("Which", "What"))
    with closing(q_database(path)) as connection:
        keep(connection, table, SAID)
        index(database, [str(path)])
        keep(connection, table, {**SAID, "history": [more], "latest_summary": ["It was about a map", {}]}, 2)
        index(database, [])
        before = told(database)
        index(database, [])
    assert told(database) == before
    names = [name for kind, name, _, _ in before if kind in (0, 6)]
    assert names == ["human", "human", "compaction", "compaction_summary", "human"]


def test_a_new_chat_in_the_same_folder_leaves_the_one_before_it_known(tmp_path: Path, database: Path) -> None:
    path = tmp_path / "data" / "data.sqlite3"
    with closing(q_database(path)) as connection:
        keep(connection, "conversations", SAID)
        index(database, [str(path)])
        keep(connection, "conversations", {**SAID, "conversation_id": "other", "history": SAID["history"][:1]})
        index(database, [])
    assert {row[0]: row[-1] for row in contents(database)["sessions"]} == {SAID["conversation_id"]: 1, "other": 0}


@pytest.mark.parametrize("value", ["", "{", "[]", "5", '{"conversation_id": 5}', '{"history": [1]}', b"\xff\x00", None])
def test_a_row_that_is_no_conversation_costs_no_other_one(tmp_path: Path, database: Path, value: Any) -> None:
    path = tmp_path / "data" / "data.sqlite3"
    with closing(q_database(path)) as connection:
        keep(connection, "conversations", SAID)
        connection.execute("INSERT INTO conversations VALUES ('/srv/odd', ?)", (value,))
        connection.execute("INSERT INTO conversations_v2 VALUES ('/srv/odd', NULL, ?, 1, 1)", (value,))
        connection.execute("INSERT INTO conversations_v2 VALUES (5, 'a/b', ?, NULL, NULL)", (value,))
        index(database, [str(path)])
        index(database, [])
    assert SAID["conversation_id"] in {row[0] for row in contents(database)["sessions"]}


def test_a_database_of_another_program_is_said_to_have_no_conversations(tmp_path: Path, database: Path) -> None:
    path = tmp_path / "data.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bird (id)")
    index(database, [str(path.parent)])
    reasons = {row[0]: row[2] for row in contents(database)["files"]}
    assert reasons[str(path)] == "can't be read: it has no table of conversations"
