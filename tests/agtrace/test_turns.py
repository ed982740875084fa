"""Turns in answers: how they ended, and that what is shown can be opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, ClaudeLog, call_in, claude_log

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
STOP = "[Request interrupted by user for tool use]"
REFUSED = "The user doesn't want to proceed with this tool use."


def outcomes(folder: Path) -> list[str]:
    details = Asker(folder, folder / "home").ask("get_session_details", session_id=ONE, detail_level="turns")
    return [turn["outcome"] for turn in details["data"]["turns"]]


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    return claude_log(tmp_path / "home", ONE).prompt("please list the tides")


def test_a_turn_whose_call_never_came_back_is_no_success(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": "ls"}, None)
    assert outcomes(tmp_path) == ["unknown"]


def test_a_turn_that_went_on_after_a_lost_call_is_judged_by_its_answer(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": "ls"}, None).say("there are none")
    assert outcomes(tmp_path) == ["success"]


def test_an_interrupted_turn_is_no_success(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": "ls"}, "a").prompt(STOP).prompt("go on").say("done")
    assert outcomes(tmp_path) == ["partial", "success"]


def test_a_turn_in_which_the_only_call_was_refused_is_no_success(log: ClaudeLog, tmp_path: Path) -> None:
    log.call("Bash", {"command": "rm -r x"}, REFUSED, failed=True).say("as you like")
    assert outcomes(tmp_path) == ["partial"]


def test_the_hint_of_a_session_without_turns_can_be_followed(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    note = {"type": "system", "subtype": "note", "content": "hello", "sessionId": ONE, "cwd": "/x", "uuid": "u"}
    log.raw({**note, "timestamp": "2026-11-01T00:00:00Z", "version": "2.1.1", "parentUuid": None, "isSidechain": False})
    asker = Asker(tmp_path, tmp_path / "home")
    name, arguments = call_in(asker.ask("get_session_details", session_id=ONE)["hint"])
    assert asker.ask(name, **arguments)["data"]["event_index"] == 0


def gemini_message(number: int, kind: str, text: str) -> dict[str, Any]:
    return {"id": f"m{number}", "timestamp": f"2026-11-01T10:00:{number:02}Z", "type": kind, "content": text}


def gemini_session(folder: Path, *messages: tuple[str, str]) -> None:
    """Write a session of Gemini CLI with these messages, each by its type and text."""
    head = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-11-01T10:00:00Z", "kind": "main"}
    written = [head, *(gemini_message(number, *message) for number, message in enumerate(messages))]
    path = folder / "home" / "session-1.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in written))


def test_an_error_of_the_api_ends_a_turn_of_codex_and_one_that_is_tried_again_does_not(tmp_path: Path) -> None:
    lines = [
        ("session_meta", {"id": ONE, "timestamp": "2026-11-01T10:00:00Z", "cwd": "/x"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "please"}]}),
        ("event_msg", {"type": "error", "message": "stream disconnected before completion"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "again"}]}),
        ("event_msg", {"type": "stream_error", "message": "Reconnecting... 1/5"}),
        ("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}),
    ]
    path = tmp_path / "home" / "rollout-1.jsonl"
    written = ({"timestamp": "2026-11-01T10:00:01Z", "type": kind, "payload": payload} for kind, payload in lines)
    path.write_text("".join(json.dumps(record) + "\n" for record in written))
    assert outcomes(tmp_path) == ["failed", "success"]


def test_an_error_of_the_api_ends_a_turn_of_gemini(tmp_path: Path) -> None:
    gemini_session(tmp_path, ("user", "please"), ("error", "[API Error: 500]"), ("user", "again"), ("gemini", "ok"))
    assert outcomes(tmp_path) == ["failed", "success"]


def test_an_error_behind_the_last_word_of_gemini_is_one_of_a_command(tmp_path: Path) -> None:
    """Its logs have every error of its screen."""
    gemini_session(tmp_path, ("user", "please"), ("gemini", "ok"), ("error", "Unknown command: /tides"))
    assert outcomes(tmp_path) == ["success"]


def test_a_turn_behind_one_that_was_taken_back_can_be_opened(tmp_path: Path) -> None:
    messages = [gemini_message(n, "gemini" if n % 2 else "user", f"text {n}") for n in range(6)]
    head = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-11-01T10:00:00Z", "kind": "main"}
    path = tmp_path / "home" / "session-1.jsonl"
    kept = {"$set": {"messages": [*messages[:2], *messages[4:]]}}
    path.write_text("".join(json.dumps(record) + "\n" for record in [head, *messages, kept]))
    asker = Asker(tmp_path, tmp_path / "home")
    turns = asker.ask("get_session_details", session_id=ONE)["data"]["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 2]
    opened = asker.ask("get_session_details", session_id=ONE, turn_index=2)["data"]["turns"]
    assert [turn["user_message"] for turn in opened] == ["text 4"]
    refused = asker.error("get_session_details", session_id=ONE, turn_index=1)
    assert refused["code"] == "invalid_range" and "retracted" in refused["message"]
