"""Antigravity's transcripts become events."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePath
from typing import Any

import pytest
from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.providers.antigravity import ANTIGRAVITY
from agtrace_indexer.providers.antigravity import parser as antigravity
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

from tests.conftest import SAMPLES
from tests.contents import contents

HOME = SAMPLES / "gemini" / "antigravity-cli"
OWN_SAMPLES = sorted(HOME.rglob("*.jsonl"))
LOG = PurePath("/home/mira/.gemini/antigravity-cli/brain/c1/.system_generated/logs/transcript.jsonl")


def step(source: str, kind: str, content: Any = None, **more: Any) -> Record:
    record = {"step_index": 0, "source": source, "type": kind, "status": "DONE", "created_at": "2026-08-26T15:00:00Z"}
    return {**record, "content": content, **more}


def asked(said: str) -> Record:
    return step("USER_EXPLICIT", "USER_INPUT", said)


def planned(*names: str, **more: Any) -> Record:
    return step("MODEL", "PLANNER_RESPONSE", tool_calls=[{"name": name, "args": {}} for name in names], **more)


def ran(kind: str, said: str = "fine", status: str = "DONE") -> Record:
    return step("MODEL", kind, said, status=status)


def read(*records: Record, state: LogState | None = None) -> list[Payload]:
    state = state or LogState()
    return [draft.payload for record in records for draft in antigravity.drafts(record, state)]


def results(*records: Record) -> list[ToolResult]:
    return [payload for payload in read(*records) if isinstance(payload, ToolResult)]


# --- whose log it is ---


def test_a_conversation_has_the_id_of_its_folder() -> None:
    assert antigravity.begin(LOG).sessions[""].id == "c1"
    assert antigravity.begin(PurePath("/tmp/transcript.jsonl")).sessions[""].id is None


def test_its_home_is_beside_that_of_gemini_cli(own_home: Path, database: Path) -> None:
    shutil.copytree(SAMPLES / "gemini", own_home / ".gemini")
    roots = ANTIGRAVITY.home.roots({}, own_home)
    assert roots[0] == own_home / ".gemini" / "antigravity-cli" / "brain"
    index(database, [str(own_home / ".gemini")])
    found = contents(database)["sessions"]
    assert sorted(session[3] for session in found) == ["antigravity", "antigravity", "gemini", "gemini"]
    shutil.copytree(roots[0], own_home / ".gemini" / "antigravity-ide" / "brain")  # to go on in the editor
    index(database, [str(own_home / ".gemini")])
    assert sum(session[16] for session in contents(database)["sessions"]) == sum(session[16] for session in found)


@pytest.mark.parametrize("first", ["transcript.jsonl", "transcript_full.jsonl", None])
def test_of_two_transcripts_the_one_in_which_nothing_is_cut_is_read_whichever_came_first(
    first: str | None, tmp_path: Path, database: Path
) -> None:
    (full,) = [path for path in OWN_SAMPLES if path.name == "transcript_full.jsonl"]
    cut = full.read_bytes().replace(b"surveys/2026", b"surveys")
    written = {"transcript.jsonl": cut, "transcript_full.jsonl": full.read_bytes()}
    logs = tmp_path / "brain" / full.parts[-4] / ".system_generated" / "logs"
    logs.mkdir(parents=True)
    if first is not None:
        (logs / first).write_bytes(written[first])
        index(database, [str(tmp_path / "brain")])
    for name, content in written.items():
        (logs / name).write_bytes(content)
    index(database, [str(tmp_path / "brain")])
    fresh = tmp_path / "fresh" / "index.sqlite3"
    index(fresh, [str(tmp_path / "brain")])
    found = contents(database)
    assert {row[0].rpartition("/")[2]: row[1] for row in found["files"]} == {
        "transcript.jsonl": "duplicate",
        "transcript_full.jsonl": "log",
    }
    assert len(found["sessions"]) == 1
    assert found == contents(fresh)


def test_files_of_the_same_names_elsewhere_are_two_logs() -> None:
    assert ANTIGRAVITY.forms is not None
    assert ANTIGRAVITY.forms.of("/tmp/logs/transcript.jsonl") is None
    assert ANTIGRAVITY.forms.of(str(LOG.parent / "transcript_of_a_talk.jsonl")) is None


# --- what is said ---


def test_a_request_is_what_the_tag_contains_and_the_rest_is_injected() -> None:
    said = "<USER_REQUEST>\nhi\nthere\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nnoon\n</ADDITIONAL_METADATA>"
    assert read(asked(said)) == [
        User("hi\nthere", UserKind.HUMAN),
        User("<ADDITIONAL_METADATA>\nnoon\n</ADDITIONAL_METADATA>", UserKind.INJECTED),
    ]
    assert read(asked("hi")) == [User("hi", UserKind.HUMAN)]
    assert read(asked("<USER_REQUEST>\nhi")) == [User("hi", UserKind.HUMAN)], "a request that was cut"
    assert read(step("SYSTEM", "USER_INPUT", "hi")) == [User("hi", UserKind.INJECTED)]


def test_the_model_is_the_one_that_was_chosen_last() -> None:
    state = LogState()
    told = (
        "<USER_REQUEST>x</USER_REQUEST>The user changed setting `Model Selection` from None to Gemini 3.1 Pro (Low). No"
    )
    read(asked(told), state=state)
    assert state.sessions[""].model == "Gemini 3.1 Pro (Low)"


def test_a_response_is_a_step_with_its_thought_its_text_and_its_calls() -> None:
    args = {"CommandLine": '"ls -l"', "Wait": "500", "Plain": "not JSON", "Other": 1}
    call = {"name": "run_command", "args": args}
    record = step("MODEL", "PLANNER_RESPONSE", "so", thinking="hm", tool_calls=[call])
    drafts = list(antigravity.drafts(record, LogState()))
    decoded = {"CommandLine": "ls -l", "Wait": 500, "Plain": "not JSON", "Other": 1}
    assert [draft.payload for draft in drafts] == [
        Reasoning("hm"),
        Message("so"),
        ToolCall("response-1.0", "run_command", decoded),
    ]
    assert {draft.step for draft in drafts} == {"response-1"}


@pytest.mark.parametrize(
    ("records", "answered"),
    [
        ([planned("list_dir", "view_file"), ran("LIST_DIRECTORY"), ran("VIEW_FILE")], ["response-1.0", "response-1.1"]),
        ([planned("run_command", "view_file"), ran("VIEW_FILE"), ran("RUN_COMMAND")], ["response-1.1", "response-1.0"]),
        ([planned("view_file"), ran("VIEW_FILE"), ran("VIEW_FILE")], ["response-1.0", None]),
        ([planned("view_file"), planned("view_file"), ran("VIEW_FILE")], ["response-2.0"]),
        ([planned("view_file"), asked("stop"), ran("VIEW_FILE")], [None]),
    ],
)
def test_a_result_answers_the_call_of_its_name_or_the_first_that_waits(
    records: list[Record], answered: list[str | None]
) -> None:
    assert [result.call_id for result in results(*records)] == answered


TIMES = "Created At: 2026-08-26T15:00:00Z\nCompleted At: 2026-08-26T15:00:03Z\n\n\t\t\t\t"


@pytest.mark.parametrize(
    ("record", "outcome", "source", "exit_code", "duration"),
    [
        (ran("RUN_COMMAND", f"{TIMES}The command completed successfully.\nOutput:"), Outcome.OK, "text", 0, 3000),
        (ran("RUN_COMMAND", f"{TIMES}The command failed with exit code: 7"), Outcome.FAILED, "text", 7, 3000),
        (ran("RUN_COMMAND", f"{TIMES}Background command"), Outcome.UNKNOWN, None, None, 3000),
        (ran("RUN_COMMAND", "x\nThe command failed with exit code: 7"), Outcome.UNKNOWN, None, None, None),
        (ran("VIEW_FILE"), Outcome.OK, "structure", None, None),
        (ran("VIEW_FILE", status="ERROR"), Outcome.FAILED, "structure", None, None),
        (ran("VIEW_FILE", status="CANCELED"), Outcome.INTERRUPTED, "structure", None, None),
        (ran("VIEW_FILE", status="RUNNING"), Outcome.RUNNING, "structure", None, None),
        (ran("VIEW_FILE", status="ODD"), Outcome.UNKNOWN, None, None, None),
    ],
)
def test_the_outcome_of_an_execution(
    record: Record, outcome: Outcome, source: str | None, exit_code: int | None, duration: int | None
) -> None:
    (result,) = results(record)
    assert (result.outcome, result.outcome_source, result.exit_code, result.duration_ms) == (
        outcome,
        source and OutcomeSource(source),
        exit_code,
        duration,
    )


def test_a_result_names_the_conversation_that_it_started_which_is_its_child(database: Path) -> None:
    index(database, [str(HOME)])
    parent, child = contents(database)["sessions"]
    assert child[39] == parent[-2]


@pytest.mark.parametrize("kind", ["CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE"])
def test_what_the_system_tells_the_model_is_injected(kind: str) -> None:
    assert read(step("SYSTEM", kind, "mind this")) == [User("mind this", UserKind.INJECTED)]
    state = LogState()
    assert read(step("SYSTEM", kind), state=state) == [] and state.skipped == [kind]


def test_checkpoints_and_errors_are_notifications() -> None:
    assert read(step("SYSTEM", "CHECKPOINT", "so far"), step("SYSTEM", "ERROR_MESSAGE", "oh")) == [
        Notification("checkpoint", "so far"),
        Notification("error_message", "oh"),
    ]


@pytest.mark.parametrize(
    ("folder", "cwd"), [("/w", "/w"), ("/home/mira/.gemini/antigravity-cli/scratch", None), (None, None)]
)
def test_the_folder_is_that_of_the_first_command_unless_it_is_antigravitys_own(folder: Any, cwd: str | None) -> None:
    state = LogState()
    call = {"name": "run_command", "args": {"Cwd": json.dumps(folder)}}
    read(step("MODEL", "PLANNER_RESPONSE", tool_calls=[call]), state=state)
    assert state.sessions[""].cwd == cwd
