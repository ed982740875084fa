"""What an answer must not do: present stale things as fresh, filtered things as all, or ids that nobody can use."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import agtrace.index.reader as reading
from agtrace.answers.service import Service
from agtrace.render.doctor import doctor
from agtrace.render.lists import sessions
from agtrace.settings.live import Loaded
from agtrace.upkeep.doctor import examine
from tests.agtrace.asking import Asker, call_in, claude_log

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"


def test_an_answer_is_not_fresh_by_a_run_that_began_before_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("one")
    asker = Asker(tmp_path, tmp_path / "home")
    went_on, refresh = threading.Event(), reading.refresh

    def held(*arguments: Any, **more: Any) -> Any:
        refresh(*arguments, **more)
        went_on.wait(300)
        return None

    monkeypatch.setattr(reading, "refresh", held)
    asker.answers._refresh_seconds = 0.1
    assert asker.ask("list_sessions")["index"]["state"] == "catching_up"
    log.prompt("the later needle")
    monkeypatch.setattr(reading, "refresh", refresh)
    went_on.set()
    asker.answers._refresh_seconds = 20
    assert "Found 1 event" in asker.ask("search_event_previews", order="newest", query="later needle")["summary"]


def test_a_session_of_another_agent_is_not_found_in_spite_of_its_id(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE).prompt("needle")
    asker = Asker(tmp_path, tmp_path / "home")
    found = asker.ask("search_event_previews", order="newest", query="needle", session_id=ONE, provider="codex")
    assert found["data"]["matches"] == []


@pytest.mark.parametrize("own_id", ["mira's log-12345", ' "quoted"\\ ', " spaced  id-12345 ", "x" * 300, "\u202e\x07"])
def test_every_id_that_is_shown_can_be_used(tmp_path: Path, own_id: str) -> None:
    log = claude_log(tmp_path / "home", ONE)
    log.session_id = own_id
    log.prompt("needle")
    asker = Asker(tmp_path, tmp_path / "home")
    for listing in ("list_sessions", "search_event_previews"):
        more = {"query": "needle"} if listing.startswith("search") else {}
        name, arguments = call_in(asker.ask(listing, **more)["hint"])
        opened = asker.ask(name, **arguments)
        asker.ask("get_session_details", session_id=opened["data"]["session_id"])


def test_a_time_that_was_shown_bounds_a_search_inclusively(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE).write("user", "needle", timestamp="2026-11-01T10:00:00.500Z")
    asker = Asker(tmp_path, tmp_path / "home")
    shown = asker.ask("search_event_previews", order="newest", query="needle")["data"]["matches"][0]["timestamp"]
    assert (
        len(
            asker.ask("search_event_previews", order="newest", query="needle", since=shown, until=shown)["data"][
                "matches"
            ]
        )
        == 1
    )
    assert len(asker.ask("list_sessions", since=shown, until=shown)["data"]["sessions"]) == 1


def test_an_analysis_says_which_findings_it_leaves_out(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("build it")
    for number in range(6):
        log.call("Bash", {"command": "make"}, "main.c:7: error: 'x' undeclared", failed=True).say(f"Again, {number}.")
    asker = Asker(tmp_path, tmp_path / "home")
    answer = asker.ask("analyze_session", session_id=ONE)
    assert answer["data"]["score"] < 100 and "1 more left out" in answer["summary"]
    name, arguments = call_in(answer["hint"])
    assert len(asker.ask(name, **arguments)["data"]["insights"]) == 1


def test_waiting_in_a_shell_of_codex_is_no_loop(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("wait for it")
    for _ in range(6):
        log.call("shell", {"command": ["bash", "-lc", "sleep 5"]}, "ok")
    asker = Asker(tmp_path, tmp_path / "home")
    assert asker.ask("analyze_session", session_id=ONE, include_loops=True)["data"]["insights"] == []


def test_what_looks_like_markup_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = claude_log(tmp_path / "ho[/b]me", ONE)
    log.write("user", "fix [/b] in [red] :bug:", version="1[/b]")
    asker = Asker(tmp_path, tmp_path / "ho[/b]me")
    capsys.readouterr()
    sessions(asker.ask("list_sessions"), ())
    doctor(examine(Loaded(asker.settings)))
    printed = capsys.readouterr().out
    assert "fix [/b] in [red] :bug:" in printed and "1[/b]" in printed and "ho[/b]me" in printed


def test_doctor_reads_a_version_of_five_thousand_digits(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE).write("user", "hello", version="9" * 5000)
    found = examine(Loaded(Asker(tmp_path, tmp_path / "home").settings))
    assert len(found["agents"][0]["versions"][0]) <= 100


def test_doctor_names_a_version_that_is_newer_than_what_was_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = claude_log(tmp_path / "home", ONE)
    for version in ("2.1.9", "2.9.1", "2.10.0-beta.1"):
        log.write("user", "hello", version=version)
    found = examine(Loaded(Asker(tmp_path, tmp_path / "home").settings))
    (agent,) = found["agents"]
    assert agent["newer_versions"] == ["2.10.0-beta.1"] and agent["tested"]["version"].startswith("2.1.")
    doctor(found)
    assert "Claude Code 2.10.0-beta.1 is newer than what was tested (2.1." in capsys.readouterr().out


def test_a_log_that_nobody_reads_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(tmp_path, tmp_path / "home")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert not Service(asker.settings).ask("list_sessions", {}).is_error


def test_a_session_that_calls_itself_its_parent_is_no_child_of_its_own(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    folder = log.path.parent / f"agent-{ONE}" / "subagents"
    folder.mkdir(parents=True)
    log.path = folder / f"agent-{ONE}.jsonl"
    log.write("user", "count", isSidechain=True)
    details = Asker(tmp_path, tmp_path / "home").ask("get_session_details", session_id=f"agent-{ONE}")["data"]
    assert details["parent_missing"] and "children" not in details


REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def ending(asker: Asker, session: str) -> tuple[str, str]:
    found = asker.ask("analyze_session", session_id=session)["data"]["ending"]
    return found["ending"], found["reason"]


@pytest.mark.parametrize("result", ["provided", None])
def test_a_structured_answer_ends_a_session_that_no_human_follows(tmp_path: Path, result: str | None) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("Count the gauges.")
    log.call("Bash", {"command": "ls gauges"}, "a b c").call(
        "StructuredOutput", {"gauges": 3}, "Structured output provided"
    )
    asker = Asker(tmp_path, tmp_path / "home")
    assert ending(asker, ONE)[0] == "finished"
    assert asker.ask("analyze_session", session_id=ONE)["data"]["insights"] == []


@pytest.mark.parametrize(("request_of_the_next", "expected"), [("Implement the following plan:\n\n# Tide", "finished"),
                                                              ("Now something else.", "interrupted")])  # fmt: skip
def test_a_plan_that_another_session_carries_out_was_approved(
    tmp_path: Path, request_of_the_next: str, expected: str
) -> None:
    """Claude Code writes it as refused where the human had the context cleared."""
    log = claude_log(tmp_path / "home", ONE).prompt("Plan the tide.")
    log.call("ExitPlanMode", {"plan": "# Tide"}, REFUSED, failed=True)
    log.write("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    following = claude_log(tmp_path / "home", TWO)
    following.clock = log.clock
    following.prompt(request_of_the_next).say("Done.")
    assert ending(Asker(tmp_path, tmp_path / "home"), ONE)[0] == expected
