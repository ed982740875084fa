"""The usage of sessions: totals say how reliable they are, and never claim more than the logs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agtrace.answers.service import Service
from agtrace.health.examine import timeline
from agtrace.health.history import read_history
from agtrace.sessions.prices import load
from agtrace.sessions.query import find_session
from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.indexer import test_claude_families as claude_families
from tests.indexer.test_codex_families import T0, Rollout

ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"


def respond(log: ClaudeLog, model: str = "claude-opus-4-5", **usage: Any) -> ClaudeLog:
    """A response of a model with these figures."""
    content = [{"type": "text", "text": "done"}]
    message = {"role": "assistant", "model": model, "id": f"msg_{log.session_id[:4]}_{log.lines}", "content": content}
    more = {name: usage.pop(name) for name in ("costUSD",) if name in usage}
    request = f"req_{log.session_id[:4]}_{log.lines}"
    return log.write("assistant", content, message={**message, "usage": usage, "stop_reason": "end_turn"},
                     requestId=request, **more)  # fmt: skip


def compacted(log: ClaudeLog, tokens: int, trigger: str = "auto") -> ClaudeLog:
    """Claude Code replaced a context of so many tokens by its summary."""
    facts = {"trigger": trigger, "preTokens": tokens}
    return log.write("system", "Compacted", subtype="compact_boundary", compactMetadata=facts)


def stats(asker: Asker, session: str) -> dict[str, Any]:
    found: dict[str, Any] = asker.ask("get_session_details", session_id=session)["data"]["stats"]
    return found


def project(asker: Asker) -> dict[str, Any]:
    (found,) = asker.ask("get_project_info")["data"]["projects"]
    return dict(found)


@pytest.mark.parametrize(
    ("tokens", "trigger", "window"),
    [(174_247, "auto", 200_000), (174_247, "manual", 1_000_000), (960_000, "auto", 1_000_000)],
)
def test_an_automatic_compaction_shows_the_window_of_a_model_that_can_have_a_larger_one(
    tokens: int, trigger: str, window: int, tmp_path: Path
) -> None:
    log = respond(claude_log(tmp_path / "logs", ONE).prompt("Merge it."), "claude-opus-4-6", input_tokens=tokens - 1000)
    respond(compacted(log, tokens, trigger), "claude-opus-4-6", input_tokens=60_000)
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    found = stats(asker, ONE)
    assert (found["peak_context_tokens"], found["context_window"]) == (tokens - 1000, window)
    with closing(sqlite3.connect(asker.settings.database)) as connection:
        session = find_session(connection, ONE)
        history = read_history(connection, session, now=0, prices=load(None))
    shown = timeline(history, session.started_at, [], 10)
    assert shown is not None and shown.context_window == window


def test_a_response_that_is_larger_than_the_window_shown_before_has_another_one(tmp_path: Path) -> None:
    log = respond(claude_log(tmp_path / "logs", ONE).prompt("Merge it."), "claude-opus-4-6", input_tokens=9)
    compacted(log, 174_247)
    respond(log, "claude-opus-4-6", input_tokens=400_000)
    assert stats(Asker(tmp_path / "data", tmp_path / "logs"), ONE)["context_window"] == 1_000_000


def test_the_time_until_a_message_that_no_model_made_is_not_active(tmp_path: Path) -> None:
    session = "5a1e0f3c-0000-4000-8000-000000000001"
    log = claude_log(tmp_path / "logs", session).prompt("Draft it.").say("Drafted.")
    log.clock += 8 * 60
    own = {"role": "assistant", "content": [{"type": "text", "text": "No response requested."}], "model": "<synthetic>"}
    log.write("assistant", [], message=own).prompt("Go on.").say("Gone on.")
    stats = Asker(tmp_path / "data", tmp_path / "logs").ask("get_session_details", session_id=session)["data"]["stats"]
    assert stats["active_seconds"] == 2 * 7


def test_figures_that_nobody_knows_cost_nothing_that_is_known(tmp_path: Path) -> None:
    """Zeros that can't be are unknown, and so is their cost."""
    respond(claude_log(tmp_path / "home", ONE).prompt("q"), input_tokens=0, output_tokens=0)
    found = stats(Asker(tmp_path, tmp_path / "home"), ONE)
    assert (found["tokens_made"], found["cost_made"]) == ("unknown", "unknown")
    assert "cost_usd" not in found and "total_tokens" not in found


def test_a_session_without_figures_makes_the_sums_above_it_partial(tmp_path: Path) -> None:
    respond(claude_log(tmp_path / "home", ONE).prompt("q"), input_tokens=5, output_tokens=6)
    claude_log(tmp_path / "home", TWO).prompt("q").say("without figures")
    asker = Asker(tmp_path, tmp_path / "home")
    assert stats(asker, ONE)["tokens_made"] == "exact"
    assert stats(asker, TWO)["tokens_made"] == "unknown"
    assert (project(asker)["total_tokens"], project(asker)["tokens_made"]) == (11, "partial")


def test_a_cost_that_the_log_names_counts_beside_responses_that_have_none(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("q")
    respond(log, input_tokens=1_000_000, output_tokens=40_000, costUSD=0.25)
    alone = stats(Asker(tmp_path / "one", tmp_path / "home"), ONE)["cost_usd"]
    respond(log, input_tokens=1_000_000, output_tokens=40_000)
    both = stats(Asker(tmp_path / "two", tmp_path / "home"), ONE)
    assert (alone, both["cost_usd"], both["cost_made"]) == (0.25, 6.25, "estimated")


def test_active_time_ends_with_the_last_thing_that_the_model_or_a_tool_did(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("q").say("answer")
    log.clock += 36_000
    log.write("user", "<command-name>/exit</command-name>")
    found = stats(Asker(tmp_path, tmp_path / "home"), ONE)
    assert (found["active_seconds"], found["duration_seconds"]) == (7, 36_014)


def test_what_a_rolled_back_turn_used_was_spent_and_is_named(tmp_path: Path) -> None:
    """The session's total is what the log's total says, the turns are those that are left."""
    log = Rollout(tmp_path / "home", T0).turn("one", 100).turn("two", 100).event("thread_rolled_back", num_turns=1)
    log.write()
    found = stats(Asker(tmp_path, tmp_path / "home"), log.id)
    assert (found["total_turns"], found["total_tokens"], found["tokens_outside_turns"]) == (1, 220, 110)


def test_a_call_that_tells_how_another_one_failed_is_no_second_failure(tmp_path: Path) -> None:
    log = Rollout(tmp_path / "home", T0).says("user", "go")
    log.calls("c", "Wall time: 1.0 seconds\nProcess running with session ID 41\nOutput:\n")
    log.item("function_call", name="write_stdin", arguments='{"session_id":41}', call_id="p")
    log.item("function_call_output", call_id="p", output="Wall time: 9 seconds\nProcess exited with code 1\n").write()
    found = Asker(tmp_path, tmp_path / "home").ask("analyze_session", session_id=log.id)["data"]
    assert "nothing failed" in str(found)  # a build that fails counts among the checks


def test_a_price_table_that_cannot_be_used_is_said_and_costs_the_server_no_answer(tmp_path: Path) -> None:
    respond(claude_log(tmp_path / "home", ONE).prompt("q"), input_tokens=5, output_tokens=6)
    own = tmp_path / "prices.json"
    own.write_text('{"vendors": []}')
    settings = replace(Asker(tmp_path, tmp_path / "home").settings, prices=own)
    said: list[Any] = []
    given = Service(settings, log=said.append).ask("get_session_details", {"session_id": ONE})
    assert given.value["data"]["stats"]["cost_made"] == "estimated"
    assert [str(own) in record["problem"] for record in said if record["event"] == "invalid_setting"] == [True]


def test_what_the_log_says_of_missed_caches_is_a_figure_with_its_reasons(tmp_path: Path) -> None:
    lines = [claude_families.said("m-1", "go")]
    for number, reason in enumerate(("tools_changed", "messages_changed"), 2):
        why = {"type": reason, "cache_missed_input_tokens": 30_000 + number}
        lines.append(claude_families.answer(f"m-{number}", "ok", message={"diagnostics": {"cache_miss_reason": why}}))
    claude_families.Logs(tmp_path, tmp_path / "x").write(f"{claude_families.MAIN}.jsonl", lines)
    found = Asker(tmp_path / "data", tmp_path / "projects").ask("analyze_session", session_id=claude_families.MAIN)
    assert found["data"]["figures"] == {
        "cache_missed_tokens": {"messages_changed": 30_003, "tools_changed": 30_002},
        "cache_missed_usd": 0.345,
    }
