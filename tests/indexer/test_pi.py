"""Logs in Pi's format become events: Pi's own, oh-my-pi's and OpenClaw's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path, PurePath
from typing import Any

import pytest
import zstandard
from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.providers.pi import parser as pi
from agtrace_indexer.providers.pi.parser import OhMyPi, OpenClaw
from agtrace_indexer.providers.provider import Parser
from agtrace_indexer.providers.registry import recognize
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

TIME = "2026-08-18T09:00:00.000Z"

HEADER: Record = {"type": "session", "version": 3, "id": "s1", "timestamp": TIME, "cwd": "/w"}


def entry(kind: str, **more: Any) -> Record:
    return {"type": kind, "id": "a1b2c3d4", "parentId": None, "timestamp": TIME, **more}


def message(role: str, content: Any = None, **more: Any) -> Record:
    return entry("message", message={"role": role, "content": content, **more})


def answer(*content: Any, **more: Any) -> Record:
    return message("assistant", list(content), model="m", **more)


def result(said: str, failed: Any = False) -> Record:
    content = [{"type": "text", "text": said}]
    return message("toolResult", content, toolCallId="c1", toolName="bash", isError=failed)


def read(*records: Record, parser: Parser = pi, state: LogState | None = None) -> list[Payload]:
    state = state or LogState()
    said = [draft for record in records for draft in parser.drafts(record, state)]
    return [draft.payload for draft in said if isinstance(draft, Draft)]


def state_after(*records: Record, parser: Parser = pi) -> LogState:
    state = parser.begin(PurePath("x.jsonl"))
    for record in records:
        list(parser.drafts(record, state))
    return state


# --- whose log it is ---


def test_a_session_and_messages_are_recognized_by_their_keys() -> None:
    assert pi.recognizes(HEADER)
    assert pi.recognizes(message("user", "hi", timestamp=1))
    assert pi.recognizes(answer(stopReason="stop"))
    assert pi.recognizes(result("fine"))
    assert not pi.recognizes(message("user", "hi"))
    assert not pi.recognizes({"type": "session", "id": "s1", "sessionId": "s1", "timestamp": TIME})
    assert not pi.recognizes({"type": "message", "uuid": "u", "parentId": None, "message": {"role": "user"}})


@pytest.mark.parametrize(
    ("path", "writer"),
    [
        ("/home/mira/.pi/agent/sessions/--w--/2026_s1.jsonl", "pi"),
        ("/home/mira/.omp/agent/sessions/--w--/2026_s1.jsonl", "oh_my_pi"),
        ("/home/mira/.openclaw/agents/main/sessions/s1.jsonl", "openclaw"),
        ("/srv/state/agents/main/sessions/s1.jsonl.deleted.1", "openclaw"),
        ("C:\\Users\\mira\\.clawdbot\\agents\\main\\sessions\\s1.jsonl", "openclaw"),
        ("/home/mira/openclaw/.pi/sessions/s1.jsonl", "pi"),
        ("/tmp/copied.jsonl", "pi"),
    ],
)
def test_the_place_of_a_log_shows_which_of_the_three_wrote_it(path: str, writer: str) -> None:
    assert recognize(HEADER, path) == writer


def test_a_padded_title_shows_that_oh_my_pi_wrote_a_log_wherever_it_is() -> None:
    title = {"type": "title", "v": 1, "title": "", "updatedAt": TIME, "pad": "   "}
    assert recognize(title, "/tmp/copied.jsonl") == "oh_my_pi"
    assert recognize({"type": "title", "title": "a page"}, "/tmp/copied.jsonl") is None


# --- what is said ---


def test_a_response_is_divided_into_its_blocks_with_its_tokens() -> None:
    usage = {"input": 10, "output": 5, "cacheRead": 7, "cacheWrite": 3, "reasoning": 2, "cost": {"total": 0.25}}
    call = {"type": "toolCall", "id": "call_1|fc_1", "name": "read", "arguments": {"path": "x"}}
    thought = {"type": "thinking", "thinking": "hm"}
    said = read(answer(thought, {"type": "text", "text": "so"}, call, usage=usage, responseId="resp_1"))
    assert said == [
        Reasoning("hm"),
        Message("so"),
        ToolCall("call_1|fc_1", "read", {"path": "x"}),
        TokenUsage("resp_1", "m", 10, 3, None, 7, 5, 2, cost_usd=0.25),
    ]


def test_the_tokens_of_a_response_that_failed_are_unknown_not_zero() -> None:
    nothing = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    half = read(answer({"type": "text", "text": "I"}, usage=nothing, stopReason="aborted", errorMessage="stopped"))
    assert half == [
        Message("I"),
        TokenUsage(None, "m", None, None, None, None, None, None, complete=False),
        Notification("aborted", "stopped"),
    ]
    assert read(answer(usage=nothing, stopReason="error", errorMessage="429")) == [Notification("error", "429")]


def test_an_interruption_ends_the_calls_that_wait() -> None:
    (told,) = pi.drafts(answer(stopReason="aborted"), LogState())
    assert isinstance(told, Draft) and told.ends_turn


def test_lines_that_openclaw_writes_in_the_models_place_are_no_responses() -> None:
    mirror = message("assistant", [{"type": "text", "text": "hi"}], model="delivery-mirror", usage={"input": 1})
    (draft,) = OpenClaw.drafts(mirror, LogState())
    assert isinstance(draft, Draft) and draft.payload == Message("hi") and draft.step is None
    of_codex = mirror["message"] | {"model": "m", "idempotencyKey": "codex-app-server:thread:turn:assistant"}
    _, figures = OpenClaw.drafts({**mirror, "message": of_codex}, LogState())
    assert isinstance(figures, Draft) and isinstance(figures.payload, TokenUsage)
    assert (figures.payload.input_tokens, figures.payload.complete) == (None, False), "Codex's own log has them"


@pytest.mark.parametrize(
    ("said", "failed", "outcome", "source", "exit_code"),
    [
        ("fine", False, Outcome.OK, OutcomeSource.STRUCTURE, None),
        ("Command exited with code 1", False, Outcome.OK, OutcomeSource.STRUCTURE, None),
        ("boom\n\nCommand exited with code 127", True, Outcome.FAILED, OutcomeSource.STRUCTURE, 127),
        ("no such file", True, Outcome.FAILED, OutcomeSource.STRUCTURE, None),
        ("Command timed out after 9 seconds", True, Outcome.FAILED, OutcomeSource.STRUCTURE, None),
        ("half\n\nCommand aborted", True, Outcome.INTERRUPTED, OutcomeSource.TEXT, None),
        ("Operation aborted", True, Outcome.INTERRUPTED, OutcomeSource.TEXT, None),
        ("Skipped due to queued user message.", True, Outcome.INTERRUPTED, OutcomeSource.TEXT, None),
        ("Tool execution was blocked", True, Outcome.REJECTED, OutcomeSource.TEXT, None),
        ("fine", None, Outcome.UNKNOWN, None, None),
    ],
)
def test_the_outcome_of_an_execution(
    said: str, failed: Any, outcome: Outcome, source: OutcomeSource | None, exit_code: int | None
) -> None:
    (found,) = read(result(said, failed))
    assert found == ToolResult("c1", said, outcome, source, exit_code)


def test_a_users_own_command_is_none_of_the_models() -> None:
    ran = message("bashExecution", command="ls", output="a\n", exitCode=2, excludeFromContext=True)
    assert read(ran) == [
        User("!!ls", UserKind.COMMAND),
        User("a\n\nCommand exited with code 2", UserKind.INJECTED),
    ]


@pytest.mark.parametrize("role", ["custom", "hookMessage", "developer", "system"])
def test_what_extensions_say_is_injected(role: str) -> None:
    assert read(message(role, "by the way")) == [User("by the way", UserKind.INJECTED)]
    assert read(entry("custom_message", content="by the way")) == [User("by the way", UserKind.INJECTED)]


def test_a_compaction_has_a_summary_and_a_sign() -> None:
    told, summary = read(entry("compaction", summary="so far", tokensBefore=9))
    assert (told, summary) == (
        Notification("compaction", '{"tokensBefore":9}'),
        User("so far", UserKind.COMPACTION_SUMMARY),
    )
    assert read(entry("branch_summary", summary="left")) == [User("left", UserKind.COMPACTION_SUMMARY)]


def test_a_call_that_is_no_part_of_the_conversation_has_only_tokens() -> None:
    usage = {"input": 4, "output": 1, "cost": {"total": 0.5}}
    state = state_after(entry("model_change", modelId="tiny"))
    for told in (
        entry("model_usage", usage=usage), entry("compaction", summary="so far", usage=usage),
        entry("branch_summary", summary="left", usage=usage), entry("custom", usage=usage),
        message("toolResult", "done", toolCallId="c1", usage=usage),
    ):  # fmt: skip
        (*_, last) = pi.drafts(told, state)
        assert last.payload == TokenUsage(None, "tiny", 4, None, None, None, 1, None, cost_usd=0.5), told
        assert last.step is None
    hidden = message("toolResult", "done", details={"results": [{"usage": usage}]})
    for told in (entry("custom", data={"usage": usage}), hidden):
        assert state_after(told).unknown == ["usage/extension"]


def test_settings_and_state_are_left_out_by_name() -> None:
    state = LogState()
    assert read(entry("custom", data="x" * 99), entry("label"), entry("thinking_level_change"), state=state) == []
    assert state.skipped == ["custom", "label", "thinking_level_change"]


# --- the session ---


def test_the_first_line_says_what_the_session_is() -> None:
    change = entry("model_change", provider="anthropic", modelId="claude-opus-4-5")
    facts = state_after(HEADER, change, entry("session_info", name="Otters")).sessions[""]
    assert (facts.id, facts.cwd, facts.model, facts.title, facts.kind) == (
        "s1", "/w", "claude-opus-4-5", "Otters", "main",
    )  # fmt: skip
    assert state_after(entry("session_info", name="Otters"), entry("session_info", name="")).sessions[""].title is None
    assert state_after(HEADER, {**HEADER, "id": "s2"}).sessions[""].id == "s1"


@pytest.mark.parametrize(
    "parent", ["/x/2026-08-18T09-00-00-000Z_p1.jsonl", "C:\\x\\2026-08-18T09-00-00-000Z_p1.jsonl", "/x/p1.jsonl", "p1"]
)
def test_a_session_with_older_entries_than_itself_is_a_fork(parent: str) -> None:
    header = {**HEADER, "parentSession": parent, "timestamp": "2026-08-19T00:00:00Z"}
    copied = state_after(header, message("user", "hi")).sessions[""]
    handed = state_after({**header, "timestamp": TIME}, message("user", "hi")).sessions[""]
    assert [(facts.parent_id, facts.kind) for facts in (copied, handed)] == [("p1", "fork"), ("p1", "main")]


def test_a_forks_copies_count_in_the_session_that_they_come_from(database: Path) -> None:
    index(database, [str(SAMPLES / "pi")])
    original, fork = contents(database)["sessions"]
    assert (original[5], fork[5], fork[39]) == ("main", "fork", original[-2])
    assert (fork[16], fork[17], fork[33], fork[34]) == (1, 1, 1, 4), "turns and calls, its own and the copied ones"


def test_a_sub_agents_log_is_in_a_folder_named_like_its_parents(tmp_path: Path) -> None:
    log = tmp_path / "2026-08-20T14-00-00-000Z_p1" / "Scout" / "Deep.jsonl"
    log.parent.mkdir(parents=True)
    log.parent.with_name("Scout.jsonl").write_text(json.dumps({**HEADER, "id": "scout"}) + "\n")
    facts = [OhMyPi.begin(path).sessions[""] for path in (log.parent.with_name("Scout.jsonl"), log)]
    facts.append(pi.begin(log.parents[1] / "run-1" / "run-0" / "session.jsonl").sessions[""])
    told = [("p1", "subagent", "Scout"), ("scout", "subagent", "Deep"), ("p1", "subagent", None)]
    assert [(f.parent_id, f.kind, f.agent_type) for f in facts] == told
    log.parent.with_name("Scout.jsonl").unlink()
    assert OhMyPi.begin(log).sessions[""].parent_id is None
    assert OhMyPi.begin(log.parent.parent.with_suffix(".jsonl")).sessions[""].kind == "main"


def test_in_a_sub_agents_log_the_parent_speaks() -> None:
    state = OhMyPi.begin(PurePath("/s/2026-08-20T14-00-00-000Z_p1/Scout.jsonl"))
    assert read(message("user", "look"), parser=OhMyPi(), state=state) == [User("look", UserKind.TASK)]


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("[Telegram Mira id:1] hi", ["human"]),
        ("[cron:1 tides] say it", ["injected"]),
        ("Read HEARTBEAT.md if it exists.", ["injected"]),
        ("System: [2026-08-21] connected\nSystem: [2026-08-21] ready\n\nhi", ["injected", "human"]),
        ('Conversation info (untrusted metadata):\n```json\n{"a": 1}\n```\n\nhi', ["injected", "human"]),
        ("System: [2026-08-21] connected\n[cron:1 tides] say it", ["injected"]),
        ("System: [2026-08-21] connected", ["injected"]),
    ],
)
def test_openclaw_writes_more_into_the_users_role_than_what_the_user_says(said: str, kinds: list[str]) -> None:
    found = read(message("user", said), parser=OpenClaw())
    assert [str(text.kind) for text in found if isinstance(text, User)] == kinds
    assert " ".join(text.text for text in found if isinstance(text, User)).split() == said.split()


# --- a log that is rewritten in place ---


def titled(title: str, *lines: bytes) -> bytes:
    slot = {"type": "title", "v": 1, "title": title, "updatedAt": TIME, "pad": ""}
    pad = " " * (255 - len(json.dumps(slot)))
    return b"".join(line + b"\n" for line in (json.dumps({**slot, "pad": pad}).encode(), *lines))


LINES = [
    json.dumps(record).encode() for record in (HEADER, message("user", "hi"), answer({"type": "text", "text": "ho"}))
]


@pytest.mark.parametrize("grown", [False, True])
def test_a_new_title_in_the_first_line_is_the_same_session_with_a_new_title(
    grown: bool, tmp_path: Path, database: Path
) -> None:
    log = tmp_path / "logs" / "s1.jsonl"
    log.parent.mkdir()
    log.write_bytes(titled("", *LINES[:2]))
    index(database, [str(log.parent)])
    with log.open("r+b") as file:
        file.write(titled("Otters", *LINES[: 3 if grown else 2]))
    index(database, [])
    after = contents(database)
    assert [(session[0], session[11]) for session in after["sessions"]] == [("s1", "Otters")]
    fresh = tmp_path / "fresh" / "index.sqlite3"
    index(fresh, [str(log.parent)])
    assert after == contents(fresh)


# --- OpenClaw's database ---


def told(id: str, role: str, said: str, **more: object) -> str:
    message = {"role": role, "content": [{"type": "text", "text": said}], **more}
    return json.dumps({"type": "message", "id": id, "timestamp": f"2026-09-10T10:00:0{id}.000Z", "message": message})


CLAW = "43aaaaaa-0000-4000-8000-000000000043"
HEAD_OF_CLAW = json.dumps({"type": "session", "version": 3, "id": CLAW, "timestamp": "2026-09-10T10:00:00Z"})
SPENT = {"model": "m", "usage": {"input": 1000, "output": 100, "cacheRead": 0, "cacheWrite": 0}}
LINES_OF_CLAW = [HEAD_OF_CLAW, told("1", "user", "when is low tide"), told("2", "assistant", "at nine", **SPENT)]
AGAIN = told("3", "assistant", "at ten", **SPENT)


def claws(tmp_path: Path) -> Path:
    folder = tmp_path / ".openclaw" / "agents" / "main" / "agent"
    folder.mkdir(parents=True)
    return folder / "openclaw-agent.sqlite"


def put(database: Path, lines: Iterable[str], *, packed: bool = False) -> None:
    """Write a session's events anew, as large ones are since 2026.9.6 if they are to be packed."""
    with closing(sqlite3.connect(database)) as connection, connection:
        columns = "session_id, seq INTEGER, event_json, created_at, event_zstd, PRIMARY KEY (session_id, seq)"
        connection.execute(f"CREATE TABLE IF NOT EXISTS transcript_events ({columns})")
        connection.execute("DELETE FROM transcript_events")
        rows = [(CLAW, seq, line, 1789000000000 + hash(line) % 1000) for seq, line in enumerate(lines)]
        connection.executemany("INSERT INTO transcript_events VALUES (?, ?, ?, ?, NULL)", rows)
        if packed:
            connection.create_function("packed", 1, lambda said: zstandard.compress(said.encode()))
            connection.execute("UPDATE transcript_events SET event_zstd = packed(event_json), event_json = NULL")


def of_claw(database: Path) -> tuple[object, ...]:
    with closing(sqlite3.connect(database)) as connection:
        sql = "SELECT provider, own_id, turn_count, input_tokens, output_tokens, responses FROM session"
        (row,) = connection.execute(sql).fetchall()
    return tuple(row)


@pytest.mark.parametrize("packed", [False, True])
def test_a_conversation_in_openclaws_database_is_a_log_that_grows_and_is_rewritten(
    packed: bool, database: Path, tmp_path: Path
) -> None:
    store = claws(tmp_path)
    put(store, LINES_OF_CLAW, packed=packed)
    leftover = tmp_path / ".openclaw" / "agents" / "main" / "sessions" / f"{CLAW}.jsonl"
    leftover.parent.mkdir()
    leftover.write_text("\n".join(LINES_OF_CLAW) + "\n")
    index(database, [str(tmp_path / ".openclaw")])
    assert of_claw(database) == ("openclaw", CLAW, 1, 1000, 100, 1)
    put(store, [*LINES_OF_CLAW, AGAIN], packed=packed)
    index(database, [])
    assert of_claw(database) == ("openclaw", CLAW, 1, 2000, 200, 2)
    put(store, [HEAD_OF_CLAW, LINES_OF_CLAW[2], AGAIN, told("4", "assistant", "at two", **SPENT)], packed=packed)
    index(database, [])
    assert of_claw(database)[3:] == (3000, 300, 3)


def test_a_conversation_that_openclaw_archives_stays(database: Path, tmp_path: Path) -> None:
    store = claws(tmp_path)
    put(store, LINES_OF_CLAW)
    index(database, [str(tmp_path / ".openclaw")])
    put(store, [])
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE session_transcript_archives (session_id, archive_name, archive_blob)")
        kept = zstandard.compress("\n".join(LINES_OF_CLAW).encode())
        connection.execute("INSERT INTO session_transcript_archives VALUES (?, ?, ?)", (CLAW, "one", kept))
    for folder, name in (
        ("sessions", f"{CLAW}.jsonl.deleted.2026.ab"),
        ("session-sqlite-import-archive", f"m.{CLAW}.jsonl.imported-1"),
        ("sessions", f"{CLAW}.jsonl.bak-1-2.tmp"),
        ("sessions", f"{CLAW}.checkpoint.1-2.jsonl"),
    ):
        (store.parents[1] / folder).mkdir(exist_ok=True)
        (store.parents[1] / folder / name).write_text("\n".join(LINES_OF_CLAW))
    for known in (database, tmp_path / "new" / "index.sqlite3"):
        index(known, [str(tmp_path / ".openclaw")])
        index(known, [])
        assert of_claw(known) == ("openclaw", CLAW, 1, 1000, 100, 1)
