"""Reasoning only: what is listed, what is counted, what follows each thought, and that each can be opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agtrace_schema.codes import EVENT_TYPE_CODES
from agtrace_schema.events import EventType

from agtrace.text.lines import without_controls
from tests import depth
from tests.agtrace.asking import PORTABLE, Asker, ClaudeLog, check, claude_log
from tests.conftest import SAMPLES
from tests.contents import texts

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
CODEX_LOCK, OLD_CODEX = "01a11132", "01a0612d"
LONG = 51_200
NAME = "get_reasoning_chain"


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    return claude_log(tmp_path / "logs", ONE).prompt("why does it lock?")


def asker_of(folder: Path) -> Asker:
    return Asker(folder / "data", folder / "logs")


def think(log: ClaudeLog, *parts: str | tuple[str], **more: Any) -> ClaudeLog:
    """One response: a text is thought, `("Bash",)` is called, `("!text",)` is said."""
    content: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            content.append({"type": "thinking", "thinking": part, "signature": "c2ln"})
        elif part[0].startswith("!"):
            content.append({"type": "text", "text": part[0][1:]})
        else:
            call = f"toolu_{log.lines}_{number}"
            content.append({"type": "tool_use", "id": call, "name": part[0], "input": {"command": "ls"}})
    return log.write("assistant", content, **more)


def pages(asker: Asker, **arguments: Any) -> Iterator[dict[str, Any]]:
    """The answers from the first to the last page, each within its budget."""
    while True:
        given = asker.answers.ask(NAME, arguments)
        assert not given.is_error, given.text
        check(given, LONG if arguments.get("limit", 10) > 10 else PORTABLE)
        yield given.value
        arguments["cursor"] = given.value.get("pagination", {}).get("next_cursor")
        if arguments["cursor"] is None:
            return


def chain(asker: Asker, **arguments: Any) -> list[dict[str, Any]]:
    """All thoughts, the pages joined."""
    return [thought for page in pages(asker, **arguments) for thought in page["data"]["chain"]]


def stored(asker: Asker) -> dict[str, dict[int, str]]:
    """Session -> event_index -> text of the reasoning that isn't superseded: a plain scan."""
    connection = sqlite3.connect(asker.settings.database)
    live = set(
        connection.execute(
            "SELECT s.uid, e.event_index FROM event e JOIN session s ON s.id = e.session_id "
            "WHERE e.type = ? AND e.superseded_by IS NULL",
            (EVENT_TYPE_CODES.index(EventType.REASONING),),
        )
    )
    found: dict[str, dict[int, str]] = {uid: {} for (uid,) in connection.execute("SELECT uid FROM session")}
    for uid, index, text, _ in texts(connection):
        if (uid, index) in live:
            found[uid][index] = text
    return found


# -- what is listed ------------------------------------------------------------------------------


def test_each_thought_says_what_the_model_did_next_in_its_step(log: ClaudeLog, tmp_path: Path) -> None:
    """Up to the next thought of the same step, and nothing of the step behind."""
    think(log, "look first", ("!let me look",), ("Bash",), ("Bash",), ("Read",))
    think(log, "one", ("Grep",), "two", ("!it locks because of WAL",))
    think(log, "and then nothing")
    think(log, "the last", ("!done",))
    shown = chain(asker_of(tmp_path), session_id=ONE)
    assert [(thought["text"], thought.get("next")) for thought in shown] == [
        ("look first", "calls Bash x2, Read"),
        ("one", "calls Grep"),
        ("two", "says 'it locks because of WAL'"),
        ("and then nothing", None),
        ("the last", "says 'done'"),
    ]
    assert [(thought["turn_index"], thought["step_index"]) for thought in shown] == [
        (0, 0), (0, 1), (0, 1), (0, 2), (0, 3)
    ]  # fmt: skip
    assert all(len(thought.get("next", "")) <= 100 for thought in shown)


def test_a_long_thought_is_cut_and_says_how_long_it_is_and_the_hint_opens_all_of_it(
    log: ClaudeLog, tmp_path: Path
) -> None:
    longest = "潮の満ち引き🌊\n" * 900
    think(log, "short").write("user", [])
    think(log, "x" * 1_000)
    think(log, longest)
    think(log, "y" * 1_001)
    asker = asker_of(tmp_path)
    value = asker.ask(NAME, session_id=ONE)
    shown = value["data"]["chain"]
    assert [thought.get("chars") for thought in shown] == [None, None, len(longest), 1_001]
    assert all(len(thought["text"]) <= 1_000 for thought in shown)
    assert shown[2]["text"] == longest[:997] + "..."
    opened = asker.run(value["hint"])["data"]
    assert opened["event_index"] == shown[2]["event_index"]
    assert asker.body(ONE, opened["event_index"]) == longest


def test_one_turn_is_asked_for_by_its_index(log: ClaudeLog, tmp_path: Path) -> None:
    think(log, "in the first", "")
    log.prompt("and now?")
    think(log, "in the second", ("!yes",))
    asker = asker_of(tmp_path)
    value = asker.ask(NAME, session_id=ONE, turn_index=1)
    assert [thought["text"] for thought in value["data"]["chain"]] == ["in the second"]
    assert (value["data"]["total"], value["data"]["hidden"], value["data"]["turn_index"]) == (1, 0, 1)
    assert value["summary"] == "Turn 1 of session aaaaaaaa: 1 thought"
    assert asker.ask(NAME, session_id=ONE)["summary"] == "Session aaaaaaaa: 2 thoughts, 1 more hidden"
    assert asker.error(NAME, session_id=ONE, turn_index=2)["code"] == "invalid_range"


def test_a_copied_thought_is_marked_and_counted(log: ClaudeLog, tmp_path: Path) -> None:
    think(log, "of the origin", ("!said",))
    think(log.fork(TWO).prompt("go on elsewhere"), "of the fork", ("!said, too",))
    asker = asker_of(tmp_path)
    assert [(t["text"], t.get("copied")) for t in chain(asker, session_id=TWO)] == [
        ("of the origin", True), ("of the fork", None)
    ]  # fmt: skip
    value = asker.ask(NAME, session_id=TWO)
    assert (value["data"]["total"], value["data"]["copied"]) == (2, 1)
    assert "copied" not in asker.ask(NAME, session_id=ONE)["data"]


def test_a_thought_that_was_taken_back_is_neither_listed_nor_counted(tmp_path: Path) -> None:
    def message(number: int, kind: str, *thoughts: str) -> dict[str, Any]:
        said = [
            {"subject": text, "description": text, "timestamp": f"2026-11-01T10:00:{number:02}Z"} for text in thoughts
        ]
        when = f"2026-11-01T10:00:{number:02}Z"
        return {"id": f"m{number}", "timestamp": when, "type": kind, "content": f"text {number}", "thoughts": said}

    messages = [message(0, "user"), message(1, "gemini", "kept"), message(2, "user"), message(3, "gemini", "dropped")]
    head = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-11-01T10:00:00Z", "kind": "main"}
    path = tmp_path / "logs" / "session-1.jsonl"
    path.parent.mkdir()
    kept = {"$set": {"messages": messages[:2]}}
    path.write_text("".join(json.dumps(record) + "\n" for record in [head, *messages, kept]))
    value = asker_of(tmp_path).ask(NAME, session_id=ONE)
    assert ["kept" in thought["text"] for thought in value["data"]["chain"]] == [True]
    assert (value["data"]["total"], value["data"]["hidden"]) == (1, 0)


# -- where there is nothing to read --------------------------------------------------------------


def test_signatures_without_a_text_are_counted_and_said_to_be_the_reason(log: ClaudeLog, tmp_path: Path) -> None:
    think(log, "", ("Bash",))
    think(log, "", ("!done",))
    asker = asker_of(tmp_path)
    value = asker.ask(NAME, session_id=ONE)
    assert value["summary"] == "Session aaaaaaaa: no readable reasoning: 2 thoughts, logged as signatures only"
    assert value["data"] == {"session_id": "aaaaaaaa", "total": 0, "hidden": 2, "chain": []}
    assert not value["pagination"]["has_more"] and asker.run(value["hint"])["success"]


def test_encrypted_reasoning_of_codex_is_counted_and_said_to_be_the_reason(samples: Asker) -> None:
    value = samples.ask(NAME, session_id=CODEX_LOCK)
    (path,) = SAMPLES.rglob(f"*{CODEX_LOCK}*.jsonl")
    items = [json.loads(line)["payload"] for line in path.read_bytes().splitlines()]
    encrypted = sum(item.get("type") == "reasoning" and not item.get("summary") for item in items)
    assert encrypted and value["data"]["hidden"] == encrypted
    assert value["summary"].endswith(f"no readable reasoning: {encrypted} thought, logged encrypted or empty")


def test_a_session_without_any_thinking_says_so(log: ClaudeLog, tmp_path: Path) -> None:
    log.say("because two writers hold it")
    asker = asker_of(tmp_path)
    value = asker.ask(NAME, session_id=ONE)
    assert value["summary"] == "Session aaaaaaaa: no reasoning: claude_code logged none here"
    assert asker.run(value["hint"])["success"]


# -- pages and sizes -----------------------------------------------------------------------------


LIMITS = (1, 3, 10, 50)


@pytest.mark.parametrize("limit", LIMITS)
def test_pages_are_disjoint_and_complete_for_every_real_session(each: Asker, limit: int) -> None:
    """The total is exact, and every thought that a plain scan finds is listed once, in file order."""
    for uid, found in depth.part([*stored(each).items()], LIMITS.index(limit), 2):
        readable = [index for index, text in sorted(found.items()) if text]
        if not readable:
            continue
        listed = []
        for page in pages(each, session_id=uid, limit=limit):
            assert page["data"]["total"] == len(readable)
            assert page.get("pagination", {}).get("total_count", len(readable)) == len(readable)
            listed += [thought["event_index"] for thought in page["data"]["chain"]]
        assert listed == readable


def test_every_thought_shown_is_the_beginning_of_the_event_that_it_names(each: Asker) -> None:
    for uid, found in stored(each).items():
        shown = chain(each, session_id=uid, limit=50)
        for thought in shown:
            text = found[thought["event_index"]]
            assert without_controls(text).strip().startswith(thought["text"].removesuffix("..."))
            assert thought.get("chars") == (len(text) if len(text) > 1_000 else None)
        for thought in shown[:1] + shown[-1:]:
            opened = each.ask("get_event_details", session_id=uid, event_index=thought["event_index"])["data"]
            assert opened["event_type"] == "Reasoning"
            assert opened["payload"]["text"].startswith(found[thought["event_index"]][:500])


@pytest.mark.parametrize("most", [2_048, 10_240])
def test_every_clamp_leaves_every_thought_reachable(log: ClaudeLog, tmp_path: Path, most: int) -> None:
    for number in range(12):
        think(log, f"{number} " + '🌊\\"\n' * 800, (f"工具{'x' * 90}",))
    asker = asker_of(tmp_path).with_most(most)
    assert [int(t["text"].split()[0]) for t in chain(asker, session_id=ONE)] == list(range(12))
