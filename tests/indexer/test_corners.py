"""Corner cases: logs restored next to their copy, in worktrees of worktrees, with repeated results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from agtrace_indexer.index.projects import project_root

from tests.agtrace.asking import Asker, claude_log, query

ONE = "aaaaaaaa-0000-4000-8000-000000000001"


def test_a_log_that_comes_back_together_with_a_copy_gives_two_whole_sessions(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("needle").say("found")
    asker = Asker(tmp_path, tmp_path / "home")
    content = log.path.read_bytes()
    log.path.unlink()
    asker.index()
    log.path.write_bytes(content)
    os.utime(log.path, (1, 1))  # read behind its copy, which takes over the archived session
    log.path.with_name("copy.jsonl").write_bytes(content)
    asker.index()
    held = query(asker, "SELECT turn_count, copied_turns FROM session ORDER BY turn_count")
    assert held == [(0, 1), (1, 0)]  # both can be read, one counts


def test_a_working_directory_of_thousands_of_worktrees_is_read() -> None:
    assert project_root("/work" + "/.claude/worktrees/b" * 5000) == "/work"


def test_a_result_that_is_said_again_answers_its_call_again(tmp_path: Path) -> None:
    head = {"sessionId": ONE, "projectHash": "ab" * 32, "startTime": "2026-11-01T10:00:00Z", "kind": "main"}
    call: dict[str, Any] = {"id": "c1", "name": "run", "args": {"x": 1}, "timestamp": "2026-11-01T10:00:03Z"}
    prompt = {"id": "a", "timestamp": "2026-11-01T10:00:01Z", "type": "user", "content": "run it"}
    said = {"id": "b", "timestamp": "2026-11-01T10:00:02Z", "type": "gemini", "content": "I do"}
    path = tmp_path / "home" / "session-1.jsonl"
    path.write_text(json.dumps(head) + "\n" + json.dumps(prompt) + "\n")
    asker = Asker(tmp_path, tmp_path / "home")
    for status, response in (("executing", None), ("error", {"error": "boom"}), ("success", {"output": "fine"})):
        result = [{"functionResponse": {"id": "c1", "name": "run", "response": response}}] if response else []
        with path.open("a") as file:
            file.write(json.dumps({**said, "toolCalls": [{**call, "status": status, "result": result}]}) + "\n")
        asker.index()  # a run for each version: what is known of the call survives between them
    executed = asker.ask("search_event_previews", order="newest", query="", tool="run")["data"]["matches"]
    assert [(match["event_type"], "outcome" in match) for match in executed] == [
        ("ToolResult", False),
        ("ToolCall", False),
    ]
    opened = asker.ask("get_event_details", session_id=ONE, event_index=executed[1]["event_index"])["data"]
    assert opened["result_event"] == executed[0]["event_index"]
    assert asker.ask("list_sessions")["data"]["sessions"][0]["failed_calls"] == 0


def test_an_unreadable_line_says_the_same_whatever_ends_it(tmp_path: Path) -> None:
    said = []
    for end in ("\n", "\r\n"):
        log = claude_log(tmp_path / f"home{len(said)}", ONE).prompt("needle").say("found")
        log.path.write_text(
            log.path.read_text().replace("\n", end) + '{"type": "user", "mess' + end + '{"type": "mode"}' + end,
            newline="",
        )
        asker = Asker(tmp_path / f"data{len(said)}", tmp_path / f"home{len(said)}")
        said.append(asker.body(ONE, 2))
    assert said[0] == said[1] == '{"type": "user", "mess'
