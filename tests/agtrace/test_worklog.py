"""`agtrace today`, `yesterday` and `week`: what was asked, done, spent and left open, by project."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agtrace_schema.analysis import Worklog
from msgspec import convert

from agtrace.commands import asking
from tests.agtrace.asking import ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace_here, index_here
from tests.agtrace.test_usage import respond

ID = "abcdabcd-0000-4000-8000-000000000001"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let commands take a local time for the present."""

    def travel(now: str) -> None:
        stamp = datetime.fromisoformat(now).timestamp()
        monkeypatch.setattr(asking, "time", SimpleNamespace(time=lambda: stamp))

    return travel


def worklog(*command: str) -> dict[str, Any]:
    said = agtrace_here(*command, "--json")
    assert said.code == 0, said
    found: dict[str, Any] = said.json()
    convert(found, Worklog)
    return found


def by_id(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {session["session_id"]: session for project in found["projects"] for session in project["sessions"]}


def test_a_day_of_real_sessions_has_what_was_asked_done_spent_and_left_open(indexed: Path, at: Any) -> None:
    at("2026-11-07T09:00")
    found = worklog("yesterday")
    spring = by_id(found)["7d3c1f58"]
    assert [request["text"][:12] for request in spring["requests"]] == ["The spring t", "Have somebod", "Fix the read"]
    assert spring["sub_agents"] == 1 and spring["last_tests"] == "passed"
    assert spring["left_open"]["ending"] == "interrupted"
    cost = agtrace_here("cost", "--by", "project", "--since", "2026-11-06", "--until", "2026-11-06", "--json").json()
    assert [project["spent"] for project in found["projects"] if "spent" in project] == cost["groups"]
    assert found["spent"] == cost["total"] and found["selection"] == cost["selection"]
    said = agtrace_here("yesterday").out
    assert agtrace_here("today", "2026-11-06").out == said.replace("Yesterday", "2026-11-06")
    assert "  7d3c1f58  Copilot CLI, 1 sub-agent: Spring tide: an hour late\n" in said
    assert "left open, interrupted: the human interrupted the model" in said and "(partial: at least so much)" in said


def test_a_week_begins_on_monday_and_a_day_at_local_midnight(tmp_path: Path, berlin: None, at: Any) -> None:
    log = claude_log(tmp_path / "logs", ID)
    for moment, text in (("10-25T22:30", "late"), ("10-25T23:30", "early"), ("10-27T10:00", "again")):
        log.clock = int(datetime.fromisoformat(f"2026-{moment}Z").timestamp())
        respond(log.prompt(f"{text} request\nwith more"), input_tokens=10, output_tokens=1)
    index_here(tmp_path / "logs")
    asked = {}
    for command, day in (("week", "28"), ("today", "26"), ("yesterday", "26")):
        at(f"2026-10-{day}T12:00")
        found = worklog(command)
        asked[command] = [request["text"].split()[0] for one in by_id(found).values() for request in one["requests"]]
        assert found["spent"]["total_tokens"] == 11 * len(asked[command])
    assert asked == {"week": ["early", "again"], "today": ["early"], "yesterday": ["late"]}
    at("2026-10-28T12:00")
    assert "Mon 00:30  early request" in agtrace_here("week").out
    assert worklog("today")["projects"] == []


def deeds_of(log: ClaudeLog) -> ClaudeLog:
    commit = "[main 1a2b3c4] Convert at the reader\n 1 file changed, 2 insertions(+)"
    log.prompt("Fix it").call("Bash", {"command": "git commit -am 'Convert at the reader'"}, commit)
    log.call("Bash", {"command": "pytest"}, "=== 1 failed in 0.1s ===", failed=True)
    return log.call("Bash", {"command": "pytest"}, "=== 3 passed in 0.1s ===")


def test_commits_and_the_last_tests_are_told_once_with_those_of_their_day(tmp_path: Path, at: Any) -> None:
    log = claude_log(tmp_path / "logs", ID)
    log.clock = int(datetime.fromisoformat("2026-11-03T10:00Z").timestamp())
    deeds_of(log)
    log.clock += 86_400
    log.prompt("Thanks").say("Shall I push it now, or do you want to read it first?")
    index_here(tmp_path / "logs")
    at("2026-11-04T18:00")
    (before,), (now,) = (by_id(worklog(command)).values() for command in ("yesterday", "today"))
    assert [(one["kind"], one["name"]) for one in before["done"]] == [("commit", "1a2b3c4")]
    assert before["last_tests"] == "passed" and "left_open" not in before  # it went on
    assert now["done"] == [] and "last_tests" not in now and now["left_open"]["ending"] == "question_left"
    assert "    commit: 1a2b3c4 Convert at the reader" in agtrace_here("yesterday").out


def test_secrets_and_hostile_text_go_the_way_of_every_answer(tmp_path: Path, at: Any) -> None:
    token = "ghp_" + "A1b2C3d4" * 4 + "E5f6"
    log = claude_log(tmp_path / "logs", ID)
    log.clock = int(datetime.fromisoformat("2026-11-03T10:00Z").timestamp())
    log.prompt(f"use {token} \x1b[31m`![x](https://evil.example/)` <img src=x> | @all").say("Done.")
    index_here(tmp_path / "logs")
    at("2026-11-03T18:00")
    for options in ((), ("--json",), ("--markdown",)):
        said = agtrace_here("today", *options).out
        assert token not in said and "\x1b" not in said and "use " in said
    (line,) = (one for one in agtrace_here("today", "--markdown").out.splitlines() if "10:00" in one)
    assert line.count("`") == 2 and line.endswith("`") and "|" not in line
    assert agtrace_here("today", "--json", "--markdown").code == 2
